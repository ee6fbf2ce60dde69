// Copies committed events to the journal. They stay in the store until they are there, so a kill in between
// loses none. Those that may already be in the journal are looked up there.
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { CloudEventsProtocol, CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import { type Clock, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD, CLOUD_EVENTS } from '../../settings/cloud_limits.ts';

export interface EventOutboxConfig {
  readonly store: CloudStore;
  readonly events: Pick<Ref<CloudEventsProtocol>, 'ask'>;
  readonly clock: Clock;
  /** Receives errors of work that is not awaited. */
  onDefect(error: unknown): void;
}

export class EventOutbox {
  private readonly config: EventOutboxConfig;
  /** The keys of journaled events that are still in the store. */
  private told: string[] = [];
  /** The keys of those read from the store at the start. */
  private readonly resumed = new Set<string>();
  private cancelRemoval: (() => void) | null = null;

  constructor(config: EventOutboxConfig) {
    this.config = config;
  }

  /** Journals what an earlier daemon committed. */
  async start(): Promise<void> {
    const untold = await this.config.store.untoldEvents();
    for (const { key } of untold) this.resumed.add(key);
    if (untold.length > 0) this.inBackground(this.append(untold, true));
  }

  tell(events: readonly CommittedCloudEvent[]): void {
    // Other actors may commit one during the start, which is then read from the store as well.
    const isRepeated = events.some(({ key }) => this.resumed.has(key));
    if (events.length > 0) this.inBackground(this.append(events, isRepeated));
  }

  /** Removes journaled events from the store. */
  async flush(): Promise<void> {
    this.cancelRemoval?.();
    this.cancelRemoval = null;
    const keys = this.told;
    this.told = [];
    // What stays in the store is looked up in the journal by the next daemon.
    if (keys.length > 0) await tolerateFailure(this.config.store.eventsTold(keys), () => undefined);
  }

  private async append(events: readonly CommittedCloudEvent[], isRepeated: boolean): Promise<void> {
    const { clock } = this.config;
    const reply = await tolerateFailure(
      this.config.events.ask('appendCommitted', { events, isRepeated }),
      () => null,
    );
    if (reply === null) {
      clock.after(CLOUD_EVENTS.retryMs, () => this.inBackground(this.append(events, true)));
    } else if (reply.isStored) {
      for (const { key } of events) this.told.push(key);
      this.cancelRemoval ??= clock.after(CLOUD.activityFlushMs, () => this.inBackground(this.flush()));
    }
    // Otherwise the disk is full, and the journal retries by itself.
  }

  private inBackground(work: Promise<void>): void {
    work.catch((error: unknown) => this.config.onDefect(error));
  }
}
