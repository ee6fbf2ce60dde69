// How a hanging thread is handled: docs/reference.md "Hung threads".
import { writeSync } from 'node:fs';
import type { Clock } from '../runtime/actor.ts';
import { THREADS } from '../settings/limits.ts';
import { WatchedHeartbeat } from './heartbeat.ts';
import { type Stall, StallDetector } from './stall_detector.ts';
import { mainThreadStack } from './thread_stack.ts';

const STDERR = 2;

/** The diagnosis of a hanging thread. Its stack is that of the thread. */
export function hangError(name: string, stall: Stall, note: string, stack: readonly string[]): Error {
  const last = note === '' ? '' : `; its last message was ${note}`;
  const error = new Error(`the thread ${name} does not answer: ${stall}${last}`);
  error.stack = [error.message, ...stack.map((frame) => `    at ${frame}`)].join('\n');
  return error;
}

/** Whether this process is being debugged, so that threads may be paused for any length of time. */
export const isDebugged = (): boolean =>
  [...process.execArgv, ...(process.env['NODE_OPTIONS'] ?? '').split(' ')].some((option) =>
    /^--inspect(-brk|-wait)?(=|$)/.test(option),
  );

/**
 * Ends this process at once, whatever its threads are doing; the services live on. For cases where no single
 * thread can be ended: a normal exit would wait for every thread.
 */
export function endProcess(reason: string): void {
  try {
    // Not through `process.stderr`: a worker's output goes through the main thread, which may be the one that
    // hangs.
    writeSync(STDERR, `berth: ${reason}; the daemon ends, services live on\n`);
  } finally {
    process.kill(process.pid, 'SIGKILL');
  }
}

/** Watches the main thread from another one, and ends the process when it hangs. */
export function watchMainThread(memory: SharedArrayBuffer, clock: Clock): () => void {
  const heartbeat = new WatchedHeartbeat(memory);
  const detector = new StallDetector(heartbeat);
  const end = async (stall: Stall): Promise<void> => {
    const stack = await mainThreadStack();
    endProcess(hangError('main', stall, heartbeat.note, stack).stack ?? stall);
  };
  const stop = clock.every(THREADS.hang.beatMs, () => {
    const stall = detector.check();
    if (stall === null || isDebugged()) return;
    stop();
    void end(stall);
  });
  return stop;
}
