// A worker thread that gets its assignment after its start. So the first thread, which takes as long to start
// as a Node process, starts while the daemon's own code is still loading.
import { parentPort, type Transferable, Worker } from 'node:worker_threads';

/** Sent by a thread whose code has been loaded. */
const LOADED = 'loaded';

export interface StartedWorker {
  /** Sends the assignment, once. */
  assign(assignment: unknown, transfer: Transferable[]): void;
  /** Resolves when the thread begins to load its code. */
  readonly online: Promise<void>;
  /**
   * Resolves when its code is loaded, or it has ended. Ending a thread or process while it loads native code
   * can abort the process.
   */
  readonly loaded: Promise<void>;
  /** Whether its code has been loaded. */
  readonly isLoaded: boolean;
  /** Resolves with the reason when the thread has ended. */
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
  let isLoaded = false;
  const loaded = new Promise<void>((resolve) => {
    worker.once('message', () => {
      isLoaded = true;
      resolve();
    });
    void ended.then(() => resolve());
  });
  return {
    assign: (assignment, transfer) => worker.postMessage(assignment, transfer),
    online,
    loaded,
    get isLoaded() {
      return isLoaded;
    },
    ended,
    terminate: async () => void (await worker.terminate()),
  };
}

/** Receives the assignment. Runs inside the thread. */
export function receiveAssignment<T>(): Promise<T> {
  if (!parentPort) throw new Error('this is no worker thread');
  const port = parentPort;
  port.postMessage(LOADED);
  return new Promise((resolve) => port.once('message', resolve));
}
