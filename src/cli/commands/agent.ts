// berth agent spinup, ls, logs, rm
import { resolve } from 'node:path';
import type { Agent, SpinupRequest } from '../../client/records.ts';
import { AGENT_TYPES } from '../../protocol/agent_types.ts';
import { shellEnvironment } from '../../protocol/base_environment.ts';
import { LOGS } from '../../settings/limits.ts';
import { runBatch } from '../kit/batch.ts';
import {
  choiceOption,
  defineCommand,
  durationOption,
  flagOption,
  integerOption,
  repeatedOption,
  textOption,
} from '../kit/command.ts';
import { commandLine, parseEnvEntries } from '../kit/command_line.ts';
import { agentStateStyle } from '../kit/format.ts';
import type { Column } from '../kit/output.ts';
import { PLACE_OPTIONS, placeInStack } from '../kit/place_in_stack.ts';
import { followLogs } from '../kit/print_logs.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { namedServices } from '../kit/service_selection.ts';
import { SCOPE_OPTIONS, type StackScope, stackScope } from '../kit/stack_scope.ts';

const columnsOf = ({ label }: StackScope): readonly Column<Agent>[] => [
  { title: 'NAME', cell: ({ name }) => label(name), canShrink: true, keepsEnd: true },
  {
    title: 'ACTIVE',
    cell: ({ active }) => (active ? 'yes' : 'no'),
    style: ({ active }) => (active ? 'green' : 'dim'),
  },
  { title: 'STATE', cell: ({ state }) => state, style: agentStateStyle },
  { title: 'TYPE', cell: ({ agent_type }) => agent_type },
  { title: 'PORT', cell: ({ port }) => port, alignRight: true },
  { title: 'PID', cell: ({ pid }) => pid, alignRight: true },
  { title: 'HOSTNAME', cell: ({ hostname }) => hostname },
];

export const agentSpinupCommand = defineCommand({
  about:
    'Returns as soon as the process runs. Without a command, the type names the command. Without --port, ' +
    'the port is a free one of agents.ports. The agent finds its port in $PORT.',
  args: [
    { syntax: '<name>', about: 'the name of the agent, and of its host' },
    { syntax: '[command...]', about: 'the shell command; put -- before it if it has options' },
  ],
  options: {
    type: choiceOption('--type <type>', 'the framework it is made with', AGENT_TYPES),
    port: integerOption('-p, --port <port>', 'the port it listens on; default: a free one', [1, 65535]),
    cwd: textOption('--cwd <dir>', 'the folder it runs in; default: this one', 'file'),
    ready: textOption('--ready <url>', 'ready-check: an http or tcp URL; $PORT stands for its port'),
    env: repeatedOption(
      '-e, --env <KEY=value>',
      'an environment variable; a name alone passes on your value',
    ),
    sleepAfter: durationOption('--sleep-after <time>', 'put it to sleep after it was idle for so long'),
    ...PLACE_OPTIONS,
  },
  examples: [
    ['berth agent spinup bot --type langgraph', 'in a folder with a langgraph.json'],
    ['berth agent spinup sh -- bash', 'a shell to attach to'],
  ],
  run: async (context, [called = '', ...line], { type, port, cwd, ready, env, sleepAfter, ...choice }) => {
    const client = await context.client();
    const { stack, nameOf } = await placeInStack(context, client, choice);
    const name = nameOf(called);
    const cmd = commandLine(line);
    const spec: SpinupRequest = {
      name,
      stack,
      baseEnv: shellEnvironment(process.env),
      cwd: resolve(cwd ?? '.'),
      ...(cmd ? { cmd } : {}),
      ...(type ? { agent_type: type } : {}),
      ...(port === undefined ? {} : { port }),
      ...(ready === undefined ? {} : { ready }),
      ...(sleepAfter === undefined ? {} : { sleep: { afterMinutes: sleepAfter / 60_000 } }),
      ...(env.length > 0 ? { env: parseEnvEntries(env) } : {}),
    };
    const agent = await client.spinup(spec);
    context.out.record(
      agent,
      () =>
        `${called} is up at ${agent.gatewayUrl ?? agent.url} (port ${agent.port}, pid ${agent.pid}); ` +
        `\`berth agent attach ${called}\` shows its terminal`,
    );
  },
});

export const agentListCommand = defineCommand({
  options: SCOPE_OPTIONS,
  run: async (context, _names, choice) => {
    const client = await context.client();
    const scope = await stackScope(client, choice);
    const all = await client.agents();
    const empty =
      all.length === 0
        ? 'There are no agents. `berth agent spinup` starts one.'
        : 'There are no agents here; `berth agent ls -A` lists those elsewhere.';
    context.out.rows(all.filter(scope.has), columnsOf(scope), empty);
  },
});

export const agentLogsCommand = defineCommand({
  about: 'Lines are as the terminal showed them; --raw prints the bytes.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    follow: flagOption('-f, --follow', 'print new lines until Ctrl-C'),
    lines: integerOption(
      '-n, --lines <count>',
      `number of last lines; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
      [1, LOGS.maxLines],
    ),
    tail: integerOption('--tail <count>', 'same as --lines', [1, LOGS.maxLines]),
    raw: flagOption('--raw', 'print the bytes unchanged'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, [given = ''], options) => {
    const { follow, tail = LOGS.defaultLines, lines = tail, raw, ...choice } = options;
    const client = await context.client();
    const name = (await stackScope(client, choice)).full(given);
    // Asking for an agent's logs first rejects the name of a plain service.
    const answer = await client.agentLogs(name, { lines: follow ? 1 : lines, raw });
    if (follow) {
      await followLogs(context, client, [name], { lines, raw });
      return;
    }
    if (raw && !context.out.isData) context.out.raw(`${answer.lines.join('\n')}\n`);
    else context.out.record(answer, () => answer.lines.map(sanitizeLine).join('\n'));
  },
});

export const agentRemoveCommand = defineCommand({
  about: 'Ends the whole process tree, deletes the logs and frees the port.',
  args: [{ syntax: '<names...>', about: 'the agents', completes: 'agent' }],
  options: SCOPE_OPTIONS,
  run: async (context, names, choice) => {
    const client = await context.client();
    const selected = namedServices(await stackScope(client, choice), names);
    return runBatch(context, selected, 'removing', async (name) => ({
      record: await client.removeAgent(name),
      text: 'is removed',
    }));
  },
});
