// The contents of the thread that watches files. It is separate because reading a large tree takes most of a
// second, and a checkout causes thousands of events.
import { watcherActor } from '../actors/watcher/watcher.ts';
import type { Node } from '../runtime/actor.ts';
import { reportCrash } from './daemon_log.ts';
import { runThread } from './thread_instance.ts';

async function setupWatcher(node: Node): Promise<void> {
  await node.start('watcher', watcherActor, { requests: new Map() });
  // A restarted thread has lost all requests.
  node.ref('registry').tell('watchAgain', {});
}

/** The life of the thread: see `runThread`. */
export const runWatcherThread = (): Promise<void> => runThread(setupWatcher, reportCrash);
