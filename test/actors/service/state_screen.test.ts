// Screens from which states are read, each drawing beginning where the last one ended.
import { expect, it } from 'vitest';
import { StateDrawings } from '../../../src/actors/service/state_drawings.ts';
import { StateScreen } from '../../../src/actors/service/state_screen.ts';
import { readState } from '../../../src/adapters/screen_state.ts';
import type { Context } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { eventually } from '../../kit/eventually.ts';

it.each([
  ['of one size', 0],
  ['of a terminal that was resized', 1],
])('the state screen draws later what one drawing %s had no time for', async (_of, changes) => {
  const log = Buffer.from(Array.from({ length: 300 }, (_, index) => `line ${index} of the log\r\n`).join(''));
  const drawings = new StateDrawings(systemClock);
  let budgetMs = -1;
  let drawn = 0;
  const asked: (number | null)[] = [];
  const tried: [isTried: boolean, isDrawn: boolean][] = [];
  const resizes = [{ at: log.length, cols: 40, rows: 5 }].slice(0, changes);
  const screen = new StateScreen({
    // The part of a context that it uses.
    context: {
      clock: systemClock,
      crash: (error) => expect.fail(String(error)),
    } satisfies Partial<Context> as unknown as Context,
    screens: {
      drawings,
      rules: async () => ({ id: 'none', rules: [] }),
      read: async (prepare) => {
        const reading = await readState({ ...prepare(), budgetMs });
        budgetMs = 60_000;
        return reading;
      },
    },
    agentType: null,
    output: (from) => {
      asked.push(from);
      return {
        ...{ cols: 40, rows: 6, resizes, modes: new Uint8Array() },
        ...{ bytes: log.subarray(from ?? 0), end: log.length },
      };
    },
    skip: () => expect.fail('nothing is skipped'),
    beside: () => ({ title: '', notification: '' }),
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
  screen.end();
});
