// Whether clusters may be changed, in memory that the threads of the process share. One thread holds the
// lease of a shared database, others make the changes, and the answer must hold at the moment of a change: a
// message would be late when the process was stopped meanwhile.

export type ChangePermit = SharedArrayBuffer;

/**
 * Ends by either clock: the monotonic one stands still while the machine is suspended, and the wall clock may
 * be set.
 */
const [MONOTONIC_NS, WALL_MS] = [0, 1];
const FOREVER = 2n ** 63n - 1n;

const ends = (permit: ChangePermit): BigInt64Array => new BigInt64Array(permit);

/** `isPermanent`: always given. Otherwise it is not, until `permitChanges`. */
export function newChangePermit(isPermanent: boolean): ChangePermit {
  const permit = new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT);
  if (isPermanent) ends(permit).fill(FOREVER);
  return permit;
}

/** Gives it for `forMs` from now, but not beyond `untilMs` (epoch milliseconds). */
export function permitChanges(permit: ChangePermit, forMs: number, untilMs: number): void {
  // The clock of performance.now() differs between threads.
  const untilNs = process.hrtime.bigint() + BigInt(Math.round(forMs * 1e6));
  Atomics.store(ends(permit), MONOTONIC_NS, untilNs);
  Atomics.store(ends(permit), WALL_MS, BigInt(Math.round(untilMs)));
}

/** Takes it away until `permitChanges`. */
export function forbidChanges(permit: ChangePermit): void {
  ends(permit).forEach((_, index, all) => void Atomics.store(all, index, 0n));
}

/** Whether it is given now. Must be asked right before the change, with no await in between. */
export const mayChange = (permit: ChangePermit): boolean =>
  process.hrtime.bigint() < Atomics.load(ends(permit), MONOTONIC_NS) &&
  BigInt(Date.now()) < Atomics.load(ends(permit), WALL_MS);
