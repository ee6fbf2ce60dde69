import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  backoffDelayMs,
  classifyEnd,
  completeRestartRule,
  nextRestart,
} from '../../../src/actors/service/restart_policy.ts';

const ON_FAILURE = completeRestartRule('on-failure');
const ALWAYS = completeRestartRule('always');

describe('restarts', () => {
  it('have a pause of 100 ms, which then doubles up to 30 s', () => {
    expect([1, 2, 3, 8, 9, 10, 50].map((attempt) => backoffDelayMs(attempt, ALWAYS))).toEqual([
      100, 200, 400, 12_800, 25_600, 30_000, 30_000,
    ]);
  });

  it('have the pauses of their rule', () => {
    const rule = completeRestartRule({ policy: 'always', minMs: 1_000, maxMs: 3_000 });
    expect([1, 2, 3, 4].map((attempt) => backoffDelayMs(attempt, rule))).toEqual([
      1_000, 2_000, 3_000, 3_000,
    ]);
    // A longest pause alone bounds the first one too, and a first one beyond the usual longest is the
    // longest.
    expect(completeRestartRule({ policy: 'always', maxMs: 50 })).toMatchObject({ minMs: 50, maxMs: 50 });
    expect(completeRestartRule({ policy: 'always', minMs: 60_000 })).toMatchObject({ maxMs: 60_000 });
  });

  it('have pauses that never shrink while runs do not stay up', () => {
    const run = { failed: true, upMs: 9_999, times: [] };
    const pause = (attempt: number): number => backoffDelayMs(attempt, ON_FAILURE);
    fc.assert(
      fc.property(fc.nat(2_000), (attempt) => {
        const next = nextRestart(ON_FAILURE, { ...run, attempt }, 1_000);
        expect(next).toMatchObject({ attempt: attempt + 1, nextAt: 1_000 + pause(attempt + 1) });
        expect(pause(attempt + 2)).toBeGreaterThanOrEqual(pause(attempt + 1));
        expect(pause(attempt + 1)).toBeLessThanOrEqual(30_000);
      }),
    );
  });

  it('have the first pause again after a run that stayed up for 10 s', () => {
    const run = { failed: true, upMs: 10_000, attempt: 9, times: [] };
    expect(nextRestart(ALWAYS, run, 0)).toEqual({ attempt: 1, delayMs: 100, nextAt: 100 });
  });

  it('end after as many as the rule allows, in total or within its time', () => {
    const run = { failed: true, upMs: 60_000, attempt: 0, times: [1_000, 5_000, 9_000] };
    const answerTo = (rule: object, now: number) =>
      nextRestart(completeRestartRule({ policy: 'always', ...rule }), run, now);
    expect(answerTo({ max: 3 }, 1e9)).toBe('exhausted');
    expect(answerTo({ max: 4 }, 1e9)).toMatchObject({ attempt: 1 });
    expect(answerTo({ max: 3, withinMs: 10_000 }, 10_999)).toBe('exhausted');
    expect(answerTo({ max: 3, withinMs: 10_000 }, 11_000)).toMatchObject({ attempt: 1 });
    expect(answerTo({}, 1e9)).toMatchObject({ attempt: 1 });
  });
});

describe('the end of a run', () => {
  const RUN = { id: 'r1', startedAt: 0, by: 'client', metadata: {} } as const;
  const OUTCOME = { exitCode: 0, signal: null, exitUnknown: false, cause: 'exit', at: 500 } as const;
  const ENDED = {
    run: RUN,
    attempt: 0,
    times: [],
    outcome: OUTCOME,
    stopped: true,
    whole: true,
    timedOut: false,
    fault: null,
    relaunched: false,
    released: false,
  };

  it('for a fault is a crash that the policy handles, although a stop caused it', () => {
    for (const fault of ['unhealthy', 'memory'] as const) {
      const { end, backoff } = classifyEnd({ ...ENDED, fault }, ON_FAILURE, 500);
      expect(end).toMatchObject({ status: 'crashed', cause: fault, exitCode: 0, whole: true });
      expect(backoff).toMatchObject({ attempt: 1 });
    }
    expect(classifyEnd(ENDED, ALWAYS, 500)).toMatchObject({ end: { status: 'stopped' }, backoff: null });
  });

  it('by itself while a stop was asked for says nothing about the processes that it has left behind', () => {
    const { end } = classifyEnd({ ...ENDED, whole: false }, ALWAYS, 500);
    expect(end).toMatchObject({ status: 'stopped' });
    expect(end.whole).toBeUndefined();
  });

  it('at the memory limit of its cgroup is a crash with that cause', () => {
    const outcome = { ...OUTCOME, exitCode: null, signal: 'SIGKILL', cause: 'memory' } as const;
    const { end, backoff } = classifyEnd({ ...ENDED, outcome, stopped: false }, ALWAYS, 500);
    expect(end).toMatchObject({ status: 'crashed', cause: 'memory' });
    expect(backoff).not.toBeNull();
  });

  it('after which the rule allows no restart is a crash, whatever its exit code', () => {
    const rule = completeRestartRule({ policy: 'always', max: 1 });
    const { end, backoff } = classifyEnd({ ...ENDED, stopped: false, times: [400] }, rule, 500);
    expect(end).toMatchObject({ status: 'crashed', exhausted: true });
    expect([backoff, end.restart]).toEqual([null, undefined]);
  });
});
