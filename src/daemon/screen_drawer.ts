// Draws the screens of terminals on the job threads: docs/reference.md "Terminal repaint".

import type { ScreenJobs } from '../actors/service/logged_screen.ts';
import type { ReadState } from '../actors/service/state_drawings.ts';
import { Semaphore } from '../runtime/semaphore.ts';
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
  const turns = new Semaphore(maxConcurrent);
  return {
    draw: (prepare) => turns.run(() => jobs.run('drawScreen', prepare())),
    read: (prepare) => turns.run(() => jobs.run('readScreen', prepare())),
    readState: (prepare) => turns.run(() => jobs.run('readState', prepare())),
  };
}
