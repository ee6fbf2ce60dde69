// Signals that wait for work which must not be cut off half-way.

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

let waiting = 0;

/** Whether a signal that is held has arrived: the process is about to end. */
export const isSignalHeld = (): boolean => waiting > 0;

/** Keeps `signal` from everybody. Returns a function that gives it to them, if it has arrived. */
function hold(signal: NodeJS.Signals): () => void {
  const others = process.listeners(signal);
  let hasArrived = false;
  const note = (): void => {
    if (!hasArrived) waiting += 1;
    hasArrived = true;
  };
  process.on(signal, note);
  for (const other of others) process.off(signal, other);
  return () => {
    if (hasArrived) waiting -= 1;
    // Somebody may have taken it over meanwhile, who then receives it alone.
    if (!process.listeners(signal).includes(note)) return;
    for (const other of others) process.on(signal, other);
    process.off(signal, note);
    if (hasArrived) process.kill(process.pid, signal);
  };
}

/**
 * Runs `work`, which must be short: Ctrl-C, SIGTERM and the loss of the terminal take effect once it is done.
 * Has no effect in a worker thread, which receives no signals.
 */
export async function holdSignals<T>(work: () => Promise<T>): Promise<T> {
  const releases = SIGNALS.map(hold);
  try {
    return await work();
  } finally {
    for (const release of releases) release();
  }
}
