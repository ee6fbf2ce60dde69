// The order of wakes: a workload's dependencies are woken first, and waited for.
// docs/reference.md "Wake order".
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { WakeOrder } from '../../protocol/policies.ts';
import type { WakeCause } from '../../protocol/receipts.ts';
import { WORKLOAD_KINDS } from '../../protocol/workload_kinds.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { deferred, withTimeout } from '../../runtime/deferred.ts';
import { WAKE_ORDER } from '../../settings/cloud_limits.ts';
import type { WorkloadEvents } from './workload_events.ts';
import { targetName } from './workload_patch.ts';
import { isReady, workloadId } from './workload_record.ts';

/** A requested wake. Wakes of its dependencies are part of it. */
export interface WakeRequestOf {
  by: WakeCause;
  operation: string | undefined;
  policy: string | undefined;
  /** Whose quota it counts for; undefined: nobody's. */
  subject: string | undefined;
  /** Makes each change of the wake when its turn comes; undefined: at once. */
  inTurn: InTurn | undefined;
}

/** Runs the change of a workload in its cluster when its turn comes. */
export type InTurn = <R>(id: string, change: () => Promise<R>) => Promise<R>;

export interface WakeOrderOwner {
  readonly clock: Clock;
  readonly events: Pick<WorkloadEvents, 'onFailed'>;
  readonly table: {
    get(id: string): StoredWorkload | undefined;
    showAgain(ids: readonly string[]): void;
  };
  readonly readyWait: { isEnded: boolean; untilReady(id: string, ms: number): Promise<void> };
}

type Row = StoredWorkload;
type Lookup = (id: string) => Row | undefined;
/** Wakes one workload without its dependencies. Resolves when the cluster has accepted the change. */
type WakeOne = (id: string, request: WakeRequestOf) => Promise<unknown>;

/** Waits for one dependency, by who needs it. */
type Waits = Map<string, Promise<void>>;

const namesOf = (row: Row): readonly string[] => row.seen.sleep?.after ?? [];
const keyOf = ({ clusterId, seen }: Row, name: string): string => `${clusterId}/${seen.namespace}/${name}`;

/** The workloads in its namespace that match `name`, which may be `kind/name`. */
function named({ clusterId, seen: { namespace } }: Row, text: string, get: Lookup): Row[] {
  const [name = '', kind] = text.split('/').reverse();
  return WORKLOAD_KINDS.filter(
    (one) => kind === undefined || one.toLowerCase() === kind.toLowerCase(),
  ).flatMap((one) => get(workloadId(clusterId, { kind: one, namespace, name })) ?? []);
}

const dependenciesOf = (row: Row, get: Lookup): Row[] => [
  ...new Set(namesOf(row).flatMap((name) => named(row, name, get))),
];

/** The names of a cycle through `row`; null: there is none, or it is too long. */
function cycleOf(row: Row, get: Lookup): string[] | null {
  const seen = new Set<string>();
  const search = (from: Row, way: readonly string[]): string[] | null => {
    for (const next of dependenciesOf(from, get)) {
      if (next.id === row.id) return [...way, row.seen.name];
      if (seen.has(next.id) || seen.size >= WAKE_ORDER.maxLooked) continue;
      seen.add(next.id);
      const found = search(next, [...way, next.seen.name]);
      if (found) return found;
    }
    return null;
  };
  return search(row, [row.seen.name]);
}

/** The dependencies of a workload and their faults; null if it has none. */
function wakeOrderOf(row: Row, get: Lookup): WakeOrder | null {
  const names = namesOf(row);
  if (names.length === 0) return null;
  const unknown = names.filter((name) => named(row, name, get).length === 0);
  const cycle = cycleOf(row, get);
  return {
    workloads: names,
    faults: [
      ...unknown.map((name) => `there is no workload ${name} in its namespace`),
      ...(cycle ? [`it comes after itself: ${cycle.join(', ')}`] : []),
    ],
  };
}

export class WakeOrders {
  private readonly owner: WakeOrderOwner;
  private readonly wakeOne: WakeOne;
  /** By name: the workloads shown to depend on it. */
  private readonly dependents = new Map<string, Set<string>>();
  /**
   * Waits for dependencies, by dependency; shared by simultaneous requests of the same subject, until a sleep
   * of the dependency is requested.
   */
  private readonly waiting = new Map<string, Waits>();
  /** The last sleep requested of each workload, until it has ended. The table does not show it yet. */
  private readonly sleeping = new Map<string, Promise<unknown>>();
  /** Tells the wakes of a workload that wait for its dependencies that a sleep of it was requested. */
  private readonly overtaken = new Map<string, Set<() => void>>();
  /** Dependencies that were waited for in vain, and until when not to wait again (monotonic milliseconds). */
  private readonly unready = new Map<string, number>();
  /** What each wake under way, by a request or a connection, wakes: the workload and its dependencies. */
  private readonly needed = new Set<ReadonlySet<string>>();

  constructor(owner: WakeOrderOwner, wakeOne: WakeOne) {
    this.owner = owner;
    this.wakeOne = wakeOne;
  }

  /** The wake order as clients see it. */
  shown(row: Row): WakeOrder | null {
    for (const name of namesOf(row)) {
      const key = keyOf(row, name.split('/').at(-1) ?? '');
      this.dependents.set(key, (this.dependents.get(key) ?? new Set()).add(row.id));
    }
    return wakeOrderOf(row, (id) => this.owner.table.get(id));
  }

  /** A change of a row may give a name a meaning or take it away, and open or close a cycle. */
  onRowChange(before: Row | undefined, after: Row | undefined): void {
    const isOther = !before || !after || namesOf(before).join() !== namesOf(after).join();
    const row = after ?? before;
    if (!isOther || !row || this.dependents.size === 0) return;
    const concerned = new Set<string>();
    const rows = [row];
    for (let one = rows.pop(); one && concerned.size < WAKE_ORDER.maxLooked; one = rows.pop())
      for (const id of this.dependents.get(keyOf(one, one.seen.name)) ?? []) {
        const known = concerned.has(id) ? undefined : this.owner.table.get(id);
        if (known) rows.push(known);
        concerned.add(id);
      }
    this.owner.table.showAgain([...concerned]);
  }

  /**
   * Wakes the dependencies of a sleeping workload, waits a limited time until they are ready, and then calls
   * `wake`. One that does not become ready does not block the wake. The report is an event of the dependency
   * alone: whoever may see the workload may not see what it is woken after. Fails workload_conflict at once
   * when a sleep of the workload is requested meanwhile, daemon_busy when the server shuts down, and as
   * `wake` does.
   */
  wakeAfter<R>(row: Row, request: WakeRequestOf, wake: () => Promise<R>): Promise<R> {
    const waitMs = request.by === 'connection' ? WAKE_ORDER.connectionWaitMs : WAKE_ORDER.waitMs;
    const end = this.owner.clock.monotonic() + waitMs;
    const needed = request.by === 'schedule' ? new Set<string>() : this.neededBy([row]).add(row.id);
    this.needed.add(needed);
    const prepared = this.prepareUntil(row, request, end, new Set([row.id]));
    return this.unlessOvertaken(row, prepared, wake).finally(() => this.needed.delete(needed));
  }

  /** Whether a wake under way, by a request or a connection, needs the workload awake. */
  keepsAwake(id: string): boolean {
    return [...this.needed].some((ids) => ids.has(id));
  }

  /** The ids of what wakes of these workloads wake before them. */
  neededBy(workloads: readonly Row[]): Set<string> {
    const needed = new Set<string>();
    const rows = [...workloads];
    const limit = rows.length + WAKE_ORDER.maxLooked;
    for (let one = rows.pop(); one && needed.size < limit; one = rows.pop())
      for (const next of dependenciesOf(one, (id) => this.owner.table.get(id))) {
        if (!needed.has(next.id)) rows.push(next);
        needed.add(next.id);
      }
    return needed;
  }

  /** The sleep `slept` of a workload is requested, and precedes its wakes that wait for its dependencies. */
  overtake(id: string, slept: Promise<unknown>): void {
    for (const tell of this.overtaken.get(id) ?? []) tell();
    this.waiting.delete(id);
    this.sleeping.set(id, slept);
    const onEnd = (): void => {
      if (this.sleeping.get(id) === slept) this.sleeping.delete(id);
    };
    void slept.then(onEnd, onEnd);
  }

  /** Whether a workload sleeps, or a sleep of it is under way, after which it is to be woken. */
  isAsleep({ id, seen }: Row): boolean {
    return seen.replicas === 0 || this.sleeping.has(id);
  }

  /** Whether something that the workload needs, or that needs itself, sleeps or has just been woken. */
  needsOthers(row: Row): boolean {
    return [...this.neededBy([row])].some((id) => {
      const needed = this.owner.table.get(id);
      return needed !== undefined && (this.isAsleep(needed) || this.waiting.has(id));
    });
  }

  /** Whether a wake of the workload waits for its dependencies. */
  isWaiting(id: string): boolean {
    return this.overtaken.has(id);
  }

  private async unlessOvertaken<R>(row: Row, wait: Promise<void>, wake: () => Promise<R>): Promise<R> {
    const { promise, resolve } = deferred<void>();
    let isOvertaken = false;
    const tell = (): void => {
      isOvertaken = true;
      resolve();
    };
    const all = this.overtaken.get(row.id) ?? new Set();
    this.overtaken.set(row.id, all.add(tell));
    try {
      await Promise.race([wait, promise]);
    } finally {
      all.delete(tell);
      if (all.size === 0) this.overtaken.delete(row.id);
    }
    if (this.owner.readyWait.isEnded)
      throw fail('daemon_busy', `the server ended before ${targetName(row.seen)} was woken`);
    if (!isOvertaken) return wake();
    throw fail('workload_conflict', `${targetName(row.seen)} was put to sleep while it was being woken`);
  }

  private async prepareUntil(
    row: Row,
    request: WakeRequestOf,
    end: number,
    above: ReadonlySet<string>,
  ): Promise<void> {
    const get = (id: string): Row | undefined => this.owner.table.get(id);
    const needed = dependenciesOf(row, get).filter(({ id }) => !above.has(id));
    await Promise.all(needed.map((one) => this.ready(one, request, end, new Set([...above, one.id]))));
  }

  /** Resolves when a dependency is ready, or has been waited for in vain. */
  private ready(row: Row, request: WakeRequestOf, end: number, above: ReadonlySet<string>): Promise<void> {
    if (!this.isAsleep(row) && row.state === 'awake' && isReady(row.seen)) {
      const isRequested = request.by === 'request' && this.needsOthers(row);
      return isRequested ? this.prepareUntil(row, request, end, above) : Promise.resolve();
    }
    const waits: Waits = this.waiting.get(row.id) ?? new Map();
    // A wake that the quota of one subject refuses may be allowed to another.
    const key = JSON.stringify([request.by, request.subject]);
    const joined = waits.get(key);
    if (joined) return joined;
    this.waiting.set(row.id, waits);
    const isCalledOff = (): boolean => this.waiting.get(row.id) !== waits;
    const wait = this.wakeAndWait(row, request, end, above, isCalledOff).finally(() => {
      waits.delete(key);
      if (waits.size === 0 && !isCalledOff()) this.waiting.delete(row.id);
    });
    waits.set(key, wait);
    return wait;
  }

  /** `isCalledOff`: whether a sleep of the dependency has been requested meanwhile. */
  private async wakeAndWait(
    row: Row,
    request: WakeRequestOf,
    end: number,
    above: ReadonlySet<string>,
    isCalledOff: () => boolean,
  ): Promise<void> {
    const { clock, events, table } = this.owner;
    const isWaitedFor = clock.monotonic() >= (this.unready.get(row.id) ?? 0);
    const leftMs = isWaitedFor ? Math.round(Math.max(0, end - clock.monotonic())) : 0;
    let isWoken = false;
    const work = async (): Promise<true> => {
      if (this.isAsleep(row)) {
        const prepared = this.prepareUntil(row, request, end, above);
        await this.unlessOvertaken(row, prepared, () => this.wakeOne(row.id, request));
      }
      isWoken = true;
      if (isWaitedFor) await this.untilReady(row.id, end);
      return true;
    };
    const failure = await tolerateFailure(
      withTimeout(leftMs + WAKE_ORDER.graceMs, work(), clock).then((isDone) =>
        isDone || !isWaitedFor
          ? null
          : fail('ready_timeout', `${targetName(row.seen)} was not woken within ${leftMs} ms`),
      ),
      (error) => error,
    );
    if (isWaitedFor) this.unready.delete(row.id);
    if (!failure || failure.code === 'daemon_busy') return;
    // A workload that was put to sleep had no time to become ready.
    if (isCalledOff() || (isWoken && (table.get(row.id)?.seen.replicas ?? 0) === 0)) return;
    // A wake that failed at once has not been waited for, and another may succeed.
    if (failure.code === 'ready_timeout') this.unready.set(row.id, clock.monotonic() + WAKE_ORDER.waitMs);
    events.onFailed(row, 'a wake has waited for it in vain', failure, request.operation);
  }

  private async untilReady(id: string, end: number): Promise<void> {
    const { clock, readyWait, table } = this.owner;
    // A schedule does not wake what it has not put to sleep.
    if ((table.get(id)?.seen.replicas ?? 0) === 0) return;
    await readyWait.untilReady(id, Math.round(Math.max(0, end - clock.monotonic())));
  }
}
