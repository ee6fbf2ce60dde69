// The streams of cloud events. The front follows the journal once the first stream is opened. Events older
// than its copy of the newest ones are read from the history on disk, in batches.
import {
  type CloudEventFilter,
  type CloudEventRecord,
  cloudEventMatcher,
  type EventPlace,
} from '../../protocol/cloud_events.ts';
import { fail } from '../../protocol/errors.ts';
import { type Node, tolerateFailure } from '../../runtime/actor.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import type { ResponseStream } from '../server/http_server.ts';
import type { CloudViews } from '../views/cloud_views.ts';
import { EventFeed } from './event_feed.ts';
import { frameOf, resetFrame, type StreamFilter } from './event_hub.ts';

/** A follower whose view of events is restricted. */
export interface EventViewer {
  /** Different for viewers who see different events. */
  readonly key: string;
  sees(event: EventPlace): boolean;
}

function streamFilter(
  { within: _within, ...filter }: CloudEventFilter,
  viewer: EventViewer | null,
): StreamFilter<CloudEventRecord> {
  const matches = cloudEventMatcher(filter);
  return {
    key: JSON.stringify([filter, viewer?.key]),
    hidesIds: viewer !== null,
    matches: ({ data }) => matches(data) && (!viewer || viewer.sees(JSON.parse(data))),
    detailOf: null,
  };
}

/** Resolves when the client has taken everything sent, or has disconnected. */
function drained(stream: ResponseStream): Promise<void> {
  return new Promise((resolve) => {
    stream.onDrain = resolve;
    stream.onClose = resolve;
  });
}

export class CloudEventStreams {
  private readonly node: Node;
  private feed: EventFeed<CloudEventRecord>;
  private isFollowing = false;

  constructor(node: Node) {
    this.node = node;
    this.feed = this.newFeed();
  }

  private newFeed(): EventFeed<CloudEventRecord> {
    const subscribe = () => this.journal.ask('subscribe', {});
    return new EventFeed({ clock: this.node.clock, subscribe }, () => undefined);
  }

  /** Takes events from the journal, in the order of their ids, while this Berth has the clusters. */
  listenTo(views: CloudViews): void {
    views.onEvents = (events) => this.feed.receive(events);
    views.onUnavailable = () => this.leaveJournal();
  }

  /** Another Berth, or none, writes the journal now: ends every stream, and the next one begins anew. */
  private leaveJournal(): void {
    this.feed.close();
    this.feed = this.newFeed();
    this.isFollowing = false;
  }

  /** The cloud thread has ended. After its restart it does not know this subscriber. */
  onCloudLost(): void {
    if (this.isFollowing) void this.feed.restore();
  }

  /** Resolves when a stream can be served. Rejects with daemon_busy if the clusters are lost meanwhile. */
  async follow(): Promise<void> {
    if (this.isFollowing) return;
    const { feed } = this;
    await feed.restore();
    if (feed !== this.feed) throw fail('daemon_busy', 'the clusters are changing hands');
    this.isFollowing = true;
  }

  /**
   * Sends the events after `after` selected by `filter`, oldest first, and from then on every new one.
   * `after` null: only new ones. `viewer` null: unrestricted. A restricted viewer's `filter` must exclude
   * what it may not see. Ends the stream if the journal fails or is lost, so that the client resumes it.
   */
  async send(
    stream: ResponseStream,
    filter: CloudEventFilter,
    after: number | null,
    viewer: EventViewer | null,
  ): Promise<void> {
    const { hub } = this.feed;
    let from = after;
    while (from !== null && stream.isOpen && !hub.covers(from)) {
      const limit = CLOUD_EVENTS.replayBatch;
      const asked = this.journal.ask('replay', { filter, after: from, limit });
      const answer = await tolerateFailure(asked, () => null);
      if (!answer) return stream.end();
      const { events, lookedTo, oldest } = answer;
      // The id was never assigned, or the event is no longer stored.
      const isUnknown = from > lookedTo || from + 1 < oldest;
      if (isUnknown) stream.write(resetFrame(oldest));
      if (from > lookedTo) {
        from = Math.max(0, oldest - 1);
        continue;
      }
      if (events.length > 0) stream.write(Buffer.concat(events.map((event) => frameOf(event, event.data))));
      from = lookedTo;
      if (stream.bufferedBytes > CLOUD_EVENTS.maxUnreadReplayBytes) await drained(stream);
      stream.onDrain = null;
    }
    if (hub !== this.feed.hub) stream.end();
    if (stream.isOpen) hub.subscribe(stream, streamFilter(filter, viewer), from === null ? '' : String(from));
  }

  keepAlive(): void {
    this.feed.hub.keepAlive();
  }

  /** Ends every stream. */
  close(): void {
    this.feed.close();
  }

  private get journal() {
    return this.node.ref('cloudevents');
  }
}
