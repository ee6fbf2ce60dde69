// Which events of services and agents a subscriber gets: docs/reference.md "Event stream".
import type { EventRecord } from '../../protocol/events.ts';
import { localTime } from '../../protocol/timestamps.ts';
import type { Reach } from '../api/reach.ts';
import type { StreamFilter } from './event_hub.ts';

/** The events a subscriber wants; null: all. */
export interface EventSelection {
  types: readonly string[] | null;
  names: readonly string[] | null;
  /** Whether the data includes `at` and `run`. */
  detail: boolean;
  /** Restricts the events to what the subscriber may see. */
  reach: Reach | null;
}

/** The data with the two fields that are stored beside it: the time and the run. */
export function detailedData({ data, at, run }: EventRecord): string {
  return `${data.slice(0, -1)},"at":"${localTime(at)}","run":${JSON.stringify(run)}}`;
}

/** The filter of a stream of events. */
export function eventFilter({ types, names, detail, reach }: EventSelection): StreamFilter<EventRecord> {
  const wantedTypes = types && new Set(types);
  const wantedNames = names && new Set(names);
  return {
    // Agents of one stack see the same events.
    key: JSON.stringify([types, names, detail, reach && [reach.stack]]),
    matches: (event) =>
      (wantedTypes === null || wantedTypes.has(event.type)) &&
      (wantedNames === null || wantedNames.has(event.name)) &&
      (reach === null || reach.hasEvent(event)),
    hidesIds: reach !== null,
    detailOf: detail ? detailedData : null,
  };
}
