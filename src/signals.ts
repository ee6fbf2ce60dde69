// The signals of the daemon (contract section 7).
import { readFileSync } from 'node:fs';

/** Signals within this time of the first are the same one: npm forwards what the terminal has sent already. */
const SAME_MS = 1_000;

export interface SignalHandlers {
  /** The first SIGTERM or SIGINT. */
  stop: () => void;
  /** A later one: end at once, with this exit code. */
  kill: (code: number) => void;
  /** SIGHUP of a daemon without a terminal. */
  reload: () => void;
}

const CODES = { SIGTERM: 143, SIGINT: 130, SIGHUP: 129 } as const;
const TTY_FIELD = 4;

/** Whether this process has a controlling terminal: its end is what SIGHUP means then. */
function hasTerminal(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[TTY_FIELD] !== '0';
  } catch {
    return process.stdin.isTTY === true;
  }
}

export function onSignals({ stop, kill, reload }: SignalHandlers): void {
  let first: number | undefined;
  const end = (code: number): void => {
    const now = performance.now();
    if (first === undefined) {
      first = now;
      stop();
    } else if (now - first > SAME_MS) kill(code);
  };
  process.on('SIGTERM', () => end(CODES.SIGTERM));
  process.on('SIGINT', () => end(CODES.SIGINT));
  process.on('SIGHUP', () => (hasTerminal() ? end(CODES.SIGHUP) : reload()));
}
