// The methods for agents: docs/reference.md "Endpoints".

import { agents } from '../../api/agents.ts';
import type { KeysRequest, PromptRequest, SpinupRequest, StateReport } from '../../api/agents_shapes.ts';
import type { QueryInputOf } from '../../api/operation.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';
import { type AttachOptions, attachTerminal, type TerminalSession } from '../attach_terminal.ts';
import type { StreamOptions } from '../event_stream.ts';
import { followGrowth, followLog, type LogFollowOptions, type LogOptions, logsQuery } from './logs.ts';
import type { WaitOptions } from './services.ts';

export interface ScreenOptions extends CallOptions {
  /** `ansi`: lines keep their colours. Default `text`. */
  format?: 'text' | 'ansi' | undefined;
}

export interface SessionOptions extends WaitOptions {
  /** Proceed even if no conversation is known, so that a new one will begin. */
  force?: boolean | undefined;
}

export interface AgentWakeOptions extends SessionOptions {
  /** Milliseconds to become ready. */
  timeout?: number | undefined;
}
export type StateWaitOptions = CallOptions & QueryInputOf<typeof agents.wait>;

export type AgentsWaitOptions = CallOptions & QueryInputOf<typeof agents.waitForAll>;

/** The methods of the daemon at `endpoint`. */
export const agentMethods = (endpoint: Endpoint) => ({
  agents: async ({ signal }: CallOptions = {}) => (await call(endpoint, agents.list, { signal })).agents,
  agent: (name: string, { signal }: CallOptions = {}) => call(endpoint, agents.read, { name, signal }),
  spinup: (spec: SpinupRequest, { signal }: CallOptions = {}) =>
    call(endpoint, agents.spinup, { body: spec, signal }),
  removeAgent: (name: string, { wait, signal }: WaitOptions = {}) =>
    call(endpoint, agents.remove, { name, query: { wait }, signal }),
  /** Ends the process of an idle agent and keeps its conversation. */
  sleepAgent: (name: string, { force, wait, signal }: SessionOptions = {}) =>
    call(endpoint, agents.sleep, { name, query: { force, wait }, signal }),
  /** Resumes the conversation of an agent, and resolves when its process runs. */
  wakeAgent: (name: string, { force, timeout, wait, signal }: AgentWakeOptions = {}) =>
    call(endpoint, agents.wake, { name, query: { force, timeout, wait }, signal }),
  agentLogs: (name: string, options: LogOptions = {}) =>
    call(endpoint, agents.logs, { name, query: logsQuery(options), signal: options.signal }),
  followAgentLogs: (name: string, options: LogFollowOptions = {}) =>
    followLog(endpoint, agents.followLogs, name, options),
  /** Yields each time the agent has printed something, whether or not it ends a line. */
  followAgentLogGrowth: (name: string, options: StreamOptions = {}) =>
    followGrowth(endpoint, agents.followLogs, name, options),
  /** Why it is in its state: what each source says, and based on which lines. */
  explainAgent: (name: string, { signal }: CallOptions = {}) =>
    call(endpoint, agents.explain, { name, signal }),
  /** Reports an agent's state, for its own hook. */
  reportState: (name: string, report: StateReport, { signal }: CallOptions = {}) =>
    call(endpoint, agents.reportState, { name, body: report, signal }),
  /** What a viewer of the terminal would see now. */
  agentScreen: (name: string, { format, signal }: ScreenOptions = {}) =>
    call(endpoint, agents.screen, { name, query: { format }, signal }),
  /** Types into the terminal: keys such as `Enter` or `C-c`, or literal text. */
  typeKeys: (name: string, typed: KeysRequest, { signal }: CallOptions = {}) =>
    call(endpoint, agents.keys, { name, body: typed, signal }),
  /**
   * Types `text` into the terminal and submits it. With `wait`, resolves when the agent is idle or asks
   * something. Never sent twice.
   */
  promptAgent: (name: string, prompt: PromptRequest, { signal }: CallOptions = {}) =>
    call({ ...endpoint, busyRetryMs: 0 }, agents.prompt, { name, body: prompt, signal }),
  /** Resolves when the agent is in one of the states. Rejects with `wait_timeout`. */
  waitForAgent: (name: string, { signal, ...query }: StateWaitOptions = {}) =>
    call(endpoint, agents.wait, { name, query, signal }),
  /** Resolves when any of the agents, or all, are in one of the states. Rejects with `wait_timeout`. */
  waitForAgents: async ({ signal, ...query }: AgentsWaitOptions = {}) =>
    (await call(endpoint, agents.waitForAll, { query, signal })).agents,
  /** A token with which others may watch the terminal for `minutes`. */
  shareAgent: (name: string, minutes: number, { signal }: CallOptions = {}) =>
    call(endpoint, agents.share, { name, body: { mode: 'observe', minutes }, signal }),
  agentShares: async (name: string, { signal }: CallOptions = {}) =>
    (await call(endpoint, agents.shares, { name, signal })).shares,
  /** Ends the share `id`; null: all shares of the agent. */
  revokeAgentShares: (name: string, id: string | null, { signal }: CallOptions = {}) =>
    call(endpoint, agents.endShares, { name, query: { id }, signal }),
  attach: (name: string, options: AttachOptions): Promise<TerminalSession> =>
    attachTerminal(endpoint, agents.attach, name, options),
});
