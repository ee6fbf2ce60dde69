// The commands of agents. Those that agents share with services are loaded with this table.
import { AGENT_STATE_ROWS } from './agent_state_commands.ts';
import { restartCommand } from './commands/restart.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { stopCommand } from './commands/stop.ts';
import type { Command } from './kit/command.ts';
import type { CommandRow } from './kit/command_table.ts';

const AGENTS = 'Agents';

const loaded = (command: Command) => async (): Promise<Command> => command;
const lazyCommands = () => import('./lazy_commands.ts');

export const AGENT_ROWS: readonly CommandRow[] = [
  {
    name: 'agent spinup',
    summary: 'start an agent in its own terminal',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentSpinupCommand,
  },
  {
    name: 'agent ls',
    summary: 'list agents',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentListCommand,
  },
  ...AGENT_STATE_ROWS,
  {
    name: 'agent logs',
    summary: 'show the output of an agent',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentLogsCommand,
  },
  {
    name: 'agent attach',
    summary: 'connect to the terminal of an agent',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentAttachCommand,
  },
  {
    name: 'agent screen',
    summary: 'show what the terminal of an agent shows now',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentScreenCommand,
  },
  {
    name: 'agent keys',
    summary: 'type keys or text into the terminal of an agent',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentKeysCommand,
  },
  {
    name: 'agent sleep',
    summary: 'end idle agents, and keep their conversations',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentSleepCommand,
  },
  {
    name: 'agent wake',
    summary: 'go on with the conversations of agents that sleep',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentWakeCommand,
  },
  {
    name: 'agent prompt',
    summary: 'give an agent a prompt, and show its answer with --wait',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentPromptCommand,
  },
  {
    name: 'agent share',
    summary: 'let others watch the terminal of an agent for a while',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentShareCommand,
  },
  {
    name: 'agent start',
    summary: 'start agents that were stopped',
    heading: AGENTS,
    load: loaded(startCommand),
  },
  {
    name: 'agent stop',
    summary: 'stop agents and every process they started',
    heading: AGENTS,
    load: loaded(stopCommand),
  },
  {
    name: 'agent restart',
    summary: 'stop and start agents',
    heading: AGENTS,
    load: loaded(restartCommand),
  },
  {
    name: 'agent status',
    summary: 'show the state of an agent and the reason for it',
    heading: AGENTS,
    load: loaded(statusCommand),
  },
  {
    name: 'agent rm',
    summary: 'stop and remove agents',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentRemoveCommand,
  },
];
