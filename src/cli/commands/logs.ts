// berth logs
import { LOGS } from '../../settings/limits.ts';
import {
  choiceOption,
  defineCommand,
  flagOption,
  integerOption,
  negatedFlagOption,
  textOption,
} from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { followLogs, printLogTails } from '../kit/print_logs.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';

export const logsCommand = defineCommand({
  about:
    'Lines of several services are merged by time, each after the name of its service. Control characters ' +
    'are made visible unless --raw is given.',
  args: [
    { syntax: '[names...]', about: 'the services or agents; default: all services', completes: 'service' },
  ],
  options: {
    follow: flagOption('-f, --follow', 'print new lines until Ctrl-C'),
    lines: integerOption(
      '-n, --lines <count>',
      `number of last lines per service; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
      [0, LOGS.maxLines],
    ),
    tail: integerOption('--tail <count>', 'same as --lines', [0, LOGS.maxLines]),
    group: textOption('--group <name>', 'all services of this group', 'group'),
    stream: choiceOption('--stream <name>', 'only this output', ['stdout', 'stderr']),
    timestamps: flagOption('-t, --timestamps', 'print the time before each line'),
    prefix: negatedFlagOption('--no-prefix', 'print no names before the lines'),
    raw: flagOption('--raw', 'print the bytes unchanged, with colours and control characters'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth logs web -f', 'follow one service'],
    ['berth logs -n 5', 'the last 5 lines of each service'],
  ],
  run: async (context, given, options) => {
    const { follow, group, lines, tail, stack, project, all, ...rest } = options;
    const client = await context.client();
    const scope = await stackScope(client, { stack, project, all });
    const view = { ...rest, lines: lines ?? tail, label: scope.label };
    const services = given.length === 0 || group !== undefined ? await client.services() : [];
    const members = services
      .filter((service) => (group === undefined ? scope.has(service) : service.group === scope.group(group)))
      .map(({ name }) => name);
    const names = [...new Set([...given.map(scope.full), ...members])];
    if (names.length === 0)
      throw new UsageError('there are no services to show logs of', '`berth ps` lists the services.');
    if (follow) await followLogs(context, client, names, view);
    else if (view.lines !== 0) await printLogTails(context, client, names, view);
  },
});
