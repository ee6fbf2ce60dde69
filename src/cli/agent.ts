// berth agent spinup, ls, logs, rm
import { resolve } from 'node:path';
import type { Agent, Spinup } from '../client/records.ts';
import { LOGS } from '../limits.ts';
import { AGENT_TYPES } from '../protocol/service.ts';
import { choice, command, flag, integer, text, texts } from './command.ts';
import { forEach } from './each.ts';
import { commandLine, envOf } from './launch.ts';
import { followAll } from './logs.ts';
import type { Column } from './output.ts';
import { plainLine } from './plain.ts';

const COLUMNS: readonly Column<Agent>[] = [
  { title: 'NAME', cell: ({ name }) => name },
  {
    title: 'ACTIVE',
    cell: ({ active }) => (active ? 'yes' : 'no'),
    style: ({ active }) => (active ? 'green' : 'dim'),
  },
  { title: 'TYPE', cell: ({ agent_type }) => agent_type },
  { title: 'PORT', cell: ({ port }) => port, right: true },
  { title: 'PID', cell: ({ pid }) => pid, right: true },
  { title: 'HOSTNAME', cell: ({ hostname }) => hostname },
];

export const spinup = command({
  about:
    'Returns as soon as the process is there; it runs in a terminal of its own. Without a command the type says what is run. The port is one of agents.ports unless it is given, and the agent finds it in $PORT.',
  args: [
    { syntax: '<name>', about: 'the name of the agent, which becomes its host name' },
    { syntax: '[command...]', about: 'the shell command that runs it; put -- before it when it has options' },
  ],
  options: {
    type: choice('--type <type>', 'what it is made with', AGENT_TYPES),
    port: integer('-p, --port <port>', 'the port it listens on; default: a free one', [1, 65535]),
    cwd: text('--cwd <dir>', 'the folder it runs in; default: this one', 'file'),
    ready: text('--ready <url>', 'when it counts as running: an http or tcp URL; $PORT in it is its port'),
    env: texts('-e, --env <KEY=value>', 'an environment variable; a name alone passes on the one set here'),
  },
  examples: [
    ['berth agent spinup bot --type langgraph', 'in the folder of a langgraph.json'],
    ['berth agent spinup sh -- bash', 'a shell to attach to'],
  ],
  run: async (cli, [name = '', ...line], { type, port, cwd, ready, env }) => {
    const berth = await cli.berth();
    const cmd = commandLine(line);
    const spec: Spinup = {
      name,
      cwd: resolve(cwd ?? '.'),
      ...(cmd ? { cmd } : {}),
      ...(type ? { agent_type: type } : {}),
      ...(port === undefined ? {} : { port }),
      ...(ready === undefined ? {} : { ready }),
      ...(env.length > 0 ? { env: envOf(env) } : {}),
    };
    const agent = await berth.spinup(spec);
    cli.out.record(
      agent,
      () =>
        `${name} is up at ${agent.gatewayUrl ?? agent.url} (port ${agent.port}, pid ${agent.pid}); \`berth agent attach ${name}\` shows its terminal`,
    );
  },
});

export const agentList = command({
  run: async (cli) => {
    cli.out.rows(
      await (await cli.berth()).agents(),
      COLUMNS,
      'There are no agents: `berth agent spinup` starts one.',
    );
  },
});

export const agentLogs = command({
  about: 'Lines are what a person would have read; --raw gives the bytes.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    follow: flag('-f, --follow', 'go on with every new line until Ctrl-C'),
    lines: integer(
      '-n, --lines <count>',
      `how many of the last lines; default ${LOGS.lines}, at most ${LOGS.maxLines}`,
      [1, LOGS.maxLines],
    ),
    raw: flag('--raw', 'the bytes as they were printed'),
  },
  run: async (cli, [name = ''], { follow, lines = LOGS.lines, raw }) => {
    const berth = await cli.berth();
    // Asked for its own logs first, so that a plain service is refused.
    const answer = await berth.agentLogs(name, { lines: follow ? 1 : lines, raw });
    if (follow) {
      await followAll(cli, berth, [name], { lines, raw });
      return;
    }
    cli.out.record(answer, () => answer.lines.map(raw ? String : plainLine).join('\n'));
  },
});

export const agentRemove = command({
  about: 'The whole process tree is ended first; the logs are deleted and the port is given back.',
  args: [{ syntax: '<names...>', about: 'the agents', completes: 'agent' }],
  run: async (cli, names) => {
    const berth = await cli.berth();
    return forEach(cli, names, 'removing', async (name) => ({
      record: await berth.removeAgent(name),
      text: 'is removed',
    }));
  },
});
