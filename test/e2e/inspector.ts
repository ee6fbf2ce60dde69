// Ends one thread of a real daemon as a crash does: through Node's inspector, which the daemon opens on
// SIGUSR1.
import { WebSocket } from 'ws';
import { type Daemon, eventually } from '../kit/daemon.ts';

/** The environment with which a daemon's inspector takes a port of its own. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

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
 * when the thread has its order to end, or the daemon has ended.
 */
export async function endThread(daemon: Daemon, name: string): Promise<void> {
  let isGone = false;
  void daemon.exited.then(() => {
    isGone = true;
  });
  await eventually(async () => {
    daemon.signal('SIGUSR1');
    const url = /Debugger listening on (ws:\S+)/.exec(daemon.stderr())?.[1];
    return isGone || (url !== undefined && (await tellToEnd(url, name)));
  });
}
