// Ends one thread of a real daemon as a crash does: by Node's inspector, which the daemon opens on SIGUSR1.
import { WebSocket } from 'ws';
import { type Daemon, eventually } from './daemon.ts';

/** What a daemon's environment needs so that its inspector takes a port of its own. */
export const INSPECTABLE = { NODE_OPTIONS: '--inspect-port=127.0.0.1:0' };

/** Ends the thread `name` of a daemon that was started with `INSPECTABLE`. Resolves when it is gone. */
export async function endThread(daemon: Daemon, name: string): Promise<void> {
  daemon.signal('SIGUSR1');
  const url = await eventually(() => /Debugger listening on (ws:\S+)/.exec(daemon.stderr())?.[1]);
  const inspector = new WebSocket(url);
  let isSent = false;
  await new Promise<void>((resolve, reject) => {
    const send = (method: string, params: object): void =>
      inspector.send(JSON.stringify({ id: 1, method, params }));
    inspector.on('error', reject);
    inspector.on('open', () => send('NodeWorker.enable', { waitForDebuggerOnStart: false }));
    inspector.on('message', (text) => {
      const { method, params } = JSON.parse(String(text));
      if (method === 'NodeWorker.detachedFromWorker') resolve();
      // The thread that follows has the same name.
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
  });
  inspector.close();
}
