// The streams of cloud events. The front follows the journal once the first stream is opened. Events older
// than its copy of the newest ones are read from the history on disk, in batches.
import {
  type CloudEventFilter,
  type CloudEventRecord,
  cloudEventMatcher,
  type EventPlace,
} from '../../protocol/cloud_events.ts';
import type { Node } from '../../runtime/actor.ts';
import { CLOUD_EVENTS } from '../../settings/cloud_limits.ts';
import type { ResponseStream } from '../server/http_server.ts';
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
  private readonly feed: EventFeed<CloudEventRecord>;
  private isFollowing = false;

  constructor(node: Node) {
    this.node = node;
    const subscribe = () => this.journal.ask('subscribe', {});
    this.feed = new EventFeed({ clock: node.clock, subscribe }, () => undefined);
  }

  /** Takes events from the journal, in the order of their ids. */
  receive(events: readonly CloudEventRecord[]): void {
    this.feed.receive(events);
  }

  /** The cloud thread has ended. After its restart it does not know this subscriber. */
  onCloudLost(): void {
    if (this.isFollowing) void this.feed.restore();
  }

  /** Resolves when a stream can be served. */
  async follow(): Promise<void> {
    if (this.isFollowing) return;
    await this.feed.restore();
    this.isFollowing = true;
  }

  /**
   * Sends the events after `after` selected by `filter`, oldest first, and from then on every new one.
   * `after` null: only new ones. `viewer` null: unrestricted. A restricted viewer's `filter` must exclude
   * what it may not see.
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
      const { events, lookedTo, oldest } = await this.journal.ask('replay', { filter, after: from, limit });
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
