// The signals of the daemon: docs/reference.md "Signals".
import { hasTerminal } from '../adapters/process/process_table.ts';

/**
 * Signals within this time of the first are the same one: npm forwards what the terminal has sent already.
 */
const DUPLICATE_SIGNAL_MS = 1_000;

export interface SignalHandlers {
  /** The first SIGTERM or SIGINT. */
  stop: () => void;
  /** SIGHUP of a daemon without a terminal. */
  reload: () => void;
}

/**
 * Ends by the signal itself: an exit would wait for threads, and one in the middle of a call of lmdb may keep
 * it for ever.
 */
function killSelf(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

/** Handles the signals of the daemon for as long as the process lives. */
export function onSignals({ stop, reload }: SignalHandlers): void {
  let first: number | undefined;
  const end = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (first === undefined) {
      first = now;
      stop();
    } else if (now - first > DUPLICATE_SIGNAL_MS) killSelf(signal);
  };
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  process.on('SIGHUP', (signal) => {
    // With a controlling terminal SIGHUP says that this has ended.
    if (hasTerminal(process.pid) ?? process.stdin.isTTY === true) end(signal);
    else reload();
  });
}
