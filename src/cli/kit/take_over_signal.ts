// Signals of the terminal that a command passes on instead of ending.

/**
 * Has `handler` alone receive the signal from now on, also one that has just arrived and that nobody has
 * handled yet. Without any listener for a moment that one would be lost. Returns a function that removes it.
 */
export function takeOverSignal(signal: NodeJS.Signals, handler: () => void): () => void {
  const others = process.listeners(signal);
  process.on(signal, handler);
  for (const other of others) process.off(signal, other);
  return () => void process.off(signal, handler);
}
