// Draws the screens of terminals on the job threads: docs/reference.md "Terminal repaint".
import type { ScreenJobs } from '../actors/service/shared_terminal.ts';
import type { ReadState } from '../actors/service/state_drawings.ts';
import { JOBS } from '../settings/limits.ts';
import type { JobPool } from './job_pool.ts';

/**
 * Starts no more jobs than there are threads, because the deadline of a job must count only its own time, and
 * a waiting terminal holds no output. The others wait in order of arrival.
 */
export function screenJobs(
  jobs: JobPool,
  maxConcurrent: number = JOBS.maxThreads,
): ScreenJobs & { readState: ReadState } {
  const waiting: (() => void)[] = [];
  let running = 0;
  const turn = async (): Promise<void> => {
    if (running < maxConcurrent) running += 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
  };
  const release = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  };
  const inTurn = async <R>(work: () => Promise<R>): Promise<R> => {
    await turn();
    try {
      return await work();
    } finally {
      release();
    }
  };
  return {
    draw: (prepare) => inTurn(() => jobs.run('drawScreen', prepare())),
    read: (prepare) => inTurn(() => jobs.run('readScreen', prepare())),
    readState: (prepare) => inTurn(() => jobs.run('readState', prepare())),
  };
}
