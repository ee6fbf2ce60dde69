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
  run: async (context, given, { follow, group, ...view }) => {
    const client = await context.client();
    const services = given.length === 0 || group !== undefined ? await client.services() : [];
    const members = services
      .filter((service) => group === undefined || service.group === group)
      .map(({ name }) => name);
    const names = [...new Set([...given, ...members])];
    if (names.length === 0)
      throw new UsageError('there is nothing to show logs of', '`berth ps` lists the services.');
    if (follow) await followLogs(context, client, names, view);
    else if (view.lines !== 0) await printLogTails(context, client, names, view);
  },
});
