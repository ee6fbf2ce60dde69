// The commands for the states of agents: rows of the table in commands.ts.
import type { CommandRow } from './kit/command_table.ts';

const AGENTS = 'Agents';

const lazyCommands = () => import('./lazy_commands.ts');

export const AGENT_STATE_ROWS: readonly CommandRow[] = [
  {
    name: 'agent states',
    summary: 'show what agents are doing and which ones wait for an answer',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentStatesCommand,
  },
  {
    name: 'agent explain',
    summary: 'show why an agent is in its state',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentExplainCommand,
  },
  {
    name: 'agent report',
    summary: 'report the state of an agent, as its hooks do',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentReportCommand,
  },
  {
    name: 'agent wait',
    summary: 'wait until agents are idle, ask something or have exited',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentWaitCommand,
  },
];
