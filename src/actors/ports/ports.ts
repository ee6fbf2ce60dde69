// State: the registered ports and their owners. Rebuilt from: the store; a lease that was never registered is
// lost.
import { openListenerTable } from '../../adapters/process/listener_table.ts';
import type { ListeningSocket } from '../../adapters/process/listeners.ts';
import type { Store } from '../../adapters/storage/store_tables.ts';
import { fail } from '../../protocol/errors.ts';
import type { PortsProtocol } from '../../protocol/ports.ts';
import { actor, type Context, type MessageOf, type ReplyOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { portHolderOf, type ServiceMark } from './port_holder.ts';

export interface PortsConfig {
  store: Pick<Store, 'table'>;
}

/** The owners of each port. Several may claim the same one; they are kept in the order of their claims. */
class PortClaims {
  private readonly namesByPort = new Map<number, Set<string>>();
  private readonly portByName = new Map<string, number>();

  claim(name: string, port: number): void {
    if (this.portByName.get(name) === port) return;
    this.release(name);
    this.portByName.set(name, port);
    this.namesByPort.set(port, (this.namesByPort.get(port) ?? new Set()).add(name));
  }

  release(name: string): void {
    const port = this.portByName.get(name);
    if (port === undefined) return;
    this.portByName.delete(name);
    const others = this.namesByPort.get(port);
    others?.delete(name);
    if (others?.size === 0) this.namesByPort.delete(port);
  }

  has(name: string): boolean {
    return this.portByName.has(name);
  }

  /** The owners of `port`, without `except`. */
  others(except: string, port: number): string[] {
    return [...(this.namesByPort.get(port) ?? [])].filter((name) => name !== except);
  }
}

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
  private readonly claims = new PortClaims();
  private readonly listening: () => ListeningSocket[];

  constructor(context: Context, store: PortsConfig['store']) {
    this.context = context;
    this.store = store;
    for (const [name, { spec }] of store.table('services').all()) this.claims.claim(name, spec.port);
    const table = openListenerTable();
    context.scope.defer(table.close);
    this.listening = oncePerTurn(table.rows);
  }

  claim({ owner, port }: MessageOf<PortsProtocol, 'claim'>): { others: string[] } {
    this.claims.claim(owner, port);
    return { others: this.claims.others(owner, port) };
  }

  release(owner: string): null {
    this.claims.release(owner);
    return null;
  }

  /** Claims and returns a free port; undefined when none is free. */
  lease(message: MessageOf<PortsProtocol, 'lease'>): number | undefined {
    const port = this.firstFree(message);
    if (port !== undefined) this.claims.claim(message.owner, port);
    return port;
  }

  /** Fails port_in_use with the reason why `lease` found none. */
  async refuse({ owner, from, to }: MessageOf<PortsProtocol, 'lease'>): Promise<never> {
    const why =
      from === to
        ? `port ${from} is taken: ${await this.reason(owner, from)}`
        : `no port from ${from} to ${to} is free`;
    throw fail('port_in_use', why);
  }

  async listener(port: number): Promise<ReplyOf<PortsProtocol, 'listener'>> {
    const found = portHolderOf(port, this.listening());
    if (!found) return { listener: null };
    const { pid, label, mark } = found;
    return { listener: { pid, holder: mark && (await this.isOurs(mark)) ? mark.name : label } };
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
   * Whether `mark` belongs to a run of this daemon: the last ended run of the service, or its run in the
   * host's ledger. Another daemon may have a service of the same name.
   */
  private async isOurs({ name, run }: ServiceMark): Promise<boolean> {
    if (!this.claims.has(name)) return false;
    if (this.store.table('ends').get(name)?.run === run) return true;
    const asked = this.context
      .ref('host')
      .ask('runOf', { service: name }, { deadlineMs: SERVICE.hostRetryMs });
    // If the host does not answer at once, the pid is reported instead, which is just as true.
    const found = await tolerateFailure(asked, () => null);
    return found?.run?.run === run;
  }
}

/** Tracks the claims on ports and finds the listeners: docs/reference.md "Ports and conflicts". */
export const portsActor = actor<PortsProtocol, PortsConfig>('ports', (context, { store }) => {
  const ports = new Ports(context, store);
  return {
    claim: (message) => ports.claim(message),
    release: ({ owner }) => ports.release(owner),
    lease: (message) => {
      const port = ports.lease(message);
      return port === undefined ? context.replyLater(ports.refuse(message)) : { port };
    },
    listener: ({ port }) => context.replyLater(ports.listener(port)),
  };
});
