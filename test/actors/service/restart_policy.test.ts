import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backoffDelayMs, nextRestart } from '../../../src/actors/service/restart_policy.ts';

describe('restarts', () => {
  it('wait 100 ms, then twice as long each time, at most 30 s', () => {
    expect([1, 2, 3, 8, 9, 10, 50].map(backoffDelayMs)).toEqual([
      100, 200, 400, 12_800, 25_600, 30_000, 30_000,
    ]);
  });

  it('never wait less than before while runs do not stay up', () => {
    const run = { failed: true, upMs: 9_999 };
    fc.assert(
      fc.property(fc.nat(2_000), (attempt) => {
        const next = nextRestart('on-failure', { ...run, attempt }, 1_000);
        expect(next).toMatchObject({ attempt: attempt + 1, nextAt: 1_000 + backoffDelayMs(attempt + 1) });
        expect(backoffDelayMs(attempt + 2)).toBeGreaterThanOrEqual(backoffDelayMs(attempt + 1));
        expect(backoffDelayMs(attempt + 1)).toBeLessThanOrEqual(30_000);
      }),
    );
  });

  it('count from the beginning after a run that stayed up for 10 s', () => {
    const run = { failed: true, upMs: 10_000, attempt: 9 };
    expect(nextRestart('always', run, 0)).toEqual({ attempt: 1, delayMs: 100, nextAt: 100 });
  });
});
