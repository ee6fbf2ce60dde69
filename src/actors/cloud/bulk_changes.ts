// Requests to put many workloads to sleep or wake them: docs/reference.md "Bulk sleep and wake".
import type { BulkChange, BulkResult, StoredWorkload } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import { selectorOfWorkloads } from '../../protocol/workload_selection.ts';
import { tolerateFailure } from '../../runtime/actor.ts';
import { Semaphore } from '../../runtime/semaphore.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { isSleptBy, isWokenBy } from './receipt_checks.ts';
import type { InTurn } from './wake_order.ts';

export interface BulkChangesOwner {
  rows(): StoredWorkload[];
  /** Resolves with the replica count after the change. */
  sleep(id: string, holdMs: number | null, operation: string | undefined): Promise<number>;
  /** `inTurn` makes each change in the cluster; waits for dependencies are outside of it. */
  wake(id: string, change: Pick<BulkChange, 'operation' | 'subject'>, inTurn: InTurn): Promise<number>;
  /** Whether a wake of the workload is under way or waits for its dependencies. */
  isWaking(id: string): boolean;
  /** The change of one workload after the other as a dry run, see `ScaleChanges.rehearsal`. */
  rehearsal(change: BulkChange): (id: string) => Promise<number>;
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

/** Makes the change of a workload, and resolves with the replica count after it. */
type ChangeOne = (id: string, inTurn: InTurn) => Promise<number>;

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
    const results = await this.changeAll(rows, change);
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
  private async changeAll(rows: readonly StoredWorkload[], change: BulkChange): Promise<BulkResult[]> {
    const results: BulkResult[] = [];
    const changeOne = this.changeOf(change);
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

  private changeOf(change: BulkChange): ChangeOne {
    const { to, holdMs, isDryRun, operation } = change;
    if (isDryRun) {
      const rehearse = this.owner.rehearsal(change);
      return (id, inTurn) => inTurn(() => rehearse(id));
    }
    return to === 'asleep'
      ? (id, inTurn) => inTurn(() => this.owner.sleep(id, holdMs, operation))
      : (id, inTurn) => this.owner.wake(id, change, inTurn);
  }

  private async resultOf(
    { id, clusterId, seen }: StoredWorkload,
    { to, isDryRun, operation }: BulkChange,
    changeOne: ChangeOne,
  ): Promise<BulkResult> {
    const { kind, namespace, name, replicas } = seen;
    const subject = { id, clusterId, kind, namespace, name };
    const isThere = (count: number): boolean => (count === 0) === (to === 'asleep');
    // Already done for this operation, so the answer is the same as then.
    if (isThere(replicas) && (isSleptBy(seen, operation) || isWokenBy(seen, operation)))
      return { ...subject, outcome: 'changed', replicas, code: null, message: null };
    // The sleep precedes a wake that has not changed anything yet.
    const isOpen = to === 'asleep' && this.owner.isWaking(id);
    if (isThere(replicas) && !isOpen)
      return { ...subject, outcome: 'unchanged', replicas, code: null, message: null };
    const changed = changeOne(id, (work) => this.inLane(clusterId, work));
    const done = changed.then((count): BulkResult => {
      const outcome = isThere(count) ? (isDryRun ? 'would_change' : 'changed') : 'failed';
      const message = isThere(count) ? null : 'something else has changed its replicas at the same time';
      const after = isDryRun ? replicas : count;
      return { ...subject, outcome, replicas: after, code: message && 'workload_conflict', message };
    });
    return tolerateFailure(
      done,
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
