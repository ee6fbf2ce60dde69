// Screens from which states are read, each drawing beginning where the last one ended.
import { afterEach, expect, it } from 'vitest';
import { LoggedScreen } from '../../../src/actors/service/logged_screen.ts';
import { StateDrawings } from '../../../src/actors/service/state_drawings.ts';
import { StateScreen, type StateScreenOptions } from '../../../src/actors/service/state_screen.ts';
import { TerminalSizes } from '../../../src/actors/service/terminal_sizes.ts';
import { readState } from '../../../src/adapters/screen_state.ts';
import type { ReadStateTask, RuleSet, StateReading } from '../../../src/protocol/screen_rules.ts';
import { type Clock, type Context, Failure } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { AGENT } from '../../../src/settings/agent_limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { screensHere } from '../../kit/screens.ts';

const screens: StateScreen[] = [];
afterEach(() => {
  for (const screen of screens.splice(0)) screen.end();
});

type Given = Pick<StateScreenOptions, 'output'> &
  Partial<StateScreenOptions> & {
    clock: Clock;
    rules?: RuleSet;
    read(task: ReadStateTask): Promise<StateReading>;
  };

function openScreen({ clock, rules = { id: 'none', rules: [] }, read, ...options }: Given): StateScreen {
  const screen = new StateScreen({
    // The part of a context that it uses.
    context: {
      clock,
      crash: (error) => expect.fail(String(error)),
    } satisfies Partial<Context> as unknown as Context,
    screens: {
      drawings: new StateDrawings(clock),
      rules: async () => rules,
      read: async (prepare) => read(prepare()),
    },
    agentType: null,
    pause: () => expect.fail('drawing is not paused'),
    beside: () => ({ title: '', notification: '' }),
    titleMovedAt: () => null,
    onRead: () => {},
    ...options,
  });
  screens.push(screen);
  return screen;
}

it.each([
  ['of one size', 0],
  ['of a terminal that was resized', 1],
])('the state screen draws later what one drawing %s had no time for', async (_of, changes) => {
  const log = Buffer.from(Array.from({ length: 300 }, (_, index) => `line ${index} of the log\r\n`).join(''));
  let budgetMs = -1;
  let drawn = 0;
  const asked: (number | null)[] = [];
  const tried: [isTried: boolean, isDrawn: boolean][] = [];
  const resizes = [{ at: log.length, cols: 40, rows: 5 }].slice(0, changes);
  const screen = openScreen({
    clock: systemClock,
    read: async (task) => {
      const reading = await readState({ ...task, budgetMs });
      budgetMs = 60_000;
      return reading;
    },
    output: (from) => {
      asked.push(from);
      return {
        ...{ cols: 40, rows: 6, resizes, modes: new Uint8Array() },
        ...{ bytes: log.subarray(from ?? 0), end: log.length },
      };
    },
    onRead: () => {
      drawn += 1;
      tried.push([screen.isTried, screen.drawn !== null]);
    },
  });
  screen.request(false);
  await eventually(() => drawn === 2);
  // A screen of long ago, as the first drawing has it, says nothing of the agent.
  expect(tried).toEqual([
    [false, false],
    [true, true],
  ]);
  const shown = Buffer.from(screen.drawn?.reading.snapshot ?? []).toString();
  const seen = [...shown.matchAll(/line (\d+)/g)].map(([, index]) => Number(index));
  expect(seen.slice(-4)).toEqual([296, 297, 298, 299]);
  // The second drawing goes on from the first, and does not begin anew.
  expect(asked).toEqual([null, 0]);
});

const ASKS: RuleSet = {
  id: 'asks',
  rules: [
    {
      ...{ name: 'asks', state: 'blocked', within: 'screen', last: null, file: 'asks.toml' },
      ...{ contains: ['Proceed?'], any: [], absent: [], matches: [] },
    },
  ],
};

/** A state screen over the log of a terminal. Its next `failing` drawings fail. */
function loggedStage(): {
  clock: ReturnType<typeof virtualClock>;
  screen: StateScreen;
  print(text: string): void;
  fail(count: number): void;
  drawings(): number;
} {
  const clock = virtualClock();
  let log = Buffer.alloc(0);
  let failing = 0;
  let drawings = 0;
  const logged = new LoggedScreen({
    ...{ clock, screens: screensHere, maxBytes: () => AGENT.maxUnacknowledgedBytes },
    sizes: new TerminalSizes({ cols: 40, rows: 6 }),
    end: () => log.length,
    read: (offset, limit) => {
      const bytes = log.subarray(offset, offset + limit);
      return { start: offset, end: offset + bytes.length, bytes };
    },
  });
  const screen = openScreen({
    clock,
    rules: ASKS,
    output: (from) => logged.drawableOutput(from),
    pause: (skipUpTo) => logged.pause(skipUpTo),
    read: async (task) => {
      drawings += 1;
      if (failing === 0) return readState({ ...task, budgetMs: 60_000 });
      failing -= 1;
      throw new Failure('deadline', 'not done');
    },
  });
  return {
    clock,
    screen,
    print(text) {
      log = Buffer.concat([log, Buffer.from(text)]);
      screen.request(true);
    },
    fail: (count) => {
      failing = count;
    },
    drawings: () => drawings,
  };
}

const isAsked = (screen: StateScreen): boolean => screen.drawn?.reading.screen?.state === 'blocked';

it('the state screen draws a question although a drawing of it failed and nothing is printed since', async () => {
  const { clock, drawings, fail, print, screen } = loggedStage();
  print('ready\r\n');
  await eventually(() => screen.drawn !== null);
  fail(1);
  print('Proceed? yes/no');
  await eventually(() => drawings() === 2);
  await clock.advance(AGENT.overrunPauseMs - 1);
  expect([drawings(), isAsked(screen)]).toEqual([2, false]);
  await clock.advance(1);
  await eventually(() => isAsked(screen));
  expect(screen.drawn?.reading.question).toEqual(['Proceed? yes/no']);
});

it('the state screen is drawn again after a failed drawing while its program never pauses', async () => {
  const { clock, drawings, fail, print, screen } = loggedStage();
  fail(1);
  print('Proceed? yes/no');
  await eventually(() => drawings() === 1);
  for (let left = AGENT.overrunPauseMs; left > 0; left -= 1_000) {
    print('\x1b]2;working\x07');
    await clock.advance(1_000);
  }
  await eventually(() => isAsked(screen));
});

it('the state screen leaves out what it failed twice to draw, and draws what follows', async () => {
  const { clock, drawings, fail, print, screen } = loggedStage();
  fail(2);
  print('Proceed? a terrible sequence\r\n');
  await eventually(() => drawings() === 1);
  await clock.advance(AGENT.overrunPauseMs);
  await eventually(() => drawings() === 2);
  print('done\r\n');
  await clock.advance(AGENT.overrunPauseMs);
  await eventually(() => screen.drawn !== null);
  const shown = Buffer.from(screen.drawn?.reading.snapshot ?? []).toString();
  expect(shown).toContain('done');
  expect(shown).not.toContain('terrible');
});
