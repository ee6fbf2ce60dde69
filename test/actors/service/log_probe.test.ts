// How much of a log a check looks at in one go: docs/reference.md "Checks".
import { expect, it } from 'vitest';
import { LogProbe } from '../../../src/actors/service/log_probe.ts';
import { virtualClock } from '../../kit/actors.ts';

const RUN = '0123456789abcdef';

it('a log check reads and tests a limited part at a time, and still finds a line', async () => {
  const text = Buffer.from(`${'x'.repeat(5_000)}\n${'y'.repeat(50)}ready\n`);
  const steps: number[] = [];
  const tested: number[] = [];
  const clock = virtualClock();
  const probe = new LogProbe({
    run: RUN,
    from: 0,
    clock,
    isLasting: true,
    log: {
      watch: () => () => {},
      read(offset, limit) {
        steps.push(limit);
        const bytes = text.subarray(offset, offset + limit);
        return { start: offset, end: offset + bytes.length, run: RUN, bytes };
      },
    },
    regex: {
      reach: 100,
      test(line) {
        tested.push(line.length);
        return line.endsWith('ready');
      },
    },
  });
  const results: (string | null)[] = [];
  probe.ask(1_000, ({ error }) => results.push(error));
  for (let turn = 0; turn < 200 && results.length === 0; turn += 1) await clock.advance(0);
  expect(results).toEqual([null]);
  expect(new Set(steps)).toEqual(new Set([100]));
  expect(Math.max(...tested)).toBe(100);
});
