// State: the operations of the last day, those under way, and the ends not yet in the journal. Rebuilt from:
// the store; what was under way when the daemon ended is looked up in the clusters.
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { CloudEventsProtocol } from '../../protocol/cloud_events.ts';
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
  type MessageOf,
  type Ref,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { type Deferred, deferred } from '../../runtime/deferred.ts';
import { CLOUD_OPERATIONS } from '../../settings/cloud_limits.ts';
import { THREADS } from '../../settings/limits.ts';
import { cutOffEvent, endEvent } from './operation_events.ts';

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

class CloudOperations {
  private readonly context: Context;
  private readonly store: CloudStore;
  private readonly events: Ref<CloudEventsProtocol>;
  /** Oldest first. */
  private readonly rows = new Map<string, StoredOperation>();
  private readonly idOfKey = new Map<string, string>();
  /** Operations under way; each settles at its end. */
  private readonly runs = new Map<string, Deferred<void>>();
  /** Operations whose end is not in the journal yet. */
  private readonly untold = new Set<string>();
  /** Those of an earlier daemon or a full disk, whose end may be in the journal, or wait for it. */
  private readonly uncertain = new Set<string>();
  /** By workload: settles once the outcome of the interrupted operations on it is known. */
  private readonly lookups = new Map<string, Promise<void>>();
  private keptBytes = 0;

  constructor(context: Context, { store }: CloudOperationsConfig) {
    this.context = context;
    this.store = store;
    this.events = context.ref('cloudevents');
  }

  async load(): Promise<void> {
    for (const row of await this.store.operations()) {
      this.keep(row);
      if (row.isTold) continue;
      this.uncertain.add(row.id);
      if (row.state !== 'asked') this.untold.add(row.id);
    }
    // Not awaited, because a cluster that does not answer must not delay the others.
    const cutOff = [...this.rows.values()].filter(({ state }) => state === 'asked');
    for (const row of cutOff) {
      this.startRun(row.id);
      const { workloadId } = row.subject;
      const earlier = (workloadId !== null && this.lookups.get(workloadId)) || Promise.resolve();
      const lookup = earlier.then(() => this.lookUp(row)).finally(() => this.endRun(row.id));
      if (workloadId !== null) this.lookups.set(workloadId, lookup);
      lookup.catch((error: unknown) => this.context.crash(error));
    }
    if (this.untold.size > 0) this.tellUntold().catch((error: unknown) => this.context.crash(error));
  }

  async begin(request: OperationRequest): Promise<ReplyOf<CloudOperationsProtocol, 'begin'>> {
    const { key, subject } = request;
    // Interrupted operations come before later requests.
    if (subject.workloadId !== null) await this.lookups.get(subject.workloadId);
    for (;;) {
      const known = this.find(key);
      if (!known) break;
      if (known.fingerprint !== request.fingerprint)
        throw fail('key_reused', `the Idempotency-Key belongs to another request, the operation ${known.id}`);
      const run = this.runs.get(known.id);
      if (run) await run.promise;
      else if (known.state === 'done') return { id: known.id, run: false, result: known.result };
      else
        return this.run({
          ...known,
          ...request,
          state: 'asked',
          settledAt: null,
          result: null,
          isTold: false,
        });
    }
    const askedAt = this.context.clock.now();
    const id = newUlid(askedAt);
    const empty = { state: 'asked', settledAt: null, result: null, isTold: false } as const;
    return this.run({ id, ...request, askedAt, ...empty });
  }

  async settle({ id, subject, result }: MessageOf<CloudOperationsProtocol, 'settle'>): Promise<null> {
    const row = this.rows.get(id);
    if (!row) return null;
    const settledAt = this.context.clock.now();
    // Without a key, the answer cannot be requested again.
    const kept = row.key === null ? { ...result, answer: null } : result;
    const state = mayRetry(result) ? 'failed' : 'done';
    const settled: StoredOperation = { ...row, subject, state, settledAt, result: kept, isTold: false };
    try {
      this.keep(settled);
      await this.save(settled);
    } finally {
      // Only now, because events are journaled from stored results, so that the next daemon does not repeat
      // them.
      this.untold.add(id);
      this.endRun(id);
    }
    await this.tellUntold();
    return null;
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

  private async run(row: StoredOperation): Promise<ReplyOf<CloudOperationsProtocol, 'begin'>> {
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

  private startRun(id: string): void {
    this.runs.set(id, deferred());
  }

  private endRun(id: string): void {
    this.runs.get(id)?.resolve();
    this.runs.delete(id);
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
    for (const old of this.rows.values()) {
      const isRoom =
        this.rows.size <= CLOUD_OPERATIONS.maxKept && this.keptBytes <= CLOUD_OPERATIONS.maxKeptBytes;
      if (isRoom && !this.isExpired(old)) break;
      if (old.id === row.id || this.runs.has(old.id) || this.untold.has(old.id)) continue;
      this.forget(old);
      removed.push(old.id);
    }
    return this.store.saveOperation(row, removed);
  }

  /** Writes the ends that the journal may lack, each once. Those that fail now are written with the next. */
  private async tellUntold(): Promise<void> {
    const ids = [...this.untold];
    this.untold.clear();
    await Promise.all(
      ids.map(async (id) => {
        const row = this.rows.get(id);
        if (!row) return;
        const isTold = await tolerateFailure(this.tell(row), () => false);
        if (isTold) {
          this.uncertain.delete(id);
          return;
        }
        this.untold.add(id);
        this.uncertain.add(id);
      }),
    );
  }

  /** Writes the end of an operation to the journal. Resolves with whether it is there. */
  private async tell(row: StoredOperation): Promise<boolean> {
    const event = endEvent(row);
    const end = { operationId: row.id, result: event.result ?? 'ok' };
    const known = this.uncertain.has(row.id) ? await this.events.ask('hasEnd', end) : null;
    if (known?.isWaiting) return false;
    const isStored = known?.hasEnd || (await this.events.ask('append', { events: [event] })).isStored;
    if (isStored && this.rows.get(row.id) === row) this.markTold(row);
    return isStored;
  }

  /** Not awaited: unmarked ends are looked up in the journal by the next daemon. */
  private markTold(row: StoredOperation): void {
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
      const result = { answer: JSON.stringify(outcome.answer), failure: null, reason: CUT_OFF };
      await tolerateFailure(this.settle({ id: row.id, subject: row.subject, result }), () => null);
      return;
    }
    const event = cutOffEvent(row, outcome === 'not_done' ? false : null);
    await tolerateFailure(this.events.ask('append', { events: [event] }), () => null);
    const settledAt = this.context.clock.now();
    const failed: StoredOperation = { ...row, state: 'failed', settledAt, isTold: true };
    this.keep(failed);
    await tolerateFailure(this.save(failed), () => undefined);
  }

  private async outcomeOf({ id, action, subject }: StoredOperation): Promise<Outcome> {
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
        return null;
    }
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
