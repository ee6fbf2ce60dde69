// Tools for agents.
import { z } from '../../adapters/zod.ts';
import {
  AgentList,
  type AgentStanding,
  AgentStandings,
  Prompted,
  Screen,
  SleepResult,
  SpunUp,
  StartResult,
  Typed,
} from '../../api/agents_shapes.ts';
import { AGENT_STATES } from '../../protocol/agent_state.ts';
import { AGENT_TYPES } from '../../protocol/agent_types.ts';
import { durationMs, linesOf, nameField, stackField } from '../fields.ts';
import { defineTool, inputShape } from '../tool.ts';

const agents = defineTool({
  name: 'agents',
  title: 'List agents',
  description:
    'Every agent, with what it is doing and what it asks: a program that runs in a terminal of its own and goes ' +
    'on without a viewer.',
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
      ({ name, state, agent_type, title, question }) =>
        [[name, state, agent_type, title].filter(Boolean).join('  '), ...question].join('\n  '),
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

/** An agent in a line, and what it asks below. */
const standingText = ({ name, state, question }: AgentStanding): string =>
  [`${name} is ${state}${question.length > 0 ? ' and asks:' : ''}`, ...question].join('\n');

const prompt = defineTool({
  name: 'agent_prompt',
  title: 'Prompt an agent',
  description:
    'Types a prompt into the terminal of another coding agent and submits it. With wait: idle, it answers ' +
    'when the agent is done or asks something, with the lines that have appeared. Refused while the agent ' +
    'asks a person, and while it works unless queue is true.',
  effect: 'changes',
  isRepeatable: false,
  operations: ['promptAgent'],
  input: inputShape({
    name: nameField,
    text: z.string().min(1).describe('The prompt; it may have several lines'),
    wait: z
      .enum(['idle', 'change'])
      .optional()
      .describe('Until it is idle or asks, or its state has changed'),
    queue: z.boolean().optional().describe('true: while it works, wait for its turn'),
    timeout: durationMs('How long to wait'),
  }),
  output: Prompted,
  run: ({ client, signal }, { name, ...given }) => client.promptAgent(name, given, { signal }),
  text: (answer) => [standingText(answer), ...(answer.lines ?? [])].join('\n'),
  progress: async ({ client, signal }, { name }) => standingText(await client.agent(name, { signal })),
});

const wait = defineTool({
  name: 'agent_wait',
  title: 'Wait for agents',
  description:
    'Waits until agents are in one of the states: idle (ready for a prompt), blocked (asks a person), ' +
    'working, exited. Not in time is the error wait_timeout.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['waitForAgents'],
  input: inputShape({
    names: z.array(z.string()).min(1).describe('Names of agents, from `agents`'),
    for: z
      .array(z.enum(AGENT_STATES))
      .min(1)
      .optional()
      .describe('The states; default: idle, blocked, exited'),
    mode: z.enum(['any', 'all']).optional().describe('Whether one of the agents is enough; default: any'),
    timeout: durationMs('How long to wait'),
  }),
  output: AgentStandings,
  run: async ({ client, signal }, input) => ({ agents: await client.waitForAgents({ ...input, signal }) }),
  text: ({ agents: found }) => linesOf(found, standingText, 'There are no such agents.'),
  progress: async (_call, { names }) => `waiting for ${names.join(', ')}`,
});

const keys = defineTool({
  name: 'agent_keys',
  title: 'Type keys into an agent',
  description:
    'Types keys, or text without Enter, into the terminal of an agent: to answer what a blocked one asks, or to ' +
    'interrupt one. For a prompt use agent_prompt.',
  effect: 'changes',
  isRepeatable: false,
  operations: ['typeKeys'],
  input: inputShape({
    name: nameField,
    keys: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('Characters and names such as Enter, Escape, Down, C-c'),
    text: z.string().min(1).optional().describe('Instead of keys: text, typed unchanged'),
  }),
  output: Typed,
  run: ({ client, signal }, { name, ...typed }) => client.typeKeys(name, typed, { signal }),
  text: ({ name, bytes }) => `${name} received ${bytes} bytes. \`agent_screen\` shows the effect.`,
});

const sleep = defineTool({
  name: 'agent_sleep',
  title: 'Put an agent to sleep',
  description:
    'Ends the process of an idle agent and keeps its conversation, which agent_wake or a prompt goes on with.',
  effect: 'ends',
  isRepeatable: true,
  operations: ['sleepAgent'],
  input: inputShape({ name: nameField }),
  output: SleepResult,
  run: ({ client, signal }, { name }) => client.sleepAgent(name, { signal }),
  text: ({ name }) => `${name} is asleep.`,
});

const wake = defineTool({
  name: 'agent_wake',
  title: 'Wake an agent',
  description: 'Resumes the conversation of an agent. A running agent is left alone.',
  effect: 'changes',
  isRepeatable: true,
  operations: ['wakeAgent'],
  input: inputShape({ name: nameField }),
  output: StartResult,
  run: ({ client, signal }, { name }) => client.wakeAgent(name, { signal }),
  text: ({ name, pid }) => `${name} is awake, pid ${pid}.`,
});

export const AGENT_TOOLS = [agents, spinup, prompt, keys, screen, wait, sleep, wake];
