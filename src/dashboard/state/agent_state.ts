// The states of agents, in the order of who waits for a person.
import type { Agent } from '../../client/browser.ts';

const BY_URGENCY: readonly Agent['state'][] = ['blocked', 'idle', 'working', 'starting', 'asleep', 'exited'];

/** The place of a state in the order of who waits for a person. */
export const urgencyOf = (state: Agent['state']): number => BY_URGENCY.indexOf(state);
