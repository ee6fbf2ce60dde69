// berth logs
import type { Client } from '../../client/create_client.ts';
import type { LogStreamOptions } from '../../client/methods/logs.ts';
import { LOG_LEVELS } from '../../protocol/logs.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { LOGS } from '../../settings/limits.ts';
import {
  choiceOption,
  defineCommand,
  flagOption,
  integerOption,
  negatedFlagOption,
  type Option,
  textOption,
} from '../kit/command.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { printMergedLogs } from '../kit/merged_logs.ts';
import { followLogs, printLogTails } from '../kit/print_logs.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope, UNREGISTERED } from '../kit/stack_scope.ts';

/** A time before every log line. */
const BEGINNING = '1970-01-01T00:00:00Z';

/** A number of lines, or `all`. */
const linesOption = (flags: string, about: string): Option<number | 'all' | undefined> => ({
  flags,
  about,
  defaultValue: undefined,
  completes: ['all'],
  parse: (value) => {
    if (value === 'all') return value;
    const number = /^\d+$/.test(value) ? Number(value) : Number.NaN;
    if (number <= LOGS.maxTailLines) return number;
    throw new UsageError(`must be all, or a number from 0 to ${LOGS.maxTailLines}`);
  },
});

const FILTER_OPTIONS = {
  since: textOption(
    '--since <time>',
    'not before this time: RFC 3339, or back from now such as 15m or 2h30m',
  ),
  until: textOption('--until <time>', 'not after this time'),
  grep: textOption('-g, --grep <text>', 'only lines with this text, in any case'),
  regex: textOption('-e, --regex <regex>', 'only lines in which this expression matches (RE2)'),
  context: integerOption('-C, --context <count>', 'with so many lines before and after each of them', [
    0,
    LOGS.maxContextLines,
  ]),
  level: choiceOption('-l, --level <level>', 'only lines of this level or a more severe one', LOG_LEVELS),
  run: textOption('--run <run>', 'one run of each: last, a number that counts back from it, or an id'),
};

const RUN_HINT = 'The runs of a service count back from --run 1, which is the last one.';

/** The services to show. If `isFixed` is false, services registered later in the scope are shown too. */
async function namesOf(
  client: Client,
  scope: StackScope,
  given: readonly string[],
  group: string | undefined,
): Promise<{ names: string[]; isFixed: boolean }> {
  const services = given.length === 0 || group !== undefined ? await client.services() : [];
  const members = services
    .filter((service) =>
      group === undefined
        ? scope.has(service) && service.group !== AGENTS_GROUP
        : service.group === scope.group(group),
    )
    .map(({ name }) => name);
  const names = [...new Set([...given.map(scope.full), ...members])];
  if (names.length === 0)
    throw new UsageError('there are no services to show logs of', '`berth ps` lists the services.');
  return { names, isFixed: given.length > 0 || group !== undefined || scope.stack === UNREGISTERED };
}

export const logsCommand = defineCommand({
  about:
    'Lines of several services are merged by time, each after the name of its service. Agents are left out ' +
    'unless they are named. On a terminal the colours of programs are kept, lines of stderr are marked by !, ' +
    'and starts and ends are shown; other control characters are made visible, unless --raw is given.',
  args: [
    { syntax: '[names...]', about: 'the services or agents; default: all services', completes: 'service' },
  ],
  options: {
    follow: flagOption('-f, --follow', 'print new lines until Ctrl-C'),
    lines: linesOption(
      '-n, --lines <count>',
      `last lines of each service, or all; default ${LOGS.defaultLines}, or all that the options below leave`,
    ),
    tail: linesOption('--tail <count>', 'same as --lines'),
    ...FILTER_OPTIONS,
    group: textOption('--group <name>', 'all services of this group', 'group'),
    agents: negatedFlagOption('--no-agents', 'no agents, even if they are named'),
    stream: choiceOption('--stream <name>', 'only this output', ['stdout', 'stderr']),
    timestamps: flagOption('-t, --timestamps', 'print the time before each line'),
    prefix: negatedFlagOption('--no-prefix', 'print no names before the lines'),
    raw: flagOption('--raw', 'print the bytes unchanged, with colours and control characters'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth logs web -f', 'follow one service'],
    ['berth logs -n 5', 'the last 5 lines of each service'],
    ['berth logs --since 15m --level warn', 'warnings and errors of the last quarter of an hour'],
    ['berth logs api --grep timeout -C 3', 'every line with a text in all that is kept, with 3 around it'],
  ],
  run: async (context, given, options) => {
    const {
      follow,
      group,
      lines: count,
      tail,
      stack,
      project,
      all,
      raw,
      timestamps,
      prefix,
      ...rest
    } = options;
    const { agents, grep, stream, ...narrow } = rest;
    const lines = count ?? tail;
    const client = await context.client();
    const scope = await stackScope(client, { stack, project, all });
    const { label } = scope;
    const { names, isFixed } = await namesOf(client, scope, given, group);
    const isNarrow = grep !== undefined || Object.values(narrow).some((value) => value !== undefined);
    const { context: around, level, regex } = narrow;
    if (around !== undefined && (grep ?? regex ?? level) === undefined)
      throw new UsageError('--context needs --grep, --regex or --level');
    if (raw) {
      if (isNarrow || typeof lines === 'string')
        throw new UsageError('--raw cannot be combined with options that choose lines');
      const view = { lines: lines && Math.min(lines, LOGS.maxLines), stream, raw, timestamps, prefix, label };
      if (follow) await followLogs(context, client, names, view);
      else if (lines !== 0) await printLogTails(context, client, names, view);
      return undefined;
    }
    const isAll = lines === 'all' || (lines === undefined && isNarrow);
    const { since = isAll ? BEGINNING : undefined } = narrow;
    const services = isFixed ? { names } : { stack: scope.stack };
    const query: LogStreamOptions = {
      ...narrow,
      since,
      q: grep,
      stream,
      follow,
      limit: isAll ? undefined : (lines ?? LOGS.defaultLines),
      ...services,
      agents: agents ? undefined : false,
    };
    const printed = await printMergedLogs(context, client, query, { timestamps, prefix, label, names });
    const { run } = narrow;
    // A run that exists may simply have no matches.
    if (printed > 0 || run === undefined) return undefined;
    const { lines: kept } = await client.searchLogs({ ...services, run, limit: 1 });
    if (kept.length > 0) return undefined;
    throw new CommandError(`no run ${run} is kept of ${names.map(label).join(', ')}`, RUN_HINT);
  },
});
