// Writes the ends of operations to the journal, in the order in which they came, each once.
import type { CloudEventsProtocol, CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import { newUlid } from '../../protocol/ulid.ts';
import { type Clock, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import { endEvent } from './operation_events.ts';

export interface OperationEndsConfig {
  readonly events: Pick<Ref<CloudEventsProtocol>, 'ask'>;
  readonly clock: Clock;
  /** Whether an end that could not be stored is stored now, or needs no longer be. */
  store(row: StoredOperation): Promise<boolean>;
  /** Called for each end that is in the journal. */
  onJournaled(row: StoredOperation): void;
  /** Receives errors of work that is not awaited. */
  onDefect(error: unknown): void;
}

interface OperationEnd {
  /** The operation as it ended. Its record may have begun anew since. */
  readonly row: StoredOperation;
  readonly event: CommittedCloudEvent;
  /** Whether the journal may have it already. */
  isUncertain: boolean;
  /** An end is journaled once it is stored: the next daemon would report what is not stored again. */
  isStored: boolean;
}

export class OperationEnds {
  private readonly config: OperationEndsConfig;
  /** Oldest first. */
  private waiting: OperationEnd[] = [];
  /** The write that has yet to begin, which takes all that waits; null: there is none. */
  private nextWrite: Promise<void> | null = null;
  private lastWrite: Promise<void> = Promise.resolve();
  private cancelRetry: (() => void) | null = null;

  constructor(config: OperationEndsConfig) {
    this.config = config;
  }

  /** Whether as many ends wait as may wait. */
  get isFull(): boolean {
    return this.waiting.length >= CLOUD_EVENTS.maxWaiting;
  }

  /** The operations whose ends wait. */
  ids(): Set<string> {
    return new Set(this.waiting.map(({ row }) => row.id));
  }

  /** Resolves when the end is in the journal, or has to wait because the journal refuses it. */
  write(row: StoredOperation): Promise<void> {
    this.add(row, { isUncertain: false, isStored: true });
    return this.writeWaiting();
  }

  /** Stores the end, then writes it, at the latest after the pause between two attempts. */
  writeLater(row: StoredOperation): void {
    this.add(row, { isUncertain: false, isStored: false });
    this.retryLater();
  }

  /** Writes ends of an earlier daemon, which the journal may have. */
  resume(rows: readonly StoredOperation[]): void {
    if (rows.length === 0) return;
    for (const row of rows) this.add(row, { isUncertain: true, isStored: true });
    this.writeInBackground();
  }

  private add(row: StoredOperation, state: Pick<OperationEnd, 'isUncertain' | 'isStored'>): void {
    const at = row.settledAt ?? this.config.clock.now();
    const event = { key: newUlid(at), at, event: endEvent(row) };
    this.waiting.push({ row, event, ...state });
  }

  /** One write at a time, so that no end overtakes another. */
  private writeWaiting(): Promise<void> {
    if (this.nextWrite) return this.nextWrite;
    const write = this.lastWrite.then(() => this.attempt());
    this.nextWrite = write;
    this.lastWrite = write;
    return write;
  }

  private async attempt(): Promise<void> {
    this.nextWrite = null;
    if (!(await this.storeWaiting())) this.retryLater();
    const ends = this.waiting.filter(({ isStored }) => isStored);
    if (ends.length === 0) return;
    const events = ends.map(({ event }) => event);
    const isRepeated = ends.some(({ isUncertain }) => isUncertain);
    const { isStored } = await tolerateFailure(
      this.config.events.ask('appendCommitted', { events, isRepeated }),
      () => ({ isStored: false }),
    );
    if (isStored) {
      const written = new Set(ends);
      this.waiting = this.waiting.filter((end) => !written.has(end));
      for (const { row } of ends) this.config.onJournaled(row);
      return;
    }
    for (const end of ends) end.isUncertain = true;
    this.retryLater();
  }

  /** Whether every end is stored now. */
  private async storeWaiting(): Promise<boolean> {
    const ends = [...this.waiting];
    for (const end of ends) end.isStored ||= await this.config.store(end.row);
    return ends.every(({ isStored }) => isStored);
  }

  private retryLater(): void {
    this.cancelRetry ??= this.config.clock.after(CLOUD_EVENTS.retryMs, () => {
      this.cancelRetry = null;
      this.writeInBackground();
    });
  }

  private writeInBackground(): void {
    this.writeWaiting().catch((error: unknown) => this.config.onDefect(error));
  }
}
