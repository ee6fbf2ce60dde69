// docs/reference.md "Ready-check": when probes run, and what they decide.

import { describe, expect, it } from 'vitest';
import {
  probePauseMs,
  type ReadyQuestions,
  readyPlanOf,
  startReadyCheck,
} from '../../../src/actors/service/ready_check.ts';
import { plannedRun } from '../../../src/actors/service/run.ts';
import type { LastCheck } from '../../../src/protocol/service.ts';
import { virtualClock } from '../../kit/actors.ts';
import { ProbeDouble } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

describe('a ready-check', () => {
  const URL = 'http://localhost:1/';
  const PLAN = { text: URL, probeMs: 2_000, fastestMs: 20, slowestMs: 500, upMs: 0 };
  const asking =
    (probe: ProbeDouble): ReadyQuestions['ask'] =>
    (limitMs, onDone) =>
      probe.probe({ url: URL }, limitMs, onDone);
  interface Watched {
    clock: ReturnType<typeof virtualClock>;
    probe: ProbeDouble;
    /** Who has the port in the place of the service. */
    port: { holder: string | null };
    reports: { passed: boolean; at: number }[];
    last(): LastCheck | null;
    leftMs(): number | null;
    stop(): void;
  }
  function watch(over: {
    text?: string | null;
    timeoutMs?: number | null;
    slowestMs?: number;
    upMs?: number;
  }): Watched {
    const clock = virtualClock();
    const probe = new ProbeDouble(clock);
    const port: Watched['port'] = { holder: null };
    const reports: Watched['reports'] = [];
    const plan = { ...PLAN, timeoutMs: 30_000, ...over };
    const questions: ReadyQuestions = { ask: asking(probe), foreignHolder: (onDone) => onDone(port.holder) };
    const check = startReadyCheck(clock, questions, plan, (passes) =>
      reports.push({ passed: passes, at: clock.monotonic() }),
    );
    return { clock, probe, port, reports, last: check.last, leftMs: check.leftMs, stop: check.stop };
  }

  it('probes every 20 ms for 2 s, then after 5 % of the time waited, at most 500 ms', async () => {
    expect([0, 1_999, 2_000, 4_000, 10_000, 60_000].map((ms) => probePauseMs(ms, PLAN))).toEqual([
      20, 20, 100, 200, 500, 500,
    ]);
    const { clock, probe, reports } = watch({ timeoutMs: 25_000 });
    await clock.advance(26_000);
    const pauses = probe.at.slice(1).map((at, index) => at - (probe.at[index] ?? 0));
    const fast = probe.at.filter((at) => at < 2_000);
    expect(fast).toHaveLength(100);
    expect(new Set(pauses.slice(0, 99))).toEqual(new Set([20]));
    for (const [index, pause] of pauses.entries())
      expect(pause).toBeCloseTo(probePauseMs(probe.at[index] ?? 0, PLAN), 5);
    expect(Math.max(...pauses)).toBe(500);
    expect(reports).toEqual([{ passed: false, at: 25_000 }]);
  });

  it('passes with the first successful probe, and makes no more', async () => {
    const { clock, probe, reports, last } = watch({});
    await clock.advance(100);
    expect(last()).toEqual({
      url: URL,
      at: clock.now(),
      status: null,
      error: expect.stringContaining('refused'),
    });
    probe.pass();
    await clock.advance(1_000);
    expect(reports).toEqual([{ passed: true, at: 120 }]);
    expect(probe.at).toHaveLength(7);
    expect(last()).toMatchObject({ status: 200, error: null });
  });

  it('makes one probe at a time', async () => {
    const { clock, probe } = watch({});
    probe.hang = true;
    await clock.advance(50);
    expect(probe.open).toBe(1);
    expect(probe.at).toHaveLength(2);
  });

  it('ends at its deadline also during a probe, and reports that nothing has responded', async () => {
    const clock = virtualClock();
    const probe = new ProbeDouble(clock);
    probe.hang = true;
    const reports: boolean[] = [];
    const plan = { ...PLAN, timeoutMs: 700 };
    const questions: ReadyQuestions = { ask: asking(probe), foreignHolder: () => undefined };
    const check = startReadyCheck(clock, questions, plan, (passes) => reports.push(passes));
    await clock.advance(700);
    expect(reports).toEqual([false]);
    expect(probe.open).toBe(0);
    expect(check.last()).toMatchObject({ status: null, error: 'no answer yet after 700 ms' });
  });

  it('with a timeout of 0 makes one probe, however long it takes', async () => {
    const { clock, probe, reports } = watch({ timeoutMs: 0 });
    await clock.advance(1_000);
    expect(probe.at).toEqual([0]);
    expect(reports).toEqual([{ passed: false, at: 0 }]);
  });

  it('does not count the time in which the daemon stood still, however often', async () => {
    const { clock, probe, reports, leftMs } = watch({ timeoutMs: 10_000 });
    for (let pauses = 0; pauses < 3; pauses += 1) {
      await clock.advance(1_000);
      clock.standStill(3_600_000);
    }
    await clock.advance(0);
    expect(leftMs()).toBe(7_000);
    expect(reports).toEqual([]);
    const probed = probe.at.length;
    await clock.advance(6_990);
    expect(probe.at.length).toBeGreaterThan(probed);
    expect(reports).toEqual([]);
    await clock.advance(10);
    expect(reports).toMatchObject([{ passed: false }]);
  });

  it('without a deadline continues at growing intervals', async () => {
    const { clock, probe, reports } = watch({ timeoutMs: null, slowestMs: 1_000 });
    await clock.advance(100_000);
    expect(reports).toEqual([]);
    expect((probe.at.at(-1) ?? 0) - (probe.at.at(-2) ?? 0)).toBe(1_000);
  });

  it('without a URL passes when the process has been up for 50 ms', async () => {
    const fresh = watch({ text: null, timeoutMs: 0 });
    await fresh.clock.advance(100);
    expect(fresh.reports).toEqual([{ passed: true, at: 50 }]);
    expect(fresh.last()).toBeNull();
    const old = watch({ text: null, upMs: 9_000 });
    await old.clock.advance(1);
    expect(old.reports).toEqual([{ passed: true, at: 0 }]);
  });

  it.each([URL, null])('of %s does not pass while another process has the port', async (text) => {
    const { clock, probe, port, reports, last } = watch({ text, timeoutMs: null });
    probe.pass();
    port.holder = 'user eve';
    await clock.advance(10_000);
    expect(reports).toEqual([]);
    if (text) expect(last()?.error).toBe('it answered, but user eve listens on the port of the service');
    port.holder = null;
    await clock.advance(500);
    expect(reports).toMatchObject([{ passed: true }]);
  });

  it.each([
    [URL, 700, 700],
    [null, 700, 750],
    [URL, 0, 0],
    [null, 0, 50],
  ])(
    'of %s with a timeout of %i ms fails while another process has the port',
    async (text, timeoutMs, at) => {
      const { clock, probe, port, reports } = watch({ text, timeoutMs });
      probe.pass();
      port.holder = 'user eve';
      await clock.advance(2_000);
      expect(reports).toHaveLength(1);
      expect(reports[0]?.passed).toBe(false);
      expect(reports[0]?.at).toBeGreaterThanOrEqual(at);
      expect(reports[0]?.at).toBeLessThan(at + 40);
    },
  );

  it('that is cancelled reports nothing and leaves nothing open', async () => {
    const { clock, probe, reports, stop } = watch({});
    await clock.advance(30);
    stop();
    await clock.advance(60_000);
    expect(reports).toEqual([]);
    expect([probe.open, probe.at.length]).toEqual([0, 2]);
  });
});

it('the uptime of a process is bounded by monotonic time, whatever the wall clocks say', () => {
  const clock = virtualClock();
  const run = {
    ...plannedRun(
      { spec: spec(), revision: 1 },
      { clock, timeoutMs: null, restarts: { total: 0, times: [] }, by: 'client', logFrom: 0 },
    ),
    ...{ pid: 1, startTicks: 1, rssMB: 1, startedAt: clock.now() },
  };
  const upMs = (askedAt: number | null, startedAt: number) =>
    readyPlanOf({ ...run, askedAt, startedAt }, null, clock).upMs;
  expect(upMs(clock.monotonic() - 5, clock.now() - 3)).toBe(3);
  // The daemon's clock is ten years behind, or ahead.
  expect(upMs(clock.monotonic() - 5, clock.now() + 3e11)).toBe(0);
  expect(upMs(clock.monotonic() - 5, clock.now() - 3e11)).toBe(5);
  expect(upMs(null, clock.now() - 7_000)).toBe(7_000);
  expect(upMs(null, clock.now() + 7_000)).toBe(0);
});
