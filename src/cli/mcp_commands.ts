// The commands that connect coding agents to Berth: rows of the table in commands.ts.
import type { CommandRow } from './kit/command_table.ts';

const AGENTS = 'Agents';
const lazyCommands = () => import('./lazy_commands.ts');

export const MCP_ROWS: readonly CommandRow[] = [
  {
    name: 'agent init',
    summary: 'set up the coding agents of this project to use berth',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentInitCommand,
  },
  {
    name: 'agent hook',
    summary: 'report the state of the agent that calls it (for its hooks)',
    heading: AGENTS,
    isHidden: true,
    load: async () => (await lazyCommands()).agentHookCommand,
  },
  {
    name: 'mcp',
    summary: 'serve the tools of agents on stdin and stdout (Model Context Protocol)',
    heading: AGENTS,
    load: async () => (await lazyCommands()).mcpCommand,
  },
];
