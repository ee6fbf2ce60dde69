/**
 * Takes a line for the daemon's log: stderr, where it is not data. A worker's lines go through the main
 * thread.
 */
export const report = (line: string): void => void process.stderr.write(`berth: ${line}\n`);

const describeError = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** A defect: what was thrown and is no answer. */
export const reportDefect = (error: unknown): void => report(`defect: ${describeError(error)}`);

/** The crash of an actor. */
export const reportCrash = (address: string, error: unknown, ended: boolean): void =>
  report(`${address} crashed${ended ? ' and does not start again' : ''}: ${describeError(error)}`);
