// What the output of a terminal tells beside the screen, and when it moves.
import { expect, it } from 'vitest';
import { OscScanner } from '../../src/host/osc_scanner.ts';
import { TerminalWatch } from '../../src/host/terminal_watch.ts';
import type { TerminalReading } from '../../src/protocol/agent_state.ts';
import { AGENT_STATE } from '../../src/settings/agent_limits.ts';
import { virtualClock } from '../kit/actors.ts';
import { random } from '../kit/random.ts';

const OUTPUT =
  'text \x1b[1mbold\x1b[0m \x1b]2;one\x07 \x1b]0;two \u{1f600}\x1b\\ more \x1b]9;4;1;40\x07 \x1b]9;May I?\x07' +
  ' \x1b]7501;state=done:app=a\x1b\\\x1b]7501;state=working:id=part\x07\x1b]7501;state=asleep\x07' +
  ' \x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\ \x1b]52;c;aGFjaw==\x07 \x1b]777;notify;Title;done\x1b\\ \x1b]2;cut\x18';

it('the terminal watch finds title, progress and notifications, however the output is split', () => {
  const whole = new OscScanner();
  whole.take(Buffer.from(OUTPUT), 5);
  const expected = {
    title: 'two \u{1f600}',
    titleMovedAt: 5,
    progress: { state: 1, percent: 40 },
    notification: { text: 'Title;done', at: 5 },
    status: { state: 'idle', at: 5 },
  };
  expect(whole.signals()).toEqual(expected);
  const seed = Date.now() % 2 ** 31;
  const below = random(seed);
  for (let turn = 0; turn < 200; turn += 1) {
    const scanner = new OscScanner();
    let rest = Buffer.from(OUTPUT);
    while (rest.length > 0) {
      const length = 1 + below(9);
      scanner.take(rest.subarray(0, length), 5);
      rest = rest.subarray(length);
    }
    expect(scanner.signals(), `seed ${seed}`).toEqual(expected);
  }
});

it('the terminal watch keeps no control characters, and only short texts', () => {
  const scanner = new OscScanner();
  const take = (text: string): void => void scanner.take(Buffer.from(text), 1);
  take('\x1b]2;a\nb\tc\x9b31m\u202e\u2028d\x07');
  expect(scanner.title).toBe('a b c31m d');
  take(`\x1b]2;${'x'.repeat(1_000)}\x07`);
  expect(scanner.title).toHaveLength(256);
  take(`\x1b]2;${'y'.repeat(100_000)}`);
  take(`${'y'.repeat(100_000)}\x07\x1b]9;4;0\x07\x1b]2;after\x07`);
  expect(scanner.signals()).toEqual({
    ...{ title: 'after', titleMovedAt: 1 },
    ...{ progress: null, notification: null, status: null },
  });
  take('\x1b]9;4;3\x07');
  expect(scanner.progress).toEqual({ state: 3, percent: 0 });
  take('\x1b]9;4;7;900\x07\x1b]99;i=1:p=body;kitty\x1b\\');
  expect(scanner.signals()).toMatchObject({ progress: null, notification: { text: 'kitty' } });
  take('\x1b]7501;state=blocked:kind=permission\x07');
  expect(scanner.status).toEqual({ state: 'blocked', at: 1 });
  take('\x1b]7501;state=toString\x07\x1b]7501;state=clear\x07');
  expect(scanner.status).toBeNull();
});

it('the terminal watch tells when the title last moved: changed soon after another change', () => {
  const scanner = new OscScanner();
  const movedAt = (text: string, now: number) => {
    scanner.take(Buffer.from(text), now);
    return scanner.signals().titleMovedAt;
  };
  expect(movedAt('\x1b]0;work\x07', 1_000)).toBeNull();
  const begins = 2_000 + AGENT_STATE.outputMs;
  expect(movedAt('\x1b]0;⠸ work\x07', begins)).toBeNull();
  expect(movedAt('\x1b]0;⠼ work\x07', begins + 100)).toBe(begins + 100);
  // It is set again, and does not change.
  expect(movedAt('text \x1b]0;⠼ work\x07', begins + 200)).toBe(begins + 100);
  const ends = begins + 101 + AGENT_STATE.outputMs;
  expect(movedAt('\x1b]0;work\x07', ends)).toBe(begins + 100);
  // The clock was set back.
  expect(movedAt('\x1b]0;⠴ work\x07', 500)).toBe(begins + 100);
  expect(movedAt('\x1b]0;⠦ work\x07', 600)).toBe(600);
});

it('the terminal watch reports when output starts and pauses, with few messages however much is printed', async () => {
  const clock = virtualClock();
  const told: TerminalReading[] = [];
  const watch = new TerminalWatch(clock, (_service, _run, reading) => told.push(reading));
  watch.open('web', 'run');
  watch.onOutput('run', Buffer.from('before anybody watches \x1b]2;title\x07'));
  const since = clock.now();
  await clock.advance(AGENT_STATE.pauseMs + 1);
  expect(watch.watch('run', true)).toMatchObject({
    ...{ lastOutputAt: since, isMoving: false },
    signals: { title: 'title' },
  });
  expect(told).toEqual([]);
  for (let piece = 0; piece < 500; piece += 1) {
    watch.onOutput('run', Buffer.from('x'));
    await clock.advance(10);
  }
  expect(told.filter(({ isMoving }) => isMoving)).toHaveLength(5);
  expect(told.at(-1)).toMatchObject({ isMoving: true });
  // Output that does not pause for long is reported less often, but a pause at once.
  const steady = told.length;
  for (let piece = 0; piece < 1_500; piece += 1) {
    watch.onOutput('run', Buffer.from('x'));
    await clock.advance(10);
  }
  expect(told.slice(steady).filter(({ isMoving }) => isMoving)).toHaveLength(10);
  const last = clock.now() - 10;
  await clock.advance(AGENT_STATE.pauseMs + AGENT_STATE.noticeIntervalMs);
  expect(told.at(-1)).toMatchObject({ lastOutputAt: last, isMoving: false });
  const before = told.length;
  await clock.advance(60_000);
  watch.unwatchAll();
  watch.onOutput('run', Buffer.from('nobody watches'));
  await clock.advance(60_000);
  expect(told).toHaveLength(before);
});

it('the terminal watch takes the time between two frames for no pause, but reports the end of the frames in time', async () => {
  const clock = virtualClock();
  const told: TerminalReading[] = [];
  const watch = new TerminalWatch(clock, (_service, _run, reading) => told.push(reading));
  watch.open('web', 'run');
  watch.watch('run', true);
  const frameMs = AGENT_STATE.pauseMs + 30;
  for (let frame = 0; frame < 50; frame += 1) {
    watch.onOutput('run', Buffer.from('frame'));
    await clock.advance(frameMs);
  }
  // Only the gap after the first frame was not expected.
  expect(told.filter(({ isMoving }) => !isMoving).length).toBeLessThanOrEqual(1);
  expect(told.at(-1)).toMatchObject({ isMoving: true });
  await clock.advance(AGENT_STATE.maxPauseMs + AGENT_STATE.lookIntervalMs - frameMs);
  expect(told.at(-1)).toMatchObject({ isMoving: false });
});

it('the terminal watch reports when output starts and pauses also after the clock was set back', async () => {
  const clock = virtualClock();
  const told: TerminalReading[] = [];
  const watch = new TerminalWatch(clock, (_service, _run, reading) => void told.push(reading));
  watch.open('bot', 'run');
  watch.watch('run', true);
  watch.onOutput('run', Buffer.from('one'));
  await clock.advance(1_000);
  const { now } = clock;
  clock.now = () => now() - 3_600_000;
  watch.onOutput('run', Buffer.from('two'));
  await clock.advance(1_000);
  expect(told.map(({ isMoving }) => isMoving)).toEqual([true, false, true, false]);
  expect(told.at(-1)?.lastOutputAt).toBe(clock.now() - 1_000);
});
