// The signals of the daemon (contract section 7).
import { readFileSync } from 'node:fs';

/** Signals within this time of the first are the same one: npm forwards what the terminal has sent already. */
const SAME_MS = 1_000;

export interface SignalHandlers {
  /** The first SIGTERM or SIGINT. */
  stop: () => void;
  /** SIGHUP of a daemon without a terminal. */
  reload: () => void;
}

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

/** Ends by the signal itself: an exit would wait for threads, and one in the middle of a call of lmdb may keep it for ever. */
function die(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

export function onSignals({ stop, reload }: SignalHandlers): void {
  let first: number | undefined;
  const end = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (first === undefined) {
      first = now;
      stop();
    } else if (now - first > SAME_MS) die(signal);
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', (signal) => (hasTerminal() ? end(signal) : reload()));
}
