// The order of wakes: a workload's dependencies are woken first, and waited for (dependency_waits.ts).
// docs/reference.md "Wake order".
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { WakeOrder } from '../../protocol/policies.ts';
import type { WakeCause } from '../../protocol/receipts.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { deferred } from '../../runtime/deferred.ts';
import { WAKE_ORDER } from '../../settings/cloud_limits.ts';
import { dependenciesOf, dependencyKey, dependencyNames, wakeOrderOf } from './dependencies.ts';
import { DependencyWaits, type DependencyWaitsOwner } from './dependency_waits.ts';
import { targetName } from './workload_patch.ts';
import { isReady } from './workload_record.ts';

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

export interface WakeOrderOwner extends DependencyWaitsOwner {
  readonly table: DependencyWaitsOwner['table'] & {
    showAgain(ids: readonly string[]): void;
    /** Whether a record is as the workload is in its cluster. */
    isCurrent(row: StoredWorkload): boolean;
  };
  readonly readyWait: DependencyWaitsOwner['readyWait'] & { isEnded: boolean };
  /** Reads a workload from its cluster into its record. */
  refresh(row: StoredWorkload): Promise<void>;
}

type Row = StoredWorkload;
/** Wakes one workload without its dependencies. Resolves when the cluster has accepted the change. */
type WakeOne = (id: string, request: WakeRequestOf) => Promise<unknown>;

/** The dependencies of one wake while they are woken. */
interface Preparation {
  request: WakeRequestOf;
  /** Until when they are waited for (monotonic milliseconds). */
  end: number;
  /** The ids of what it needs awake, itself included; empty while it is not known to wake anything. */
  needed: Set<string>;
  /** By id: the dependencies that are woken or waited for; there may be many ways to each. */
  looked: Map<string, Promise<void>>;
}

export class WakeOrders {
  private readonly owner: WakeOrderOwner;
  private readonly wakeOne: WakeOne;
  private readonly waits: DependencyWaits;
  /** By name: the workloads shown to depend on it. */
  private readonly dependents = new Map<string, Set<string>>();
  /** The last sleep requested of each workload, until it has ended. The table does not show it yet. */
  private readonly sleeping = new Map<string, Promise<unknown>>();
  /** Tells the wakes of a workload that wait for its dependencies that a sleep of it was requested. */
  private readonly overtaken = new Map<string, Set<() => void>>();
  /** For each wake that reads workloads: those whose sleep has been requested since. */
  private readonly reading = new Set<Set<string>>();
  /** What each wake under way, by a request or a connection, wakes: the workload and its dependencies. */
  private readonly needed = new Set<ReadonlySet<string>>();

  constructor(owner: WakeOrderOwner, wakeOne: WakeOne) {
    this.owner = owner;
    this.wakeOne = wakeOne;
    this.waits = new DependencyWaits(owner);
  }

  /** The wake order as clients see it. */
  shown(row: Row): WakeOrder | null {
    for (const name of dependencyNames(row)) {
      const key = dependencyKey(row, name.split('/').at(-1) ?? '');
      this.dependents.set(key, (this.dependents.get(key) ?? new Set()).add(row.id));
    }
    return wakeOrderOf(row, (id) => this.owner.table.get(id));
  }

  /** A change of a row may give a name a meaning or take it away, and open or close a cycle. */
  onRowChange(before: Row | undefined, after: Row | undefined): void {
    const isOther = !before || !after || dependencyNames(before).join() !== dependencyNames(after).join();
    const row = after ?? before;
    if (!isOther || !row || this.dependents.size === 0) return;
    const concerned = new Set<string>();
    const rows = [row];
    for (let one = rows.pop(); one && concerned.size < WAKE_ORDER.maxLooked; one = rows.pop())
      for (const id of this.dependents.get(dependencyKey(one, one.seen.name)) ?? []) {
        const known = concerned.has(id) ? undefined : this.owner.table.get(id);
        if (known) rows.push(known);
        concerned.add(id);
      }
    this.owner.table.showAgain([...concerned]);
  }

  /**
   * Whether a wake of the workload belongs in `wakeAfter`: it sleeps or, for a request, something that it
   * needs does, as after a sleep of both that reached only that; or the table may be late about that.
   */
  isOrdered(row: Row, by: WakeCause): boolean {
    if (dependencyNames(row).length === 0) return false;
    const late = this.lateOf(row);
    const isDoubtful = by === 'request' ? late.length > 0 : late.includes(row);
    return isDoubtful || this.needsFirst(row, by);
  }

  /**
   * Wakes the dependencies of a workload that sleeps or, for a request, of an awake one, waits a limited
   * time until they are ready, and then calls `wake` with the ids of what a request or a connection needs
   * awake. What the table may be late about is read first. A dependency that does not become ready does not
   * block the wake. The report is an event of the dependency alone: whoever may see the workload may not see
   * what it is woken after. Fails workload_conflict at once when a sleep of the workload is requested
   * meanwhile, daemon_busy when the server shuts down, and as `wake` does.
   */
  wakeAfter<R>(
    row: Row,
    request: WakeRequestOf,
    wake: (needed: ReadonlySet<string>) => Promise<R>,
  ): Promise<R> {
    const waitMs = request.by === 'connection' ? WAKE_ORDER.connectionWaitMs : WAKE_ORDER.waitMs;
    const end = this.owner.clock.monotonic() + waitMs;
    const needed = new Set<string>();
    this.needed.add(needed);
    const preparation = { request, end, needed, looked: new Map() };
    if (request.by === 'request' || this.isAsleep(row)) this.need(row, preparation);
    const prepared = this.prepare(row, preparation);
    return this.unlessOvertaken(row, prepared, () => wake(needed)).finally(() => this.needed.delete(needed));
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
    for (const asleep of this.reading) asleep.add(id);
    this.waits.callOff(id);
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

  /** Whether a wake of the workload waits for its dependencies. */
  isWaiting(id: string): boolean {
    return this.overtaken.has(id);
  }

  /** Whether something that the workload needs, or that needs itself, sleeps or has just been woken. */
  private needsOthers(row: Row): boolean {
    return [...this.neededBy([row])].some((id) => {
      const needed = this.owner.table.get(id);
      return needed !== undefined && (this.isAsleep(needed) || this.waits.has(id));
    });
  }

  /** Whether a wake of the workload is to wake what it needs, by what is known. */
  private needsFirst(row: Row, by: WakeCause): boolean {
    return this.isAsleep(row) || (by === 'request' && this.needsOthers(row));
  }

  /** The workload and what it needs, as far as the table may be late about them. */
  private lateOf(row: Row): Row[] {
    const { table } = this.owner;
    const rows = [...this.neededBy([row])].flatMap((id) => table.get(id) ?? []);
    return [row, ...rows.filter(({ id }) => id !== row.id)].filter((one) => !table.isCurrent(one));
  }

  private async prepare(row: Row, preparation: Preparation): Promise<void> {
    const late = this.lateOf(row);
    const slept = new Set<string>();
    if (late.length > 0) await this.read(late, preparation.request, slept);
    const fresh = this.owner.table.get(row.id);
    if (!fresh || slept.has(row.id) || !this.needsFirst(fresh, preparation.request.by)) return;
    this.need(fresh, preparation);
    await this.prepareUntil(fresh, preparation, new Set([row.id, ...slept]));
  }

  private need(row: Row, { request, needed }: Preparation): void {
    if (request.by === 'schedule') return;
    for (const id of this.neededBy([row]).add(row.id)) needed.add(id);
  }

  /** `slept` gets the workloads whose sleep is requested meanwhile. */
  private async read(rows: readonly Row[], { inTurn }: WakeRequestOf, slept: Set<string>): Promise<void> {
    this.reading.add(slept);
    const reads = rows.map((row) => {
      const refresh = (): Promise<void> => this.owner.refresh(row);
      // One that cannot be read counts as it was last seen.
      return tolerateFailure(inTurn ? inTurn(row.id, refresh) : refresh(), () => undefined);
    });
    await Promise.all(reads).finally(() => this.reading.delete(slept));
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

  /** `above`: what is not woken or waited for. */
  private async prepareUntil(row: Row, preparation: Preparation, above: ReadonlySet<string>): Promise<void> {
    const get = (id: string): Row | undefined => this.owner.table.get(id);
    const needed = dependenciesOf(row, get).filter(({ id }) => !above.has(id));
    await Promise.all(needed.map((one) => this.ready(one, preparation, new Set([...above, one.id]))));
  }

  /** Resolves when a dependency and what is woken before it are ready, or have been waited for in vain. */
  private ready(row: Row, preparation: Preparation, above: ReadonlySet<string>): Promise<void> {
    const { looked } = preparation;
    const known = looked.get(row.id);
    if (known) return known;
    const done = this.readyAfterOwn(row, preparation, above);
    looked.set(row.id, done);
    return done;
  }

  private async readyAfterOwn(row: Row, preparation: Preparation, above: ReadonlySet<string>): Promise<void> {
    const { request, end } = preparation;
    const isDown = this.isAsleep(row);
    const isUp = !isDown && row.state === 'awake' && isReady(row.seen);
    if (isUp && request.by !== 'request') return;
    const isPrepared = isDown || this.needsOthers(row);
    // Not a part of the wait below: another wake may have begun that while nothing slept.
    const own = isPrepared ? this.prepareUntil(row, preparation, above) : Promise.resolve();
    const prepared = this.unlessOvertaken(row, own, () => Promise.resolve());
    const waits = [tolerateFailure(prepared, () => undefined)];
    if (!isUp)
      waits.push(
        this.waits.untilReady(row, request, end, async () => {
          if (isDown) await this.unlessOvertaken(row, own, () => this.wakeOne(row.id, request));
        }),
      );
    await Promise.all(waits);
  }
}
