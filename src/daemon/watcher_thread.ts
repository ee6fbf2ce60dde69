// The contents of the thread that watches files. Reading a large tree takes most of a second, and a checkout
// makes thousands of events: nothing else waits for either.
import { watcherActor } from '../actors/watcher/watcher.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

async function setupWatcher(node: Node): Promise<void> {
  await node.start('watcher', watcherActor, { requests: new Map() });
  // A thread that was started anew knows no request.
  node.ref('registry').tell('watchAgain', {});
}

/** The life of the thread: see `runThread`. */
export const runWatcherThread = (): Promise<void> => runThread(setupWatcher, reportCrash);
