// State: none of its own; the supervisor knows which threads are running. Rebuilt from: nothing.
import type { ThreadsProtocol } from '../protocol/threads.ts';
import { actor } from '../runtime/actor.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

/** At `threads`, on the thread of the front: starts the thread of an address. */
export const threadsActor = actor<ThreadsProtocol, ThreadSupervisor>('threads', (context, threads) => ({
  ensure: ({ address }) => context.replyLater(threads.ensureFor(address).then(() => null)),
}));
