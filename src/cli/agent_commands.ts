// The commands for agents. The commands that agents share with services are loaded with this table.
import { AGENT_STATE_ROWS } from './agent_state_commands.ts';
import { restartCommand } from './commands/restart.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { stopCommand } from './commands/stop.ts';
import type { Command } from './kit/command.ts';
import type { CommandRow } from './kit/command_table.ts';

const AGENTS = 'Agents';

/** A command for services, with descriptions for agents. */
const ofAgents =
  (command: Command, about: string, examples: Command['examples'] = []) =>
  async (): Promise<Command> => ({
    ...command,
    about,
    args: (command.args ?? []).map((arg) => ({
      ...arg,
      about: arg.about.replace('service', 'agent'),
      completes: 'agent',
    })),
    examples,
  });

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
    summary: 'end idle agents and keep their conversations',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentSleepCommand,
  },
  {
    name: 'agent wake',
    summary: 'resume the conversations of sleeping agents',
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
    load: ofAgents(
      startCommand,
      'Starts agents that do not run: with their conversations, where these are known. Returns once the ' +
        'ready-check of each has passed. Leaves alone an agent that already runs.',
      [['berth agent start bot', 'start an agent that was stopped']],
    ),
  },
  {
    name: 'agent stop',
    summary: 'stop agents and every process they started',
    heading: AGENTS,
    load: ofAgents(
      stopCommand,
      'Sends the stop signal to the whole process tree of each agent, and kills what is left after the ' +
        'grace period. The agent stays registered; `berth agent sleep` keeps its screen too.',
    ),
  },
  {
    name: 'agent restart',
    summary: 'stop and start agents',
    heading: AGENTS,
    load: ofAgents(
      restartCommand,
      'Stops and starts agents, with their conversations where these are known. Starts an agent that is ' +
        'stopped.',
    ),
  },
  {
    name: 'agent status',
    summary: 'show the state of an agent and the reason for it',
    heading: AGENTS,
    load: ofAgents(
      statusCommand,
      'Shows the state of the process of an agent, how it ended, and the end of its log; `berth agent ' +
        'explain` shows what it is doing. Exit code 0 if it is running, 3 if not, 4 if there is no such agent.',
      [['berth agent status bot -o json | jq .exit', 'how it ended']],
    ),
  },
  {
    name: 'agent rm',
    summary: 'stop and remove agents',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentRemoveCommand,
  },
];
