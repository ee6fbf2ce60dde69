import { expect, it } from 'vitest';
import { parseDuration } from '../../src/project/duration.ts';

it.each([
  ['500ms', 500],
  ['30s', 30_000],
  ['1.5s', 1_500],
  ['2m', 120_000],
  ['1m30s', 90_000],
  ['1h', 3_600_000],
  ['250', 250],
  [' 0 ', 0],
  ['', undefined],
  ['s', undefined],
  ['-1s', undefined],
  ['1 s', undefined],
  ['1d', undefined],
  ['1e3', undefined],
])('the duration %j is %j', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});
