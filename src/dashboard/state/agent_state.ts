// The state of an agent, as the daemon tells it.
import type { Agent } from '../../client/browser.ts';

const STATES = ['blocked', 'idle', 'working', 'starting', 'exited'] as const;
export type AgentState = (typeof STATES)[number];

/** The state. */
export const agentState = (agent: Agent): AgentState => (agent.active ? 'working' : 'exited');

/** The place of a state in the order of who waits for a person. */
export const urgencyOf = (state: AgentState): number => STATES.indexOf(state);
