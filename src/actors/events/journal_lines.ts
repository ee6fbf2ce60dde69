// One event as one line of the journal: id, time, type, name, run and data, separated by tabs.
import { EVENT_TYPES, type EventRecord, type EventType } from '../../protocol/events.ts';

const TAB = '\t';

/**
 * Formats an event, with the newline. Concatenated, because JSON.stringify of the whole would escape `data`
 * again.
 */
export const formatJournalLine = ({ id, at, type, name, run, data }: EventRecord): string =>
  `${id}\t${at}\t${type}\t${name}\t${run ?? ''}\t${data}\n`;

const isEventType = (text: string): text is EventType => (EVENT_TYPES as readonly string[]).includes(text);

const isJsonObject = (text: string): boolean => {
  try {
    return text.startsWith('{') && JSON.parse(text) !== null;
  } catch {
    return false;
  }
};

/** The event of a line without its newline; undefined for a line damaged by a crash of the machine. */
export function parseJournalLine(line: string): EventRecord | undefined {
  const [id = '', at = '', type = '', name = '', run = '', ...rest] = line.split(TAB);
  const data = rest.join(TAB);
  if (!/^[1-9]\d*$/.test(id) || !/^\d+$/.test(at) || !isEventType(type) || !isJsonObject(data))
    return undefined;
  return { id: Number(id), at: Number(at), type, name, run: run || null, data };
}
