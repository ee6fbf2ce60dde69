// Compares events that may already be in the journal with its lines. Pure.
import { type CommittedCloudEvent, cloudEventJson, timeOfCloudEvent } from '../../protocol/cloud_events.ts';

/** A line without its id and the name of the cluster, which the journal adds. */
const identityOf = (line: string): string =>
  line.replace(/^\{"id":\d+,/, '').replace(/"cluster":(?:null|"(?:[^"\\]|\\.)*"),/, '');

/** The line of an event, with an arbitrary id. */
export const lineOf = ({ at, event }: Pick<CommittedCloudEvent, 'at' | 'event'>): string =>
  cloudEventJson(1, at, event);

/** Events for which no line has been found yet. Two identical events need two lines. */
export class CommittedEvents {
  private readonly byIdentity = new Map<string, CommittedCloudEvent[]>();
  /** Only the few lines with one of these times need to be parsed. */
  private readonly times = new Set<string>();

  constructor(events: readonly CommittedCloudEvent[]) {
    for (const committed of events) {
      const line = lineOf(committed);
      const identity = identityOf(line);
      this.byIdentity.set(identity, [...(this.byIdentity.get(identity) ?? []), committed]);
      this.times.add(timeOfCloudEvent(line));
    }
  }

  get isEmpty(): boolean {
    return this.byIdentity.size === 0;
  }

  /** Drops one event that matches `line`, if any. */
  remove(line: string): void {
    if (!this.times.has(timeOfCloudEvent(line))) return;
    const identity = identityOf(line);
    const [, ...others] = this.byIdentity.get(identity) ?? [];
    if (others.length > 0) this.byIdentity.set(identity, others);
    else this.byIdentity.delete(identity);
  }

  /** The remaining events, in the order in which they happened. */
  rest(): CommittedCloudEvent[] {
    return [...this.byIdentity.values()].flat().sort((one, other) => (one.key < other.key ? -1 : 1));
  }
}
