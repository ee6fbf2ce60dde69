// berth agent spinup, ls, logs, rm
import { resolve } from 'node:path';
import type { Agent, SpinupRequest } from '../../client/records.ts';
import { AGENT_TYPES } from '../../protocol/agent_types.ts';
import { LOGS } from '../../settings/limits.ts';
import { runBatch } from '../kit/batch.ts';
import {
  choiceOption,
  defineCommand,
  flagOption,
  integerOption,
  repeatedOption,
  textOption,
} from '../kit/command.ts';
import { commandLine, parseEnvEntries } from '../kit/command_line.ts';
import type { Column } from '../kit/output.ts';
import { followLogs } from '../kit/print_logs.ts';
import { sanitizeLine } from '../kit/sanitize.ts';

const COLUMNS: readonly Column<Agent>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  {
    title: 'ACTIVE',
    cell: ({ active }) => (active ? 'yes' : 'no'),
    style: ({ active }) => (active ? 'green' : 'dim'),
  },
  { title: 'TYPE', cell: ({ agent_type }) => agent_type },
  { title: 'PORT', cell: ({ port }) => port, alignRight: true },
  { title: 'PID', cell: ({ pid }) => pid, alignRight: true },
  { title: 'HOSTNAME', cell: ({ hostname }) => hostname },
];

export const agentSpinupCommand = defineCommand({
  about:
    'Returns as soon as the process is there; it runs in a terminal of its own. Without a command the type says what is run. The port is one of agents.ports unless it is given, and the agent finds it in $PORT.',
  args: [
    { syntax: '<name>', about: 'the name of the agent, which becomes its host name' },
    { syntax: '[command...]', about: 'the shell command that runs it; put -- before it when it has options' },
  ],
  options: {
    type: choiceOption('--type <type>', 'what it is made with', AGENT_TYPES),
    port: integerOption('-p, --port <port>', 'the port it listens on; default: a free one', [1, 65535]),
    cwd: textOption('--cwd <dir>', 'the folder it runs in; default: this one', 'file'),
    ready: textOption(
      '--ready <url>',
      'when it counts as running: an http or tcp URL; $PORT in it is its port',
    ),
    env: repeatedOption(
      '-e, --env <KEY=value>',
      'an environment variable; a name alone passes on the one set here',
    ),
  },
  examples: [
    ['berth agent spinup bot --type langgraph', 'in the folder of a langgraph.json'],
    ['berth agent spinup sh -- bash', 'a shell to attach to'],
  ],
  run: async (context, [name = '', ...line], { type, port, cwd, ready, env }) => {
    const client = await context.client();
    const cmd = commandLine(line);
    const spec: SpinupRequest = {
      name,
      cwd: resolve(cwd ?? '.'),
      ...(cmd ? { cmd } : {}),
      ...(type ? { agent_type: type } : {}),
      ...(port === undefined ? {} : { port }),
      ...(ready === undefined ? {} : { ready }),
      ...(env.length > 0 ? { env: parseEnvEntries(env) } : {}),
    };
    const agent = await client.spinup(spec);
    context.out.record(
      agent,
      () =>
        `${name} is up at ${agent.gatewayUrl ?? agent.url} (port ${agent.port}, pid ${agent.pid}); \`berth agent attach ${name}\` shows its terminal`,
    );
  },
});

export const agentListCommand = defineCommand({
  run: async (context) => {
    context.out.rows(
      await (await context.client()).agents(),
      COLUMNS,
      'There are no agents: `berth agent spinup` starts one.',
    );
  },
});

export const agentLogsCommand = defineCommand({
  about: 'Lines are what a person would have read; --raw gives the bytes.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    follow: flagOption('-f, --follow', 'go on with every new line until Ctrl-C'),
    lines: integerOption(
      '-n, --lines <count>',
      `how many of the last lines; default ${LOGS.defaultLines}, at most ${LOGS.maxLines}`,
      [1, LOGS.maxLines],
    ),
    raw: flagOption('--raw', 'the bytes as they were printed'),
  },
  run: async (context, [name = ''], { follow, lines = LOGS.defaultLines, raw }) => {
    const client = await context.client();
    // Asked for its own logs first, so that a plain service is refused.
    const answer = await client.agentLogs(name, { lines: follow ? 1 : lines, raw });
    if (follow) {
      await followLogs(context, client, [name], { lines, raw });
      return;
    }
    context.out.record(answer, () => answer.lines.map(raw ? String : sanitizeLine).join('\n'));
  },
});

export const agentRemoveCommand = defineCommand({
  about: 'The whole process tree is ended first; the logs are deleted and the port is given back.',
  args: [{ syntax: '<names...>', about: 'the agents', completes: 'agent' }],
  run: async (context, names) => {
    const client = await context.client();
    return runBatch(context, names, 'removing', async (name) => ({
      record: await client.removeAgent(name),
      text: 'is removed',
    }));
  },
});
