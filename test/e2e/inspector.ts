// Ends one thread of a real daemon as a crash does: through Node's inspector, which the daemon opens on
// SIGUSR1.
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { type Daemon, eventually } from '../kit/daemon.ts';

/** The environment with which a daemon's inspector takes a port of its own. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

/** Time for a thread to die of its order, and the interval of looks at it. */
const ORDER_MS = 3_000;
const LOOK_MS = 10;

/**
 * Makes the inspector end the thread; false when it was not reachable. The inspector closes by itself at
 * times, and reopens with SIGUSR1.
 */
function tellToEnd(url: string, name: string): Promise<boolean> {
  const inspector = new WebSocket(url);
  let isSent = false;
  return new Promise<boolean>((resolve) => {
    const send = (method: string, params: object): void =>
      inspector.send(JSON.stringify({ id: 1, method, params }));
    inspector.on('error', () => resolve(isSent));
    inspector.on('close', () => resolve(isSent));
    inspector.on('open', () => send('NodeWorker.enable', { waitForDebuggerOnStart: false }));
    inspector.on('message', (text) => {
      const { method, params } = JSON.parse(String(text));
      if (method === 'NodeWorker.detachedFromWorker') resolve(isSent);
      // The thread that replaces it has the same name.
      if (method !== 'NodeWorker.attachedToWorker' || isSent) return;
      if (!params.workerInfo.title.endsWith(` ${name}`)) return;
      isSent = true;
      const message = JSON.stringify({
        id: 1,
        method: 'Runtime.evaluate',
        params: { expression: 'process.exit(1)' },
      });
      send('NodeWorker.sendMessageToWorker', { sessionId: params.sessionId, message });
    });
  }).finally(() => inspector.close());
}

/**
 * Ends the thread `name` of a daemon that was started with `INSPECTABLE`. The thread must be up: Node ends
 * the whole process with a thread that ends while Node or a native library is still loading in it. Resolves
 * when the thread has died, or the daemon has ended: a thread with an order to end may still answer.
 */
export async function endThread(daemon: Daemon, name: string): Promise<void> {
  const deaths = (): number => daemon.stderr().split(`the thread ${name} crashed`).length - 1;
  const before = deaths();
  let isGone = false;
  void daemon.exited.then(() => {
    isGone = true;
  });
  const isDead = (): boolean => isGone || deaths() > before;
  await eventually(async () => {
    if (isDead()) return true;
    daemon.signal('SIGUSR1');
    const url = /Debugger listening on (ws:\S+)/.exec(daemon.stderr())?.[1];
    if (url === undefined || !(await tellToEnd(url, name))) return isDead();
    // The inspector may have closed before it passed the order on, which it never says.
    for (let waited = 0; !isDead() && waited < ORDER_MS; waited += LOOK_MS) await pause(LOOK_MS);
    return isDead();
  });
}
