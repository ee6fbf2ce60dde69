// The states of agents by urgency: agents that wait for a person come first.
import type { Agent } from '../../client/browser.ts';

const BY_URGENCY: readonly Agent['state'][] = ['blocked', 'idle', 'working', 'starting', 'asleep', 'exited'];

/** The rank of a state by urgency; 0: the most urgent. */
export const urgencyOf = (state: Agent['state']): number => BY_URGENCY.indexOf(state);
