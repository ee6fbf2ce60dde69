// Stopping as Ctrl-Z does, for programs that have changed the terminal.
import { constants } from 'node:os';

/** A stopped process goes on when it is continued; if it was not stopped at all, after so long. */
const RESUME_MS = 200;

/**
 * Stops `target` (0: the job), and resolves when it goes on. Nobody may listen for SIGTSTP: then the
 * signal stops the process.
 */
export function stopUntilContinued(target: number): Promise<void> {
  return new Promise((resolve) => {
    const resume = (): void => {
      clearTimeout(timer);
      process.off('SIGCONT', resume);
      resolve();
    };
    process.on('SIGCONT', resume);
    const timer = setTimeout(resume, RESUME_MS);
    process.kill(target, constants.signals.SIGTSTP);
  });
}
