// Events that may be in the journal already, compared with its lines. Pure.
import { type CommittedCloudEvent, cloudEventJson, timeOfCloudEvent } from '../../protocol/cloud_events.ts';

/** What a line tells beside its id and the name of the cluster, which the journal adds. */
const identityOf = (line: string): string =>
  line.replace(/^\{"id":\d+,/, '').replace(/"cluster":(?:null|"(?:[^"\\]|\\.)*"),/, '');

/** The line of an event with any id. */
export const lineOf = ({ at, event }: Pick<CommittedCloudEvent, 'at' | 'event'>): string =>
  cloudEventJson(1, at, event);

/** Those of some events that no line has been found of. Two alike stand for two lines. */
export class CommittedEvents {
  private readonly byIdentity = new Map<string, CommittedCloudEvent[]>();
  /** Few lines have one of these times, and only those are parsed. */
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

  /** Drops one event that `line` tells of, if there is one. */
  remove(line: string): void {
    if (!this.times.has(timeOfCloudEvent(line))) return;
    const identity = identityOf(line);
    const [, ...others] = this.byIdentity.get(identity) ?? [];
    if (others.length > 0) this.byIdentity.set(identity, others);
    else this.byIdentity.delete(identity);
  }

  /** In the order in which they happened. */
  rest(): CommittedCloudEvent[] {
    return [...this.byIdentity.values()].flat().sort((one, other) => (one.key < other.key ? -1 : 1));
  }
}
