// State: every record as on disk, the registrations and removals under way, whether the daemon is shutting
// down, the stacks being removed. Rebuilt from: the store; work under way ends with its actor, and `stacks`
// looks again at the end of a removal.
//
// A registration waits only for registrations of the same name. Its record counts once it is on disk. Until
// then, rules about the whole set consider both the stored and the pending records.
import { randomBytes } from 'node:crypto';
import type { Store } from '../../adapters/storage/store_tables.ts';
import { serviceAddress } from '../../protocol/address.ts';
import { fail } from '../../protocol/errors.ts';
import { type EventsProtocol, type NewEvent, portConflictEvent } from '../../protocol/events.ts';
import { isForService } from '../../protocol/groups.ts';
import type { HostProtocol, LedgerRun } from '../../protocol/host.ts';
import type { PortsProtocol } from '../../protocol/ports.ts';
import type { Member, RegistryProtocol } from '../../protocol/registry.ts';
import type { ScheduleSpec } from '../../protocol/schedules.ts';
import type { ServiceInput, ServiceProtocol, StoredService } from '../../protocol/service.ts';
import { uncreatedFailure } from '../../protocol/stack_creation.ts';
import { isHookOf } from '../../protocol/stacks.ts';
import type { ViewSnapshot, ViewsProtocol } from '../../protocol/views.ts';
import { isWatchedAfter } from '../../protocol/watcher.ts';
import {
  actor,
  type Context,
  type DeferredReply,
  type Handlers,
  type MessageOf,
  type Ref,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { SERVICE, THREADS } from '../../settings/limits.ts';
import { removedNames, stopOrphanedRuns } from './orphaned_runs.ts';
import { checkRegistration } from './registration_checks.ts';
import { nextRecord, specRow } from './registration_rules.ts';
import { adoptAll, autostartAll, hostRuns, idleStates, reportForeignRuns } from './startup.ts';

type LeaseRange = readonly [from: number, to: number];

export interface RegistryConfig {
  store: Pick<Store, 'table' | 'loss'>;
  /** The ranges that `port: 0` leases from, for a plain service and for an agent. */
  ports: { service: LeaseRange; agent: LeaseRange };
  /** Boot time of the machine, epoch milliseconds. */
  bootedAt: number;
  /** Writes a line to the daemon's log. */
  report: (line: string) => void;
  /** Counts the rows of these services as left out of the store, and reports them. */
  leaveOut: (names: readonly string[]) => void;
}

/** The name of the `specHash` key in the store. */
const HASH_KEY = 'specHash';
const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };

const registryEvent = (type: NewEvent['type'], name: string, fields: object): NewEvent => ({
  type,
  name,
  run: null,
  data: JSON.stringify(fields),
});

class Registry {
  private readonly context: Context;
  private readonly config: RegistryConfig;
  private readonly hashKey: Uint8Array;
  private readonly services: Map<string, StoredService>;
  /** Pending registrations, by name. */
  private readonly registering = new Map<string, ServiceInput>();
  private readonly removing = new Set<string>();
  private readonly closedStacks = new Set<string>();
  private isClosed = false;
  private readonly ports: Ref<PortsProtocol>;
  private readonly events: Ref<EventsProtocol>;
  private readonly views: Ref<ViewsProtocol>;

  constructor(context: Context, config: RegistryConfig, hashKey: Uint8Array) {
    this.context = context;
    this.config = config;
    this.hashKey = hashKey;
    this.services = new Map(config.store.table('services').all());
    this.ports = context.ref('ports');
    this.events = context.ref('events');
    this.views = context.ref('views');
  }

  async boot({ autostart, nothingRuns = false }: MessageOf<RegistryProtocol, 'boot'>): Promise<null> {
    const host = this.context.ref('host');
    const runs = nothingRuns ? [] : await hostRuns(host);
    reportForeignRuns(runs ?? [], this.config.report);
    // Not awaited: nothing depends on the end of a run without a service.
    this.inBackground(this.settleOrphans(host, runs ?? []));
    // At start-up, a service without a run or a pending restart needs no actor, because there is nothing to
    // adopt. An agent looks whether the journal has its last state, and a change of watched files may start a
    // service.
    const ends = new Map(this.config.store.table('ends').all());
    const { store } = this.config;
    const agents = [...this.services].filter(([, { spec }]) => spec.agent);
    const watched = [...ends].filter(
      ([name, end]) => this.services.get(name)?.spec.watch && isWatchedAfter(end),
    );
    const held = new Set([...store.table('doors').all(), ...agents, ...watched].map(([name]) => name));
    const resting = autostart && runs ? idleStates(this.services.keys(), ends, runs, held) : [];
    const specs = [...this.services.values()].map((stored) => specRow(stored, this.hashKey));
    this.views.tell('snapshot', { text: JSON.stringify({ specs, states: resting } satisfies ViewSnapshot) });
    const rest = new Set(resting.map(({ name }) => name));
    const others = [...this.services.keys()].filter((name) => !rest.has(name));
    await adoptAll(this.context, others);
    const calls = store.table('restarts').all();
    const owed = calls.filter(([, { at }]) => at >= this.config.bootedAt);
    this.context.ref('groups').tell('resume', {});
    if (autostart)
      this.inBackground(
        autostartAll(
          this.context,
          this.services,
          (spec) =>
            this.isAsleep(spec.name) ||
            owed.some(([group, call]) => isForService(group, call, spec)) ||
            uncreatedFailure(spec, store) !== null,
          () => this.isClosed,
        ),
      );
    return null;
  }

  /** Ends the runs of what was removed, and leaves those of other services that the store lacks. */
  private async settleOrphans(host: Ref<HostProtocol>, runs: readonly LedgerRun[]): Promise<void> {
    const isOrphan = ({ service }: LedgerRun): boolean =>
      ![this.services, this.registering, this.removing].some((known) => known.has(service));
    const found = runs.filter(isOrphan);
    const names = found.map(({ service }) => service);
    const removed = await removedNames(this.events, names);
    // Some may have been registered meanwhile.
    const orphans = found.filter(isOrphan);
    this.config.leaveOut(orphans.flatMap(({ service }) => (removed.has(service) ? [] : service)));
    const over = orphans.filter(({ service }) => removed.has(service));
    await stopOrphanedRuns(host, over);
  }

  register({ input }: MessageOf<RegistryProtocol, 'register'>): DeferredReply<{
    stored: StoredService;
    created: boolean;
  }> {
    this.refuseChange(input.name);
    this.refuseInClosedStack(input);
    return this.context.turn(input.name, async () => {
      checkRegistration(input, { services: this.services, registering: this.registering });
      this.registering.set(input.name, input);
      try {
        return await this.registerNow(input);
      } finally {
        this.registering.delete(input.name);
      }
    });
  }

  remove({
    name,
    agent,
    graceMs,
  }: MessageOf<RegistryProtocol, 'remove'>): DeferredReply<{ port: number | null }> {
    this.refuseChange(name);
    this.removing.add(name);
    return this.context.turn(name, async () => {
      try {
        return await this.removeNow(name, agent, graceMs);
      } finally {
        this.removing.delete(name);
      }
    });
  }

  members({ group, stack }: MessageOf<RegistryProtocol, 'members'>): { members: Member[] } {
    const members = [...this.services.values()]
      .filter(({ spec }) => group === null || spec.group === group)
      .filter(({ spec }) => stack === undefined || spec.stack === stack)
      .map(({ spec: { name, dependsOn, kind = 'service', sleep = null } }) => ({
        name,
        dependsOn,
        kind,
        sleep,
      }));
    return { members };
  }

  specOf({ name }: MessageOf<RegistryProtocol, 'specOf'>): ReplyOf<RegistryProtocol, 'specOf'> {
    return { spec: this.services.get(name)?.spec ?? null, isAsleep: this.isAsleep(name) };
  }

  isRegistered({
    name,
  }: MessageOf<RegistryProtocol, 'isRegistered'>): DeferredReply<{ isRegistered: boolean }> {
    return this.context.turn(name, async () => ({ isRegistered: this.services.has(name) }));
  }

  watchAgain(): null {
    for (const [name, { spec }] of this.services)
      if (spec.watch) this.context.ref(serviceAddress(name)).tell('watchAgain', {});
    return null;
  }

  closeStack({ stack, isClosed }: MessageOf<RegistryProtocol, 'closeStack'>): null {
    if (isClosed) this.closedStacks.add(stack);
    else this.closedStacks.delete(stack);
    return null;
  }

  close(): null {
    this.isClosed = true;
    this.context.ref('groups').tell('leave', {});
    return null;
  }

  private async registerNow(input: ServiceInput): Promise<{ stored: StoredService; created: boolean }> {
    const { name } = input;
    const before = this.services.get(name);
    const leased = await this.lease(input, before);
    const stored = nextRecord(input, leased ?? input.port, before, this.hashKey);
    try {
      if (stored !== before) await this.config.store.table('services').put(name, stored);
    } catch (error) {
      if (leased !== null) await this.undoLease(name, before);
      throw error;
    }
    this.services.set(name, stored);
    const { port, protocol, group } = stored.spec;
    const isMoved = port !== before?.spec.port;
    const isClaim = isMoved || protocol !== before?.spec.protocol;
    const { others } = isClaim
      ? await this.ports.ask('claim', { owner: name, port, protocol })
      : { others: [] };
    if (stored !== before) this.views.tell('specs', { rows: [specRow(stored, this.hashKey)] });
    this.service(name).tell('changed', { stored });
    await this.reschedule(name, before?.spec.schedule ?? null, stored.spec.schedule ?? null);
    const events = [registryEvent('service.registered', name, { name, port, group })];
    const [holder] = others;
    if (isMoved && port !== null && holder !== undefined)
      events.push(portConflictEvent(port, { name, run: null }, holder));
    await this.events.ask('append', { events });
    return { stored, created: !before };
  }

  /**
   * Leases a port for `port: 0` and for every agent. A plain service keeps its port unless another service
   * has registered it too; a given port is used even if it is taken. Returns null for a given port, and for
   * none.
   */
  private async lease(input: ServiceInput, before: StoredService | undefined): Promise<number | null> {
    const { name: owner, port, agent } = input;
    const kept = before?.spec.port ?? null;
    if (port === null || (!agent && port !== 0)) return null;
    // A plain service may be running on its port.
    if (before && !agent && kept !== null) {
      const { protocol } = before.spec;
      const { others } = await this.ports.ask('claim', { owner, port: kept, protocol });
      if (others.length === 0) return kept;
    }
    const [from, to] = port !== 0 ? [port, port] : this.config.ports[agent ? 'agent' : 'service'];
    const lease = await this.ports.ask('lease', { owner, from, to, keep: port === 0 ? kept : null });
    return lease.port;
  }

  /** Waits until the schedule is known, so that the response to a registration has its `nextRunAt`. */
  private async reschedule(
    name: string,
    before: ScheduleSpec | null,
    schedule: ScheduleSpec | null,
  ): Promise<void> {
    if (!before && !schedule) return;
    // After a failure, `schedules` reads the stored record.
    await tolerateFailure(
      this.context.ref('schedules').ask('changed', { name, schedule }, DEADLINE),
      () => undefined,
    );
  }

  private async undoLease(owner: string, before: StoredService | undefined): Promise<void> {
    if (before) {
      const { port, protocol } = before.spec;
      await this.ports.ask('claim', { owner, port, protocol });
    } else await this.ports.ask('release', { owner });
  }

  private async removeNow(
    name: string,
    agent: boolean,
    graceMs: number | null,
  ): Promise<{ port: number | null }> {
    const stored = this.services.get(name);
    if (!stored || (agent && stored.spec.agent === null)) {
      throw agent
        ? fail('unknown_agent', `there is no agent ${name}`)
        : fail('unknown_service', `there is no service ${name}`);
    }
    const { store } = this.config;
    const loss = store.loss();
    // A removal that cannot be stored must neither end the process nor delete its logs.
    if (loss) throw loss;
    await this.service(name).ask('retire', { graceMs }, DEADLINE);
    await Promise.all([store.table('services').remove(name), store.table('ends').remove(name)]);
    this.services.delete(name);
    await this.ports.ask('release', { owner: name });
    this.views.tell('removed', { name });
    await this.reschedule(name, stored.spec.schedule ?? null, null);
    await this.events.ask('append', { events: [registryEvent('service.removed', name, { name })] });
    return { port: stored.spec.port };
  }

  /** Whether the service is asleep, behind a door or as an agent. */
  private isAsleep(name: string): boolean {
    const { store } = this.config;
    const run = store.table('ends').get(name)?.run ?? null;
    if (store.table('doors').get(name)?.asleepAfter === run) return true;
    return run !== null && store.table('sessions').get(name)?.asleep?.after === run;
  }

  private refuseChange(name: string): void {
    if (this.isClosed) throw fail('daemon_busy', 'the daemon is shutting down');
    if (this.removing.has(name)) throw fail('daemon_busy', `${name} is being removed`);
  }

  private refuseInClosedStack({ name, stack }: ServiceInput): void {
    if (stack && this.closedStacks.has(stack) && !isHookOf(stack, name))
      throw fail('daemon_busy', `the stack ${stack} is being removed`);
  }

  private inBackground(work: Promise<unknown>): void {
    tolerateFailure(work, () => undefined).catch((error: unknown) => this.context.crash(error));
  }

  private service(name: string): Ref<ServiceProtocol> {
    return this.context.ref(serviceAddress(name));
  }
}

async function init(context: Context, config: RegistryConfig): Promise<Handlers<RegistryProtocol>> {
  const keys = config.store.table('keys');
  const key = keys.get(HASH_KEY) ?? randomBytes(32);
  if (!keys.get(HASH_KEY)) await keys.put(HASH_KEY, key);
  const registry = new Registry(context, config, key);
  return {
    boot: (message) => context.replyLater(registry.boot(message)),
    register: (message) => registry.register(message),
    remove: (message) => registry.remove(message),
    specOf: (message) => registry.specOf(message),
    isRegistered: (message) => registry.isRegistered(message),
    members: (message) => registry.members(message),
    watchAgain: () => registry.watchAgain(),
    closeStack: (message) => registry.closeStack(message),
    close: () => registry.close(),
  };
}

/** Owns the set of services: docs/reference.md "Registration". */
export const registryActor = actor<RegistryProtocol, RegistryConfig>('registry', init, {
  mailbox: THREADS.mailboxCapacity,
});
