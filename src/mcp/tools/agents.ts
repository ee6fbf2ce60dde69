// Tools for agents.
import { z } from '../../adapters/zod.ts';
import { AgentList, Screen, SpunUp } from '../../api/agents_shapes.ts';
import { AGENT_TYPES } from '../../protocol/agent_types.ts';
import { linesOf, nameField, stackField } from '../fields.ts';
import { defineTool, inputShape } from '../tool.ts';

const agents = defineTool({
  name: 'agents',
  title: 'List agents',
  description: 'Every agent: a program that runs in a terminal of its own and goes on without a viewer.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['listAgents'],
  input: inputShape({ stack: stackField }),
  output: AgentList,
  run: async ({ client, signal }, { stack }) => ({
    agents: (await client.agents({ signal })).filter((one) => stack === undefined || one.stack === stack),
  }),
  text: ({ agents: found }) =>
    linesOf(
      found,
      ({ name, active, agent_type }) =>
        [name, active ? 'active' : 'ended', agent_type].filter(Boolean).join('  '),
      'There are no agents. `agent_spinup` starts one.',
    ),
});

const spinup = defineTool({
  name: 'agent_spinup',
  title: 'Start an agent',
  description:
    'Starts a program in a terminal of its own, such as another coding agent, and answers when its process ' +
    'is there. It finds its port in $PORT. One of cmd and agent_type.',
  effect: 'changes',
  isRepeatable: false,
  operations: ['spinUpAgent'],
  input: inputShape({
    name: z.string().min(1).describe('Its unique name: a-z, 0-9 and -'),
    cmd: z.string().min(1).optional().describe('The shell command; default: that of agent_type'),
    agent_type: z.enum(AGENT_TYPES).optional().describe('What it is; it names the command'),
    cwd: z.string().optional().describe('The folder it runs in, as an absolute path'),
    env: z.record(z.string(), z.string()).optional().describe('Environment variables'),
    ready: z.string().optional().describe('Ready-check: a URL in which $PORT is its port'),
    stack: z.string().optional().describe('The stack it belongs to; its name then begins with `<stack>--`'),
  }),
  output: SpunUp,
  run: ({ client, signal, folder, baseEnv }, spec) =>
    client.spinup(
      { ...spec, cwd: spec.cwd ?? folder, ...(baseEnv ? { baseEnv: { ...baseEnv } } : {}) },
      { signal },
    ),
  text: ({ name, url, pid }) => `${name} is up, pid ${pid}, at ${url}. \`agent_screen\` shows its terminal.`,
});

const screen = defineTool({
  name: 'agent_screen',
  title: 'Screen of an agent',
  description: 'What the terminal of an agent shows now, as text.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['getAgentScreen'],
  input: inputShape({ name: nameField }),
  output: Screen,
  run: ({ client, signal }, { name }) => client.agentScreen(name, { signal }),
  text: ({ lines }) => lines.join('\n').trimEnd() || 'The screen is empty.',
});

export const AGENT_TOOLS = [agents, spinup, screen];
