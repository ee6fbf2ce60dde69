// Requests to put many workloads to sleep or wake them: docs/reference.md "Bulk sleep and wake".
import type { BulkChange, BulkResult, ObservedWorkload, StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { selectorOfWorkloads } from '../../protocol/workload_selection.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { Semaphore } from '../../runtime/semaphore.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { isSleptBy, isWokenBy } from './receipt_checks.ts';
import type { RequestOrder } from './request_order.ts';
import type { InTurn } from './wake_order.ts';

export interface BulkChangesOwner {
  rows(): StoredWorkload[];
  /** undefined: it is no longer in its cluster. */
  get(id: string): StoredWorkload | undefined;
  readonly requests: RequestOrder;
  /** See `ScaleChanges.note`. */
  note(ids: readonly string[], to: BulkChange['to'], order: number): void;
  /** Resolves with the workload after the change. */
  sleep(id: string, change: Pick<BulkChange, 'holdMs' | 'operation'>): Promise<ObservedWorkload>;
  /** `inTurn` makes each change in the cluster; waits for dependencies are outside of it. */
  wake(
    id: string,
    change: Pick<BulkChange, 'operation' | 'subject'>,
    inTurn: InTurn,
  ): Promise<ObservedWorkload>;
  /** Whether a wake of the workload is under way or waits for its dependencies. */
  isWaking(id: string): boolean;
  /** Whether a workload is as the list has it, and no change of it is under way. */
  isSettled(row: StoredWorkload): boolean;
  /** The change of one workload after the other as a dry run, see `ScaleChanges.rehearsal`. */
  rehearsal(change: BulkChange, operation: string): (id: string) => Promise<ObservedWorkload>;
  /** These changes have failed. Resolves when that is in the audit log. */
  onFailed(change: BulkChange, results: readonly BulkResult[]): Promise<void>;
}

const compare = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

const byPlace = (one: StoredWorkload, other: StoredWorkload): number =>
  compare(one.clusterId, other.clusterId) ||
  compare(one.seen.namespace, other.seen.namespace) ||
  compare(one.seen.name, other.seen.name) ||
  compare(one.seen.kind, other.seen.kind);

/** A workload of a bulk change, with its place among the results. */
type Numbered = readonly [index: number, row: StoredWorkload];

/** Makes the change of a workload, and resolves with the workload after it. */
type ChangeOne = (row: StoredWorkload) => Promise<ObservedWorkload>;

/** The operation in the receipts of dry runs, which are not stored. */
const REHEARSED = '0'.repeat(26);

const isDoneBy = (seen: ObservedWorkload, operation: string | undefined): boolean =>
  isSleptBy(seen, operation) || isWokenBy(seen, operation);

const isThere = (replicas: number, to: BulkChange['to']): boolean => (replicas === 0) === (to === 'asleep');

/** The outcome of a change, or of its dry run. `isChange`: it is one even if another request has made it. */
function outcomeOf(
  before: ObservedWorkload,
  after: ObservedWorkload,
  { to, isDryRun, operation }: BulkChange,
  isChange: boolean,
): Pick<BulkResult, 'outcome' | 'replicas' | 'code' | 'message'> {
  const made = isDryRun ? REHEARSED : operation;
  // Already done and undone since, so the answer is the same as then.
  const count = isSleptBy(after, made) ? 0 : after.replicas;
  if (!isThere(count, to)) {
    const message = 'something else has changed its replicas at the same time';
    const replicas = isDryRun ? before.replicas : count;
    return { outcome: 'failed', replicas, code: 'workload_conflict', message };
  }
  const fine = { code: null, message: null };
  if (!isChange && !isDoneBy(after, made)) return { ...fine, outcome: 'unchanged', replicas: count };
  if (!isDryRun) return { ...fine, outcome: 'changed', replicas: count };
  // The list does not have what it would change.
  const present = isThere(before.replicas, to) ? (after.receipt?.replicas ?? 0) : before.replicas;
  return { ...fine, outcome: 'would_change', replicas: present };
}

const isDependent = ({ seen }: StoredWorkload): boolean => Boolean(seen.sleep?.after);

/** Those without dependencies first, since the others may wait for a minute. */
const byDependency = ([, one]: Numbered, [, other]: Numbered): number =>
  Number(isDependent(one)) - Number(isDependent(other));

export class BulkChanges {
  private readonly owner: BulkChangesOwner;
  /**
   * By cluster; run a few changes at a time, of all requests: the queue of calls to a cluster is short, and
   * must leave room for other callers.
   */
  private readonly lanes = new Map<string, Semaphore>();
  private isEnded = false;

  constructor(owner: BulkChangesOwner) {
    this.owner = owner;
  }

  /**
   * Changes each workload independently, or checks in a dry run whether it could. Resolves with one result
   * per workload in the order of the list. Fails invalid_spec when too many are selected, before anything is
   * changed; standing_by when this Berth could not change all of them because its lease was not certain;
   * daemon_busy when the server shuts down.
   */
  async run(change: BulkChange): Promise<BulkResult[]> {
    const isSelected = selectorOfWorkloads(change);
    // All workloads are looked at in one turn, and a copy of a row would take 50 µs.
    const isWanted = ({ clusterId, state, seen: { namespace, labels } }: StoredWorkload): boolean =>
      isSelected({ clusterId, state, namespace, labels });
    const rows = this.owner.rows().filter(isWanted).sort(byPlace);
    if (rows.length > CLOUD.maxBulk)
      throw fail(
        'invalid_spec',
        `this selects ${rows.length} workloads, more than ${CLOUD.maxBulk} at once`,
        {
          hint: 'Name a cluster or namespaces, and send it once for each.',
        },
      );
    const changeOne = this.changeOf(rows, change);
    const results = await this.owner.requests.during(() => this.changeAll(rows, change, changeOne));
    // Not a result of the workload: once the whole operation fails, a retry with its key goes on with it.
    const prevented = results.filter(({ code }) => code === 'standing_by');
    const left = results.filter(({ code }) => this.isEnded && code === 'daemon_busy');
    const failed = results.filter((result) => result.outcome === 'failed');
    await this.owner.onFailed(
      change,
      failed.filter((result) => !prevented.includes(result) && !left.includes(result)),
    );
    if (prevented[0]) throw fail('standing_by', prevented[0].message ?? '');
    if (left.length > 0)
      throw fail(
        'daemon_busy',
        `the server ended before it had changed ${left.length} of ${rows.length} workloads`,
      );
    return results;
  }

  /** Begins no more changes, now and later: the server shuts down. Those under way finish. */
  end(): void {
    this.isEnded = true;
  }

  /**
   * Begins some workloads per cluster at a time, so that one that waits for its dependencies delays no other.
   * Not all at once: the time that a wake waits counts from its beginning.
   */
  private async changeAll(
    rows: readonly StoredWorkload[],
    change: BulkChange,
    changeOne: ChangeOne,
  ): Promise<BulkResult[]> {
    const results: BulkResult[] = [];
    const changeRest = async (rest: Iterator<Numbered>): Promise<void> => {
      for (let next = rest.next(); !next.done; next = rest.next()) {
        const [index, row] = next.value;
        results[index] = await this.resultOf(row, change, changeOne);
      }
    };
    const numbered = [...rows.entries()];
    if (change.to === 'awake') numbered.sort(byDependency);
    const ofClusters = new Map<string, Numbered[]>();
    for (const [index, row] of numbered) {
      const ofCluster = ofClusters.get(row.clusterId) ?? [];
      ofClusters.set(row.clusterId, ofCluster);
      ofCluster.push([index, row]);
    }
    const places = [...ofClusters.values()].flatMap((ofCluster) => {
      const rest = ofCluster.values();
      return Array.from({ length: CLOUD.bulkPlaces }, () => changeRest(rest));
    });
    await Promise.all(places);
    return results;
  }

  private changeOf(rows: readonly StoredWorkload[], change: BulkChange): ChangeOne {
    const { to, isDryRun } = change;
    const { owner } = this;
    if (isDryRun) {
      const rehearse = owner.rehearsal(change, REHEARSED);
      return ({ id, clusterId }) => this.inLane(clusterId, () => rehearse(id));
    }
    const { requests } = owner;
    const order = requests.next();
    const ids = rows.map(({ id }) => id);
    owner.note(ids, to, order);
    return async ({ id: changed, clusterId }) => {
      // Before its dependencies are woken.
      requests.assertLast(changed, to, order);
      const inTurn: InTurn = (id, work) =>
        this.inLane(clusterId, () => {
          requests.assertLast(id, to, order);
          return work();
        });
      return to === 'asleep'
        ? inTurn(changed, () => owner.sleep(changed, change))
        : owner.wake(changed, change, inTurn);
    };
  }

  private async resultOf(
    selected: StoredWorkload,
    change: BulkChange,
    changeOne: ChangeOne,
  ): Promise<BulkResult> {
    const { id, clusterId } = selected;
    // Its turn may come long after the request.
    const row = this.owner.get(id) ?? selected;
    const { kind, namespace, name, replicas } = row.seen;
    const subject = { id, clusterId, kind, namespace, name };
    const isAlready = isThere(replicas, change.to);
    if (isAlready && this.owner.isSettled(row)) {
      // Already done for this operation, so the answer is the same as then.
      const outcome = isDoneBy(row.seen, change.operation) ? 'changed' : 'unchanged';
      return { ...subject, outcome, replicas, code: null, message: null };
    }
    // The sleep precedes a wake that has not changed anything yet.
    const isOpen = change.to === 'asleep' && this.owner.isWaking(id);
    const isChange = !isAlready || isOpen;
    return tolerateFailure(
      changeOne(row).then((after) => ({ ...subject, ...outcomeOf(row.seen, after, change, isChange) })),
      ({ code, message }): BulkResult => ({ ...subject, outcome: 'failed', replicas: null, code, message }),
    );
  }

  private inLane<R>(clusterId: string, work: () => Promise<R>): Promise<R> {
    const lanes = this.lanes.get(clusterId) ?? new Semaphore(CLOUD.bulkLanes);
    this.lanes.set(clusterId, lanes);
    return lanes.run(() => {
      if (this.isEnded) throw fail('daemon_busy', 'the server has ended');
      return work();
    });
  }
}
