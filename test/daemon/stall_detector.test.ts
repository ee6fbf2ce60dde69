// What counts as a hanging thread: docs/reference.md "Hung threads".
import { expect, it } from 'vitest';
import { heartbeatMemory, startHeartbeat, WatchedHeartbeat } from '../../src/daemon/heartbeat.ts';
import { StallDetector } from '../../src/daemon/stall_detector.ts';
import { virtualClock } from '../kit/actors.ts';

const LIMITS = { missedBeats: 5, maxStepCpuMs: 2_500 };

/** A thread that beats or does not, with what the system says of it. */
function watched() {
  const heartbeat = { beats: 1, taskId: 7 };
  let task = { cpuMs: 100, isAsleep: false };
  const detector = new StallDetector(heartbeat, LIMITS, () => task);
  detector.check();
  return {
    detector,
    beat: () => {
      heartbeat.beats += 1;
    },
    set: (to: typeof task) => {
      task = to;
    },
    /** The results of `count` checks, each after `cpuMs` more of processor time. */
    checks: (count: number, cpuMs = 0) =>
      Array.from({ length: count }, () => {
        const found = detector.check();
        task = { ...task, cpuMs: task.cpuMs + cpuMs };
        return found;
      }),
  };
}

it('a thread that computes counts as hung at the fifth missed beat', () => {
  const { checks } = watched();
  const found = checks(5, 1_000);
  expect(found.slice(0, 4)).toEqual([null, null, null, null]);
  expect(found[4]).toBe('it computes without a pause (4000 ms of processor time)');
});

it('a thread that blocks in the system at five checks in a row counts as hung, whatever it did before', () => {
  const asleep = watched();
  asleep.set({ cpuMs: 0, isAsleep: true });
  expect(asleep.checks(5).at(-1)).toBe('it waits in the system');
  const late = watched();
  expect(late.checks(2)).toEqual([null, null]);
  late.set({ cpuMs: 100, isAsleep: true });
  expect(late.checks(5)).toEqual([null, null, null, null, 'it waits in the system']);
});

it('a thread that waits for a disk now and then does not count as hung', () => {
  const { checks, set } = watched();
  for (let round = 0; round < 5; round += 1) {
    set({ cpuMs: 0, isAsleep: true });
    expect(checks(4)).toEqual([null, null, null, null]);
    set({ cpuMs: 0, isAsleep: false });
    expect(checks(1)).toEqual([null]);
  }
});

it('a thread that gets little time on a busy processor counts as hung only once it has used enough', () => {
  const { checks } = watched();
  // A twelfth of a processor.
  const found = checks(40, 80);
  expect(found.findIndex((one) => one !== null)).toBe(32);
});

it('each beat resets the count, and nothing is counted before the first beat', () => {
  const { beat, checks, detector } = watched();
  for (let round = 0; round < 4; round += 1) {
    expect(checks(4, 1_000)).toEqual([null, null, null, null]);
    expect(detector.missed).toBe(4);
    beat();
    expect(detector.check()).toBeNull();
    expect(detector.missed).toBe(0);
  }
  const unborn = new StallDetector({ beats: 0, taskId: 0 }, LIMITS, () => ({ cpuMs: 0, isAsleep: true }));
  for (let check = 0; check < 9; check += 1) expect(unborn.check()).toBeNull();
});

it('without the state of threads only beats count, and a thread that has ended does not count as hung', () => {
  const unknown = new StallDetector({ beats: 1, taskId: 0 }, LIMITS, () => undefined);
  const ended = new StallDetector({ beats: 1, taskId: 7 }, LIMITS, () => undefined);
  const results = (detector: StallDetector) => Array.from({ length: 9 }, () => detector.check());
  expect(results(unknown)).toContain('it waits in the system');
  expect(results(ended)).not.toContain('it waits in the system');
});

it('the heartbeat shares its beats, its thread and the last message through memory', async () => {
  const clock = virtualClock();
  const memory = heartbeatMemory();
  const seen = new WatchedHeartbeat(memory);
  expect([seen.beats, seen.note]).toEqual([0, '']);
  const { note, stop } = startHeartbeat(memory, clock);
  expect(seen.taskId).toBe(process.pid);
  await clock.advance(3_000);
  expect(seen.beats).toBe(4);
  note('service:web', 'stop');
  expect(seen.note).toBe('service:web stop');
  note('registry', 'x'.repeat(500));
  expect(seen.note).toBe(`registry ${'x'.repeat(107)}`);
  stop();
});
