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
}

export class OperationEnds {
  private readonly config: OperationEndsConfig;
  /** Oldest first. */
  private readonly waiting: OperationEnd[] = [];
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
    this.add(row, false);
    return this.writeWaiting();
  }

  /** Writes the end with the next one, but within the pause between two attempts. */
  writeLater(row: StoredOperation): void {
    this.add(row, false);
    this.retryLater();
  }

  /** Writes ends of an earlier daemon, which the journal may have. */
  resume(rows: readonly StoredOperation[]): void {
    if (rows.length === 0) return;
    for (const row of rows) this.add(row, true);
    this.writeInBackground();
  }

  private add(row: StoredOperation, isUncertain: boolean): void {
    const at = row.settledAt ?? this.config.clock.now();
    const event = { key: newUlid(at), at, event: endEvent(row) };
    this.waiting.push({ row, event, isUncertain });
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
    const ends = [...this.waiting];
    if (ends.length === 0) return;
    const events = ends.map(({ event }) => event);
    const isRepeated = ends.some(({ isUncertain }) => isUncertain);
    const { isStored } = await tolerateFailure(
      this.config.events.ask('appendCommitted', { events, isRepeated }),
      () => ({ isStored: false }),
    );
    if (isStored) {
      this.waiting.splice(0, ends.length);
      for (const { row } of ends) this.config.onJournaled(row);
      return;
    }
    for (const end of ends) end.isUncertain = true;
    this.retryLater();
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
