// The node of the main thread, `front` to the other threads.
import { createNodeLookup, mayAsk } from '../protocol/address.ts';
import type { Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { createNode } from '../runtime/node.ts';
import { THREADS } from '../settings/limits.ts';
import { POOL_SIZES } from '../settings/pool_sizes.ts';
import { reportCrash } from './daemon_log.ts';

/** Creates it. `onHandle` is called for every message that is handled. */
export const createFrontNode = (onHandle: (address: string, kind: string) => void): Node =>
  createNode({
    name: 'front',
    clock: systemClock,
    nodeOf: createNodeLookup(POOL_SIZES),
    mayAsk,
    onCrash: reportCrash,
    onHandle,
    defaultDeadlineMs: THREADS.askDeadlineMs,
  });
