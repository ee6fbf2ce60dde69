// A worker thread that gets its assignment after its start: the first one comes up, which takes as long as a
// Node process, while the daemon's own code is still loading.
import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** What a thread says when its code is loaded. */
const LOADED = 'loaded';

export interface StartedWorker {
  /** Sends the assignment, once. */
  assign(assignment: unknown, transfer: Transferable[]): void;
  /** Its own code begins to be loaded. */
  readonly online: Promise<void>;
  /**
   * Its code is loaded, or it has ended. To end thread or process while it loads native code can abort the
   * process.
   */
  readonly loaded: Promise<void>;
  /** Resolves with the reason when it is over. */
  readonly ended: Promise<unknown>;
  terminate(): Promise<void>;
}

/** Starts a thread, which waits for `assign`. */
export function startWorker(entry: string | URL, name: string): StartedWorker {
  const worker = new Worker(entry, { name });
  const online = new Promise<void>((resolve) => worker.once('online', resolve));
  const ended = new Promise<unknown>((resolve) => {
    let cause: unknown;
    worker.once('error', (error) => {
      cause = error;
    });
    worker.once('exit', (code) => resolve(cause ?? new Error(`exit code ${code}`)));
  });
  const loaded = new Promise<void>((resolve) => {
    worker.once('message', () => resolve());
    void ended.then(() => resolve());
  });
  return {
    assign: (assignment, transfer) => worker.postMessage(assignment, transfer),
    online,
    loaded,
    ended,
    terminate: async () => void (await worker.terminate()),
  };
}

/** In the thread: its assignment. */
export function receiveAssignment<T>(): Promise<T> {
  if (!parentPort) throw new Error('this is no worker thread');
  const port = parentPort;
  port.postMessage(LOADED);
  return new Promise((resolve) => port.once('message', resolve));
}
