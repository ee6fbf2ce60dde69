// Prints the logs of many services, merged by time: docs/reference.md "Logs on the command line".
import { once } from 'node:events';
import type { Client } from '../../client/create_client.ts';
import type { LogStreamOptions, StreamedLogEntry } from '../../client/methods/logs.ts';
import { countText } from '../../presentation/format.ts';
import { type CommandContext, onStreamState } from './context.ts';
import { LOG_COLOURS } from './print_logs.ts';
import { safeJson, sanitizeColoured } from './sanitize.ts';
import { stdout } from './standard_streams.ts';

export interface MergedLogView {
  timestamps: boolean;
  prefix: boolean;
  /** How names are shown. */
  label: (name: string) => string;
  /** The names that the log is known to contain; they determine the width of the name column. */
  names: readonly string[];
}

/** The text of a mark. */
function markText(entry: Extract<StreamedLogEntry, { event: string }>): string {
  const { event, pid, exitCode, signal } = entry;
  if (event === 'started') return pid === null ? 'started' : `started, pid ${pid}`;
  if (signal !== null) return `ended by ${signal}`;
  return exitCode === null ? 'ended' : `ended with exit code ${exitCode}`;
}

/** Returns a function that formats an entry, with its newline; '' hides the entry. */
function entryText({ out }: CommandContext, view: MergedLogView): (entry: StreamedLogEntry) => string {
  const { timestamps, prefix, label } = view;
  const isTerminal = stdout().isTTY === true;
  const shown = new Set(view.names);
  let width = Math.max(0, ...view.names.map((name) => label(name).length));
  const colours = new Map<string, (typeof LOG_COLOURS)[number]>();
  const colourOf = (name: string) => {
    const colour = colours.get(name) ?? LOG_COLOURS[colours.size % LOG_COLOURS.length] ?? 'cyan';
    colours.set(name, colour);
    return colour;
  };
  for (const name of view.names) colourOf(name);
  let isFirst = true;
  return (entry) => {
    const { name, at } = entry;
    shown.add(name);
    width = Math.max(width, label(name).length);
    const isMark = 'event' in entry;
    // Marks, including the one for stderr, are for people: other programs get only the lines.
    if (isMark && !isTerminal) return '';
    const isError = isTerminal && !isMark && entry.stream === 'stderr';
    const isAround = !isMark && entry.around === true;
    // As in grep, context lines have another mark, and `--` stands for omitted lines.
    const separator = !isMark && entry.gap && !isFirst ? `${out.style('dim', '--')}\n` : '';
    isFirst = false;
    const mark = isError ? out.style('red', '!') : isAround ? '-' : '|';
    const hasName = prefix && shown.size > 1;
    const colour = colourOf(name);
    const head = hasName
      ? `${separator}${out.style(colour, label(name).padEnd(width))} ${isError ? mark : out.style(colour, mark)} `
      : separator;
    const time = timestamps ? `${out.style('dim', at)} ` : '';
    if (isMark) return `${head}${time}${out.style('dim', `-- ${markText(entry)} --`)}\n`;
    return `${head}${time}${isError && !hasName ? `${mark} ` : ''}${sanitizeColoured(entry.text)}\n`;
  };
}

/** An entry as data: the API's fields, plus `line` and `time`, which are the names in earlier versions. */
function entryData({ id: _id, ...entry }: StreamedLogEntry): string {
  return safeJson(
    'event' in entry ? { ...entry, time: entry.at } : { ...entry, line: entry.text, time: entry.at },
  );
}

/** Prints the entries of a stream until its end, or until Ctrl-C. Resolves with the number of entries. */
export async function printMergedLogs(
  context: CommandContext,
  client: Client,
  query: Omit<LogStreamOptions, 'onState' | 'onLost'>,
  view: MergedLogView,
): Promise<number> {
  const { out } = context;
  // Requests colours only if the output shows them.
  const ansi = !out.isData && out.style('red', 'x') !== 'x';
  const textOf = out.isData ? (entry: StreamedLogEntry) => `${entryData(entry)}\n` : entryText(context, view);
  const onState = onStreamState(context, query.follow === false ? 1 : undefined);
  const onLost: LogStreamOptions['onLost'] = ({ name, bytes }) =>
    out.note(`Part of the log of ${view.label(name)} is no longer kept: ${countText(bytes, 'byte')}`);
  let count = 0;
  for await (const entry of client.streamLogs({ ...query, ansi, onState, onLost })) {
    count += 1;
    const text = textOf(entry);
    if (text !== '') out.raw(text);
    // Waits for a slow reader, so that output does not pile up in memory.
    if (stdout().writableNeedDrain) await once(stdout(), 'drain');
  }
  return count;
}
