// State: the registered ports and their owners. Rebuilt from: the store, and the host's ledger for what runs
// behind doors; another lease that was never registered is lost.
import { openListenerTable } from '../../adapters/process/listener_table.ts';
import { isTrustedUser, type ListeningSocket } from '../../adapters/process/listeners.ts';
import type { Store } from '../../adapters/storage/store_tables.ts';
import { fail } from '../../protocol/errors.ts';
import { type NewEvent, portConflictEvent } from '../../protocol/events.ts';
import type { PortsProtocol, PortUse } from '../../protocol/ports.ts';
import { actor, type Context, type MessageOf, type ReplyOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { InheritedPorts } from './inherited_ports.ts';
import { PortClaims } from './port_claims.ts';
import {
  otherUserOn,
  type PortHolder,
  portHolderOf,
  runOfHolder,
  type ServiceMark,
  strangersOn,
} from './port_holder.ts';

export interface PortsConfig {
  store: Pick<Store, 'table'>;
  /** By run; empty at the start of the thread. Services report each run once, so they outlive a crash. */
  watched: Map<string, PortUse>;
}

/** Interval between checks for other users on the ports of runs. */
const WATCH_MS = 2_000;

/**
 * Reads the listening sockets at most once per turn: a hundred services that start together need the same
 * table.
 */
function oncePerTurn(read: () => ListeningSocket[]): () => ListeningSocket[] {
  let table: ListeningSocket[] | undefined;
  return () => {
    if (!table) {
      table = read();
      setImmediate(() => {
        table = undefined;
      });
    }
    return table;
  };
}

class Ports {
  private readonly context: Context;
  private readonly store: PortsConfig['store'];
  private readonly config: PortsConfig;
  private stopTimer: (() => void) | undefined;
  private isLooking = false;
  private readonly claims = new PortClaims();
  private readonly inherited: InheritedPorts;
  private readonly listening: () => ListeningSocket[];

  constructor(context: Context, config: PortsConfig) {
    const { store } = config;
    this.context = context;
    this.config = config;
    this.store = store;
    this.inherited = new InheritedPorts(context.ref('host'), this.claims);
    for (const [name, { spec }] of store.table('services').all())
      this.claims.register(name, spec.port, spec.protocol);
    const table = openListenerTable();
    context.scope.defer(table.close);
    this.listening = oncePerTurn(table.rows);
    this.updateTimer();
  }

  claim({ owner, port, protocol }: MessageOf<PortsProtocol, 'claim'>): { others: string[] } {
    this.claims.register(owner, port, protocol);
    return { others: this.claims.others(owner, port) };
  }

  /** Releases what `owner` has leased before, and what it has inherited. */
  async release(owner: string): Promise<null> {
    await this.inherited.claimed();
    this.claims.release(owner);
    return null;
  }

  claimsOf(prefix: string): ReplyOf<PortsProtocol, 'claims'> {
    return { json: this.claims.jsonWithPrefix(prefix) };
  }

  /** Claims and returns a free port. Fails port_in_use. */
  async lease(message: MessageOf<PortsProtocol, 'lease'>): Promise<{ port: number }> {
    await this.inherited.claimed();
    const port = this.firstFree(message);
    if (port === undefined) return this.leaseOwn(message);
    this.claims.claim(message.owner, port);
    return { port };
  }

  /**
   * If none is free: claims the port that is asked for if the owner's own process listens on it,
   * whose record was lost. Otherwise fails port_in_use with the reason.
   */
  private async leaseOwn({ owner, from, to }: MessageOf<PortsProtocol, 'lease'>): Promise<{ port: number }> {
    const isClaimed = from !== to || this.claims.others(owner, from).length > 0;
    const holder = isClaimed ? undefined : await portHolderOf(from, this.listening());
    if (holder && (await this.serviceOf(holder)) === owner) {
      this.claims.claim(owner, from);
      return { port: from };
    }
    const why =
      from === to
        ? `port ${from} is taken: ${await this.reason(owner, from)}`
        : `no port from ${from} to ${to} is free`;
    throw fail('port_in_use', why);
  }

  async listener(port: number): Promise<ReplyOf<PortsProtocol, 'listener'>> {
    const found = await portHolderOf(port, this.listening());
    if (!found) return { listener: null };
    const { pid, label } = found;
    // The daemon itself listens for a service that has a door.
    const doors = this.store.table('doors');
    const owner = this.claims.others('', port).find((name) => pid === process.pid && doors.get(name));
    if (owner !== undefined) return { listener: { pid, holder: owner } };
    return { listener: { pid, holder: (await this.serviceOf(found)) ?? label } };
  }

  /**
   * Who listens on the port of a run without being of it. A program of this user, or of root, that bears the
   * mark of no other run is taken for its own: servers leave the tree when they go to the background.
   */
  async foreignHolder(use: PortUse): Promise<string | null> {
    const table = this.listening();
    const other = await otherUserOn(use, table);
    if (other) return other.label;
    for (const holder of await strangersOn(use, table)) {
      const service = await this.serviceOf(holder);
      if (service !== null && service !== use.owner) return service;
    }
    return null;
  }

  watch(use: PortUse): null {
    const { watched } = this.config;
    watched.set(use.run, use);
    this.updateTimer();
    return null;
  }

  unwatch(run: string): null {
    this.config.watched.delete(run);
    this.updateTimer();
    return null;
  }

  /** Runs the timer exactly while something is watched. */
  private updateTimer(): void {
    if (this.config.watched.size === 0) {
      this.stopTimer?.();
      this.stopTimer = undefined;
    } else this.stopTimer ??= this.context.clock.every(WATCH_MS, () => this.lookSoon());
  }

  private lookSoon(): void {
    if (this.isLooking) return;
    this.isLooking = true;
    this.lookForOthers().then(
      () => {
        this.isLooking = false;
      },
      (error: unknown) => this.context.crash(error),
    );
  }

  /** Detects other users on the ports of runs; the event is emitted once per run. */
  private async lookForOthers(): Promise<void> {
    const { watched } = this.config;
    const foreign = this.listening().filter(({ uid }) => !isTrustedUser(uid));
    if (foreign.length === 0) return;
    const events: NewEvent[] = [];
    for (const use of watched.values()) {
      const other = await otherUserOn(use, foreign);
      if (!other || !watched.delete(use.run)) continue;
      events.push(portConflictEvent(use.port, { name: use.owner, run: use.run }, other.label));
    }
    if (events.length > 0) this.context.ref('events').tell('append', { events });
    this.updateTimer();
  }

  /** `keep` if it is free, else the lowest free port of the range. */
  private firstFree({ owner, from, to, keep }: MessageOf<PortsProtocol, 'lease'>): number | undefined {
    const listening = new Set(this.listening().map(({ port }) => port));
    const isFree = (port: number): boolean =>
      this.claims.others(owner, port).length === 0 && !listening.has(port);
    if (keep !== null && isFree(keep)) return keep;
    for (let port = from; port <= to; port += 1) if (isFree(port)) return port;
    return undefined;
  }

  /** The reason why `owner` cannot have `port`. */
  private async reason(owner: string, port: number): Promise<string> {
    const [other] = this.claims.others(owner, port);
    if (other !== undefined) return `${other} has registered it`;
    const { listener } = await this.listener(port);
    return `${listener?.holder ?? 'somebody'} listens on it`;
  }

  /**
   * The service of this daemon whose run the process is of; null: of none. Programs that overwrite their
   * environment, as Redis does for its title, bear no mark: the host's ledger knows their first process.
   */
  private async serviceOf(holder: PortHolder): Promise<string | null> {
    const { mark, line } = holder;
    if (mark && (await this.isOurs(mark))) return mark.name;
    if (line.length === 0) return null;
    const asked = this.context.ref('host').ask('runs', {}, { deadlineMs: SERVICE.hostRetryMs });
    const { runs } = await tolerateFailure(asked, () => ({ runs: [] }));
    return runOfHolder(holder, runs)?.service ?? null;
  }

  /**
   * Whether `mark` belongs to a run of this daemon: the last ended run of the service, or its run in the
   * host's ledger. Another daemon may have a service of the same name.
   */
  private async isOurs({ name, run }: ServiceMark): Promise<boolean> {
    if (!this.claims.has(name)) return false;
    const isLastEnd = (): boolean => this.store.table('ends').get(name)?.run === run;
    if (isLastEnd()) return true;
    const asked = this.context
      .ref('host')
      .ask('runOf', { service: name }, { deadlineMs: SERVICE.hostRetryMs });
    // If the host does not answer at once, the pid is reported instead, which is just as true.
    const found = await tolerateFailure(asked, () => null);
    // The host forgets a run once its end is stored, which may have happened since the first look.
    return found?.run?.run === run || isLastEnd();
  }
}

/** Tracks the claims on ports and finds the listeners: docs/reference.md "Ports and conflicts". */
export const portsActor = actor<PortsProtocol, PortsConfig>('ports', (context, config) => {
  const ports = new Ports(context, config);
  return {
    claim: (message) => ports.claim(message),
    release: ({ owner }) => context.replyLater(ports.release(owner)),
    claims: ({ prefix }) => ports.claimsOf(prefix),
    lease: (message) => context.replyLater(ports.lease(message)),
    listener: ({ port }) => context.replyLater(ports.listener(port)),
    foreignHolder: (use) => context.replyLater(ports.foreignHolder(use).then((holder) => ({ holder }))),
    watch: (use) => ports.watch(use),
    unwatch: ({ run }) => ports.unwatch(run),
  };
});
