import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { TestRunner } from 'vitest';

const PAUSE_MS = 5;
/** Left of the test's timeout to tell what it waited for. */
const REPORT_MS = 500;
/** Hooks have no task to ask for their limit. */
const HOOK_TIMEOUT_MS = 30_000;

/** Of tests that are tried again: the attempt, and when it first waited. A result's own start is the first attempt's. */
const retried = new WeakMap<object, { attempt: number; began: number }>();

/** When the wait must give up: shortly before the current attempt of the current test times out. */
function deadline(): number {
  const test = TestRunner.getCurrentTest();
  const { startTime, retryCount: attempt = 0 } = test?.result ?? {};
  if (test === undefined || startTime === undefined) return Date.now() + HOOK_TIMEOUT_MS - REPORT_MS;
  if (attempt > 0 && retried.get(test)?.attempt !== attempt)
    retried.set(test, { attempt, began: Date.now() });
  return (retried.get(test)?.began ?? startTime) + test.timeout - REPORT_MS;
}

const isEmpty = (value: unknown): boolean => value === undefined || value === null || value === false;

/**
 * Resolves with the first value of `check` that is not empty. Shortly before the test's timeout it rejects with
 * the text of `check`, its last value, and what `saw` returns: the state that was looked at.
 */
export async function eventually<T>(
  check: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  saw?: () => unknown,
): Promise<T> {
  const until = deadline();
  for (;;) {
    const value = await check();
    if (!isEmpty(value)) return value as T;
    if (Date.now() > until) {
      const seen = saw ? `\nsaw last: ${inspect(saw(), { depth: 4 })}` : '';
      throw new Error(`waited in vain for ${check}\nlast value: ${inspect(value)}${seen}`);
    }
    await pause(PAUSE_MS);
  }
}
