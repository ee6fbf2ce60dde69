// Publishes what has been committed, and nothing else: workloads to the front's views, events to the journal.
import type { CloudCommit, WorkloadView } from '../../adapters/storage/cloud_store.ts';
import type { WorkloadRow } from '../../protocol/cloud.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import type { Ref } from '../../runtime/actor.ts';
import { packRows } from '../../runtime/msgpack.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';
import { EventOutbox, type EventOutboxConfig } from './event_outbox.ts';

export interface CommitTellerConfig extends EventOutboxConfig {
  readonly views: Pick<Ref<CloudViewsProtocol>, 'tell'>;
}

export class CommitTeller {
  private readonly config: CommitTellerConfig;
  private readonly outbox: EventOutbox;
  private readonly unfollow: () => void;

  constructor(config: CommitTellerConfig) {
    this.config = config;
    this.outbox = new EventOutbox(config);
    this.unfollow = config.store.follow((commit) => this.onCommit(commit));
  }

  /** Journals what an earlier daemon committed. */
  start(): Promise<void> {
    return this.outbox.start();
  }

  async close(): Promise<void> {
    this.unfollow();
    await this.outbox.flush();
  }

  private onCommit({ views, events }: CloudCommit): void {
    // A few rows at a time, so that the front answers requests in between.
    for (let at = 0; at < views.length; at += CLOUD.rowsPerTell)
      this.show(views.slice(at, at + CLOUD.rowsPerTell));
    this.outbox.tell(events);
  }

  private show(views: readonly WorkloadView[]): void {
    const rows: WorkloadRow[] = [];
    const removed: string[] = [];
    const stale = new Map<number | null, string[]>();
    for (const shown of views) {
      if ('staleSince' in shown) {
        const ids = stale.get(shown.staleSince) ?? [];
        stale.set(shown.staleSince, ids);
        ids.push(shown.id);
      } else if (shown.view) rows.push(shown.view);
      else removed.push(shown.id);
    }
    if (rows.length > 0) this.config.views.tell('workloads', { rows: packRows(rows) });
    if (removed.length > 0) this.config.views.tell('workloadsRemoved', { ids: removed });
    for (const [staleSince, ids] of stale) this.config.views.tell('workloadsStale', { ids, staleSince });
  }
}
