// berth logs
import type { Client } from '../../client/create_client.ts';
import { LOGS } from '../../settings/limits.ts';
import {
  choiceOption,
  defineCommand,
  flagOption,
  integerOption,
  negatedFlagOption,
  textOption,
} from '../kit/command.ts';
import { type CommandContext, hasErrorCode, onStreamState } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { sanitizeLine } from '../kit/sanitize.ts';

const COLOURS = ['cyan', 'yellow', 'green', 'magenta', 'blue', 'red'] as const;

interface LogView {
  lines?: number | undefined;
  stream?: 'stdout' | 'stderr' | undefined;
  raw?: boolean;
  timestamps?: boolean;
  prefix?: boolean;
}

/** Prints one line of one service: with its name before it when there are several, safe unless it is to be raw. */
function linePrinter(cli: CommandContext, names: readonly string[], { raw = false, prefix = true }: LogView) {
  const { out } = cli;
  const width = Math.max(0, ...names.map((name) => name.length));
  return (name: string, line: string, time = ''): void => {
    if (out.isData) {
      out.line(JSON.stringify({ name, line, ...(time ? { time } : {}) }));
      return;
    }
    const colour = COLOURS[names.indexOf(name) % COLOURS.length] ?? 'cyan';
    const start = prefix && names.length > 1 ? `${out.style(colour, `${name.padEnd(width)} |`)} ` : '';
    out.raw(`${start}${time ? `${out.style('dim', time)} ` : ''}${raw ? line : sanitizeLine(line)}\n`);
  };
}

/** A line with the time before it, as the daemon gives it. */
function splitTimestamp(line: string): { time: string; text: string } {
  const space = line.indexOf(' ');
  return { time: line.slice(0, space), text: line.slice(space + 1) };
}

/** Follows the logs of `names`, services and agents alike, until Ctrl-C or until all of them are removed. */
export async function followLogs(
  cli: CommandContext,
  berth: Client,
  names: readonly string[],
  view: LogView,
): Promise<void> {
  const print = linePrinter(cli, names, view);
  const { lines = LOGS.defaultLines, stream = null, raw = false, timestamps = false } = view;
  const onState = onStreamState(cli);
  const follow = async (name: string): Promise<void> => {
    try {
      for await (const line of berth.followLogs(name, { lines, stream, raw, timestamps, onState })) {
        if (!timestamps) print(name, line);
        else {
          const { time, text } = splitTimestamp(line);
          print(name, text, time);
        }
      }
    } catch (error) {
      if (!hasErrorCode(error, 'unknown_service') || names.length === 1) throw error;
      cli.out.note(`there is no service ${name} any more`);
    }
  };
  await Promise.all(names.map(follow));
}

interface TimedLine {
  name: string;
  time: string;
  text: string;
}

/** The last lines of several services, in the order of their times. */
async function printTail(
  cli: CommandContext,
  berth: Client,
  names: readonly string[],
  view: LogView,
): Promise<void> {
  const { lines = LOGS.defaultLines, stream = null, raw = false, timestamps = false } = view;
  const all = await Promise.all(
    names.map(async (name): Promise<TimedLine[]> => {
      const answer = await berth.logs(name, { lines, stream, raw, timestamps: true });
      return answer.lines.map((line) => ({ name, ...splitTimestamp(line) }));
    }),
  );
  const sorted = all.flat().map((line, index) => ({ line, at: Date.parse(line.time), index }));
  sorted.sort((a, b) => a.at - b.at || a.index - b.index);
  const print = linePrinter(cli, names, view);
  for (const { line } of sorted) print(line.name, line.text, timestamps || cli.out.isData ? line.time : '');
}

export const logsCommand = defineCommand({
  about:
    'Lines of several services are merged by time, each with the name before it. Control characters are shown, not obeyed, unless --raw is given.',
  args: [
    { syntax: '[names...]', about: 'the services or agents; default: all services', completes: 'service' },
  ],
  options: {
    follow: flagOption('-f, --follow', 'go on with every new line until Ctrl-C'),
    lines: integerOption(
      '-n, --lines <count>',
      `how many of the last lines of each; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
      [0, LOGS.maxLines],
    ),
    group: textOption('--group <name>', 'all services of this group', 'group'),
    stream: choiceOption('--stream <name>', 'only one of the two outputs', ['stdout', 'stderr']),
    timestamps: flagOption('-t, --timestamps', 'the time before each line'),
    prefix: negatedFlagOption('--no-prefix', 'no names before the lines'),
    raw: flagOption('--raw', 'the bytes as they were printed, colours and all'),
  },
  examples: [
    ['berth logs web -f', 'watch one'],
    ['berth logs -n 5', 'the last words of each'],
  ],
  run: async (cli, given, { follow, group, ...view }) => {
    const berth = await cli.client();
    const services = given.length === 0 || group !== undefined ? await berth.services() : [];
    const members = services
      .filter((service) => group === undefined || service.group === group)
      .map(({ name }) => name);
    const names = [...new Set([...given, ...members])];
    if (names.length === 0)
      throw new UsageError('there is nothing to show logs of', '`berth ps` lists the services.');
    if (follow) await followLogs(cli, berth, names, view);
    else if (view.lines !== 0) await printTail(cli, berth, names, view);
  },
});
