import { expect, it } from 'vitest';
import { formatDuration, parseDuration } from '../../src/project/duration.ts';

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
])('reads the duration %j as %j', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

it.each([
  [0, '0ms'],
  [999.4, '999ms'],
  [1_250, '1.3s'],
  [12_345, '12s'],
  [65_000, '1m05s'],
  [7_260_000, '2h01m'],
  [200_000_000, '2d7h'],
])('shows %d ms as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
