// Draws the screens of terminals on the job threads: docs/reference.md "Screens of terminals".
import type { DrawScreen } from '../actors/service/shared_terminal.ts';
import { JOBS } from '../settings/limits.ts';
import type { JobPool } from './job_pool.ts';

/**
 * Starts no more jobs than there are threads: the deadline of a job counts its own time, and a terminal that
 * waits for its turn holds no output. The others wait in the order in which they came.
 */
export function screenDrawer(jobs: JobPool, maxConcurrent: number = JOBS.maxThreads): DrawScreen {
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
  return async (prepare) => {
    await turn();
    try {
      return await jobs.run('drawScreen', prepare());
    } finally {
      release();
    }
  };
}
