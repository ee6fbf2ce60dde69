import { setTimeout as pause } from 'node:timers/promises';

const PAUSE_MS = 5;

/** Resolves with the first value of `check` that is not empty. The test's own timeout is the limit. */
export async function eventually<T>(
  check: () => T | undefined | null | false | Promise<T | undefined | null | false>,
): Promise<T> {
  for (;;) {
    const value = await check();
    if (value !== undefined && value !== null && value !== false) return value;
    await pause(PAUSE_MS);
  }
}
