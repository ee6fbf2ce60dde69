// Stops a process as Ctrl-Z does, for programs that have changed the terminal.
import { constants } from 'node:os';

/** The promise resolves on SIGCONT, or after this time if the process was not stopped at all. */
const RESUME_MS = 200;

/**
 * Stops `target` (0: the job), and resolves when it continues. SIGTSTP must have no listener, because the
 * signal stops only a process without one.
 */
export function stopUntilContinued(target: number): Promise<void> {
  return new Promise((resolve) => {
    const resume = (): void => {
      clearTimeout(timer);
      process.off('SIGCONT', resume);
      // The kernel tells only the job in the foreground that the window has another size.
      process.kill(process.pid, 'SIGWINCH');
      resolve();
    };
    process.on('SIGCONT', resume);
    const timer = setTimeout(resume, RESUME_MS);
    process.kill(target, constants.signals.SIGTSTP);
  });
}
