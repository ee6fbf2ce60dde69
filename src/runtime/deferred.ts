import type { Clock } from './actor.ts';
import { systemClock } from './clock.ts';

/** A promise that is settled from outside. A rejection without a listener does not count as unhandled. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  /** Whether it has been settled; settling it again has no effect. */
  readonly settled: boolean;
  resolve(value: T): void;
  reject(error: unknown): void;
}

export function deferred<T>(): Deferred<T> {
  let settled = false;
  let onValue = (_: T): void => {};
  let onError = (_: unknown): void => {};
  const promise = new Promise<T>((resolve, reject) => {
    onValue = resolve;
    onError = reject;
  });
  promise.catch(() => {});
  return {
    promise,
    get settled() {
      return settled;
    },
    resolve(value) {
      settled = true;
      onValue(value);
    },
    reject(error) {
      settled = true;
      onError(error);
    },
  };
}

/** The value of `promise`, or null when it takes longer than `ms` of `clock`. Rejects as `promise` does. */
export function withTimeout<T>(
  ms: number,
  promise: Promise<T>,
  clock: Clock = systemClock,
): Promise<T | null> {
  const late = deferred<null>();
  const cancel = clock.after(ms, () => late.resolve(null));
  return Promise.race([promise, late.promise]).finally(cancel);
}
