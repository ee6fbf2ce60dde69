// The benches' own results: the ratio of growth, what `--check` refuses, and that table and plot match the
// figures beside them.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { growth } from '../bench/kit/harness.ts';
import { plot } from '../bench/kit/plot.ts';
import { between, tableOf } from '../bench/kit/report.ts';
import { misses } from '../bench/kit/targets.ts';

const read = (name: string): string => readFileSync(new URL(`../bench/${name}`, import.meta.url), 'utf8');
const grown = async (costOfAll: (size: number) => number) =>
  growth({
    names: ['work'],
    unit: 'ms',
    sizes: [10, 100],
    sizeName: (size) => `${size} of them`,
    sample: async (size) => [costOfAll(size) / size],
  });

it('the ratio is 1 for linear growth, and 0.1 for quadratic growth over ten times the size', async () => {
  expect(await grown((size) => 5 * size)).toMatchObject([{ name: 'work, 100 of them', ratio: 1 }]);
  expect((await grown((size) => size * size))[0]?.ratio).toBeCloseTo(0.1);
});

it('a row outside its bounds and a bound without a row are reported', async () => {
  const rows = await grown((size) => size * size);
  const checked = (targets: object) => misses({ bench: { ...targets } }, new Map([['bench', rows]]));
  expect(checked({ 'work, 100 of them': { ratio: 0.05, least: 100, most: 100, over: 90 } })).toEqual([]);
  expect(checked({ 'work, 100 of them': { ratio: 0.5, least: 101, most: 99, over: 89 } })).toHaveLength(4);
  expect(checked({ gone: { ratio: 1 } })).toEqual(['bench: "gone" has not been measured']);
});

it('the README and the plot show the figures of the last run', () => {
  const run = JSON.parse(read('last.json'));
  const targets = JSON.parse(read('targets.json'));
  const readme = read('README.md');
  expect(between(readme, tableOf(run, targets))).toBe(readme);
  expect(plot(run, targets)).toBe(read('last.svg'));
});

it('the README of the benches has a question for every bench that is built', () => {
  const bench = fileURLToPath(new URL('../dist/bench.js', import.meta.url));
  const listed = execFileSync(process.execPath, [bench, '--list'], { encoding: 'utf8' });
  const names = listed
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' ')[0]);
  const readme = read('README.md');
  const questions = readme.slice(readme.indexOf('## The questions'), readme.indexOf('## Where the time'));
  const tabled = [...questions.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name);
  expect(tabled.sort()).toEqual(names.sort());
});
