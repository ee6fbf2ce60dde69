// State: the operations of the last day, those under way, and the ends not yet in the journal. Rebuilt from:
// the store; what was under way when the daemon ended is looked up in the clusters.
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import {
  type CloudOperationsProtocol,
  CUT_OFF,
  type OperationRequest,
  type OperationResult,
  type StoredOperation,
} from '../../protocol/cloud_operations.ts';
import { ERRORS, fail } from '../../protocol/errors.ts';
import { newUlid } from '../../protocol/ulid.ts';
import {
  actor,
  type Context,
  type Handlers,
  isFailure,
  type MessageOf,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { CLOUD_OPERATIONS } from '../../settings/cloud_limits.ts';
import { THREADS } from '../../settings/limits.ts';
import { OperationEnds } from './operation_ends.ts';
import { cutOffResult } from './operation_events.ts';
import { isMissing, namedReason, presentTarget, removedAnswer } from './removals.ts';

export interface CloudOperationsConfig {
  store: CloudStore;
}

/** The outcome of an interrupted operation: its answer, or that it was not done; null: unknown. */
type Outcome = { answer: object } | 'not_done' | null;

/**
 * Whether a retry may have another result, so that it is carried out:
 * docs/reference.md "Operations and retries".
 */
const mayRetry = ({ failure }: OperationResult): boolean =>
  failure !== null && ERRORS[failure.code].status >= 500;

const UNDER_WAY = { state: 'asked', settledAt: null, result: null, isTold: false } as const;

const removedEarlier = (row: StoredOperation): OperationResult => ({
  answer: JSON.stringify(removedAnswer(row)),
  failure: null,
  reason: namedReason(row, 'an earlier attempt has removed it'),
});

const endNotStored = (id: string, cause: string) =>
  fail('storage_full', `the operation ${id} has ended, but its end is not on disk yet: ${cause}`, {
    hint: `It may have been done: GET /k8s/operations/${id} has its result.`,
  });

class CloudOperations {
  private readonly context: Context;
  private readonly store: CloudStore;
  /** Oldest first. */
  private readonly rows = new Map<string, StoredOperation>();
  private readonly idOfKey = new Map<string, string>();
  /** Operations under way; each settles at its end. */
  private readonly runs = new Map<string, Deferred<void>>();
  /** Removals under way, of which an earlier attempt may have been carried out. */
  private readonly repeated = new Set<string>();
  private readonly ends: OperationEnds;
  /** By workload: settles once the outcome of the interrupted operations on it is known. */
  private readonly lookups = new Map<string, Promise<void>>();
  private keptBytes = 0;

  constructor(context: Context, { store }: CloudOperationsConfig) {
    this.context = context;
    this.store = store;
    this.ends = new OperationEnds({
      events: context.ref('cloudevents'),
      clock: context.clock,
      store: (row) => this.saveEnd(row),
      onJournaled: (row) => this.markTold(row),
      onDefect: (error) => context.crash(error),
    });
  }

  async load(): Promise<void> {
    for (const row of await this.store.operations()) this.keep(row);
    const rows = [...this.rows.values()];
    const untold = rows.filter(({ state, isTold }) => state !== 'asked' && !isTold);
    this.ends.resume(untold.sort((one, other) => (one.settledAt ?? 0) - (other.settledAt ?? 0)));
    // Not awaited, because a cluster that does not answer must not delay the others.
    for (const row of rows.filter(({ state }) => state === 'asked')) {
      this.startRun(row.id);
      const { workloadId } = row.subject;
      const earlier = (workloadId !== null && this.lookups.get(workloadId)) || Promise.resolve();
      const lookup = earlier.then(() => this.lookUp(row)).finally(() => this.endRun(row.id));
      if (workloadId !== null) this.lookups.set(workloadId, lookup);
      lookup.catch((error: unknown) => this.context.crash(error));
    }
  }

  async begin(request: OperationRequest): Promise<ReplyOf<CloudOperationsProtocol, 'begin'>> {
    const { key, subject } = request;
    // Interrupted operations come before later requests.
    if (subject.workloadId !== null) await this.lookups.get(subject.workloadId);
    const target = await presentTarget(this.store, request);
    for (;;) {
      const known = this.find(key);
      if (!known) break;
      if (known.fingerprint !== request.fingerprint)
        throw fail('key_reused', `the Idempotency-Key belongs to another request, the operation ${known.id}`);
      const run = this.runs.get(known.id);
      if (run) {
        await run.promise;
        // Whoever has waited for an attempt gets its outcome, and makes no further one.
        const { result } = this.rows.get(known.id) ?? known;
        if (result?.failure) return { id: known.id, run: false, result };
      } else if (known.state === 'done') return { id: known.id, run: false, result: known.result };
      else return this.runAgain(known, { ...request, target });
    }
    const askedAt = this.context.clock.now();
    return this.run({ id: newUlid(askedAt), ...request, target, askedAt, ...UNDER_WAY });
  }

  async settle(
    message: MessageOf<CloudOperationsProtocol, 'settle'>,
  ): Promise<ReplyOf<CloudOperationsProtocol, 'settle'>> {
    const { id, isWithdrawn = false } = message;
    const row = this.rows.get(id);
    if (!row) return { result: message.result };
    const isRemovedEarlier = this.repeated.has(id) && isMissing(row, message.result.failure?.code);
    const result = isRemovedEarlier ? removedEarlier(row) : message.result;
    // What is gone has no names any more.
    const subject = row.target ? row.subject : message.subject;
    const settledAt = this.context.clock.now();
    // Without a key, the answer cannot be requested again.
    const kept = row.key === null ? { ...result, answer: null } : result;
    const state = mayRetry(result) ? 'failed' : 'done';
    await this.end({ ...row, subject, state, settledAt, result: kept, isTold: isWithdrawn });
    return { result };
  }

  read(id: string): { operation: StoredOperation | null } {
    return { operation: this.rows.get(id) ?? null };
  }

  /** The operation with this key, unless it is too old. */
  private find(key: string | null): StoredOperation | undefined {
    const row = key === null ? undefined : this.rows.get(this.idOfKey.get(key) ?? '');
    return row && (this.runs.has(row.id) || !this.isExpired(row)) ? row : undefined;
  }

  private isExpired({ askedAt }: StoredOperation): boolean {
    return this.context.clock.now() - askedAt > CLOUD_OPERATIONS.keptMs;
  }

  /** Carries out an operation once more, after an attempt that failed or was interrupted. */
  private async runAgain(
    known: StoredOperation,
    request: OperationRequest,
  ): Promise<ReplyOf<CloudOperationsProtocol, 'begin'>> {
    if (!known.target) return this.run({ ...known, ...request, ...UNDER_WAY });
    this.repeated.add(known.id);
    const { subject, target } = known;
    return this.run({ ...known, ...request, subject, target, ...UNDER_WAY });
  }

  private async run(row: StoredOperation): Promise<ReplyOf<CloudOperationsProtocol, 'begin'>> {
    if (this.ends.isFull) throw fail('storage_full', 'the ends of too many changes wait for the audit log');
    const before = this.rows.get(row.id);
    this.startRun(row.id);
    this.keep(row);
    try {
      await this.save(row);
    } catch (error) {
      this.forget(row);
      if (before) this.keep(before);
      this.endRun(row.id);
      throw error;
    }
    return { id: row.id, run: true, result: null };
  }

  /** Stores the end of an operation, then journals it, unless there is nothing to tell. */
  private async end(row: StoredOperation): Promise<void> {
    this.keep(row);
    try {
      await this.save(row);
    } catch (error) {
      if (!row.isTold) this.ends.writeLater(row);
      throw isFailure(error) && error.code === 'storage_full' ? endNotStored(row.id, error.message) : error;
    } finally {
      this.endRun(row.id);
    }
    // Only now, because events are journaled from stored results, so that the next daemon does not repeat
    // them.
    if (!row.isTold) await this.ends.write(row);
  }

  private startRun(id: string): void {
    this.runs.set(id, deferred());
  }

  private endRun(id: string): void {
    this.runs.get(id)?.resolve();
    this.runs.delete(id);
    this.repeated.delete(id);
  }

  private keep(row: StoredOperation): void {
    this.keptBytes +=
      (row.result?.answer?.length ?? 0) - (this.rows.get(row.id)?.result?.answer?.length ?? 0);
    this.rows.set(row.id, row);
    if (row.key !== null) this.idOfKey.set(row.key, row.id);
  }

  private forget({ id, key }: StoredOperation): void {
    this.keptBytes -= this.rows.get(id)?.result?.answer?.length ?? 0;
    this.rows.delete(id);
    if (key !== null && this.idOfKey.get(key) === id) this.idOfKey.delete(key);
  }

  /** Saves a row, and in the same commit removes those beyond the limits. */
  private save(row: StoredOperation): Promise<void> {
    const removed: string[] = [];
    const untold = this.ends.ids();
    for (const old of this.rows.values()) {
      const isRoom =
        this.rows.size <= CLOUD_OPERATIONS.maxKept && this.keptBytes <= CLOUD_OPERATIONS.maxKeptBytes;
      if (isRoom && !this.isExpired(old)) break;
      if (old.id === row.id || this.runs.has(old.id) || untold.has(old.id)) continue;
      this.forget(old);
      removed.push(old.id);
    }
    return this.store.saveOperation(row, removed);
  }

  /** Whether an end that a full disk refused is on disk now, or a retry has begun since. */
  private saveEnd(row: StoredOperation): Promise<boolean> {
    if (this.rows.get(row.id) !== row) return Promise.resolve(true);
    return tolerateFailure(
      this.store.saveOperation(row, []).then(() => true),
      () => false,
    );
  }

  /** Not awaited: unmarked ends are looked up in the journal by the next daemon. */
  private markTold(row: StoredOperation): void {
    // A retry may have begun meanwhile.
    if (this.rows.get(row.id) !== row) return;
    const told = { ...row, isTold: true };
    this.keep(told);
    tolerateFailure(this.store.saveOperation(told, []), () => undefined).catch((error: unknown) =>
      this.context.crash(error),
    );
  }

  /** Finds out the outcome of an operation interrupted by the end of the daemon. */
  private async lookUp(row: StoredOperation): Promise<void> {
    const outcome = await tolerateFailure(this.outcomeOf(row), () => null);
    if (outcome !== null && outcome !== 'not_done') {
      const reason = namedReason(row, CUT_OFF);
      const result = { answer: JSON.stringify(outcome.answer), failure: null, reason };
      await tolerateFailure(this.settle({ id: row.id, subject: row.subject, result }), () => null);
      return;
    }
    const settledAt = this.context.clock.now();
    const cut = cutOffResult(outcome === 'not_done' ? false : null);
    const result = { ...cut, reason: namedReason(row, cut.reason) };
    const failed: StoredOperation = { ...row, state: 'failed', settledAt, result, isTold: false };
    // A retry that finds nothing left to remove has not removed it either.
    if (outcome === 'not_done' && row.target) failed.target = null;
    await tolerateFailure(this.end(failed), () => undefined);
  }

  private async outcomeOf(row: StoredOperation): Promise<Outcome> {
    const { id, action, subject } = row;
    switch (action) {
      case 'sleepWorkload':
      case 'wakeWorkload': {
        const message = { id: subject.workloadId ?? '', operation: id };
        const { replicas } = await this.context.ref('workloads').ask('outcome', message);
        return replicas === null ? 'not_done' : { answer: { replicas } };
      }
      case 'registerCluster': {
        const row = await this.store.cluster(id);
        return row ? { answer: { id, name: row.name } } : 'not_done';
      }
      case 'createTether': {
        const row = (await this.store.tethers()).find((tether) => tether.id === id);
        return row ? { answer: { tether_id: id, local_port: row.localPort } } : 'not_done';
      }
      default:
        return this.outcomeOfRemoval(row);
    }
  }

  private async outcomeOfRemoval(row: StoredOperation): Promise<Outcome> {
    // No removal, or one of an earlier version of Berth.
    if (row.target === undefined) return null;
    const answer = removedAnswer(row);
    return answer === null || (await presentTarget(this.store, row)) ? 'not_done' : { answer };
  }
}

async function init(
  context: Context,
  config: CloudOperationsConfig,
): Promise<Handlers<CloudOperationsProtocol>> {
  const operations = new CloudOperations(context, config);
  await operations.load();
  return {
    begin: ({ request }) => context.replyLater(operations.begin(request)),
    settle: (message) => context.replyLater(operations.settle(message)),
    read: ({ id }) => operations.read(id),
  };
}

/**
 * At `operations`: the requests to the cloud part. A change is on disk before it is made, so that it is made
 * once and reported once, whenever the daemon is killed. docs/reference.md "Operations and retries".
 */
export const cloudOperationsActor = actor<CloudOperationsProtocol, CloudOperationsConfig>(
  'operations',
  init,
  {
    mailbox: THREADS.mailboxCapacity,
  },
);
