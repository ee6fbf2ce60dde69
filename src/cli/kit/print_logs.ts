// Prints logs of services and agents: their last lines, or every new line.
import type { Client } from '../../client/create_client.ts';
import { LOGS } from '../../settings/limits.ts';
import { type CommandContext, hasErrorCode, onStreamState } from './context.ts';
import { safeJson, sanitizeLine } from './sanitize.ts';

/** The colours of names, in turn. */
export const LOG_COLOURS = ['cyan', 'yellow', 'green', 'magenta', 'blue', 'red'] as const;

export interface LogView {
  lines?: number | undefined;
  stream?: 'stdout' | 'stderr' | undefined;
  raw?: boolean;
  timestamps?: boolean;
  prefix?: boolean;
  /** How names are shown; default: as they are registered. */
  label?: (name: string) => string;
}

/**
 * Returns a function that prints a line of a service: with the name as a prefix if there are several
 * services, and sanitized unless `raw`.
 */
function linePrinter(
  context: CommandContext,
  names: readonly string[],
  { raw = false, prefix = true, label = (name) => name }: LogView,
) {
  const { out } = context;
  const width = Math.max(0, ...names.map((name) => label(name).length));
  return (name: string, line: string, time = ''): void => {
    if (out.isData) {
      out.line(safeJson({ name, line, ...(time ? { time } : {}) }));
      return;
    }
    const colour = LOG_COLOURS[names.indexOf(name) % LOG_COLOURS.length] ?? 'cyan';
    const start =
      prefix && names.length > 1
        ? `${out.style(colour, `${sanitizeLine(label(name)).padEnd(width)} |`)} `
        : '';
    out.raw(`${start}${time ? `${out.style('dim', time)} ` : ''}${raw ? line : sanitizeLine(line)}\n`);
  };
}

/** Splits a line from the daemon into its timestamp and its text. */
function splitTimestamp(line: string): { time: string; text: string } {
  const space = line.indexOf(' ');
  return { time: line.slice(0, space), text: line.slice(space + 1) };
}

/** Prints new lines of services and agents until Ctrl-C or until all of them are removed. */
export async function followLogs(
  context: CommandContext,
  client: Client,
  names: readonly string[],
  view: LogView,
): Promise<void> {
  const print = linePrinter(context, names, view);
  const { lines = LOGS.defaultLines, stream = null, raw = false, timestamps = false } = view;
  const onState = onStreamState(context);
  const follow = async (name: string): Promise<void> => {
    try {
      for await (const line of client.followLogs(name, { lines, stream, raw, timestamps, onState })) {
        if (!timestamps) print(name, line);
        else {
          const { time, text } = splitTimestamp(line);
          print(name, text, time);
        }
      }
    } catch (error) {
      if (!hasErrorCode(error, 'unknown_service') || names.length === 1) throw error;
      context.out.note(`there is no service ${name} any more`);
    }
  };
  await Promise.all(names.map(follow));
}

interface TimedLine {
  name: string;
  time: string;
  text: string;
}

/** Prints the last lines of services and agents, merged by time. */
export async function printLogTails(
  context: CommandContext,
  client: Client,
  names: readonly string[],
  view: LogView,
): Promise<void> {
  const { lines = LOGS.defaultLines, stream = null, raw = false, timestamps = false } = view;
  const all = await Promise.all(
    names.map(async (name): Promise<TimedLine[]> => {
      const answer = await client.logs(name, { lines, stream, raw, timestamps: true });
      return answer.lines.map((line) => ({ name, ...splitTimestamp(line) }));
    }),
  );
  const sorted = all.flat().map((line, index) => ({ line, at: Date.parse(line.time), index }));
  sorted.sort((a, b) => a.at - b.at || a.index - b.index);
  const print = linePrinter(context, names, view);
  for (const { line } of sorted)
    print(line.name, line.text, timestamps || context.out.isData ? line.time : '');
}
