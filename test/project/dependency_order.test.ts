// Durations, names that are near, and the order of dependencies.
import { describe, expect, it } from 'vitest';
import {
  findDependencyCycle,
  reverseDependencies,
  runInDependencyOrder,
  withDependencies,
} from '../../src/project/dependency_order.ts';
import { formatDuration, parseDuration } from '../../src/project/duration.ts';
import { nearestWord } from '../../src/project/spelling.ts';

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

it.each([
  ['prot', 'port'],
  ['stat', 'start'],
  ['strat', 'start'],
  ['PORT', 'port'],
  ['stopp', 'stop'],
  ['xyz', undefined],
  ['p', undefined],
])('the nearest to %s is %s', (word, found) => {
  expect(nearestWord(word, ['start', 'stop', 'port', 'depends_on'])).toBe(found);
});

const graph = (rows: Record<string, string[]>) =>
  Object.entries(rows).map(([name, dependsOn]) => ({ name, dependsOn }));

describe('dependencies', () => {
  it('name their cycle, however long, and none where there is none', () => {
    expect(findDependencyCycle(graph({ a: ['b'], b: ['c'], c: ['b'] }))).toEqual(['b', 'c']);
    expect(findDependencyCycle(graph({ a: ['a'] }))).toEqual(['a']);
    expect(findDependencyCycle(graph({ a: ['b', 'c'], b: ['c'], c: ['elsewhere'] }))).toBeUndefined();
  });

  it('bring along what is needed', () => {
    const all = graph({ web: ['api'], api: ['db'], db: [], docs: [] });
    expect([...withDependencies(all, ['web'])]).toEqual(['web', 'api', 'db']);
  });

  it('are worked through in order, at the same time where nothing stands against it', async () => {
    const log: string[] = [];
    const outcomes = await runInDependencyOrder(
      graph({ web: ['api', 'db'], api: ['db'], db: [], docs: [] }),
      async ({ name }) => {
        log.push(`+${name}`);
        await Promise.resolve();
        log.push(`-${name}`);
      },
    );
    expect([...outcomes.values()].every((outcome) => 'done' in outcome)).toBe(true);
    const at = (mark: string) => log.indexOf(mark);
    expect(at('+api')).toBeGreaterThan(at('-db'));
    expect(at('+web')).toBeGreaterThan(at('-api'));
    expect(at('+docs')).toBeLessThan(at('-db'));
  });

  it('skip what needs a failure, and only that', async () => {
    const wrong = new Error('no');
    const outcomes = await runInDependencyOrder(
      graph({ web: ['api'], api: ['db'], db: [], docs: [] }),
      async ({ name }) => {
        if (name === 'db') throw wrong;
      },
    );
    expect(Object.fromEntries(outcomes)).toEqual({
      web: { skipped: 'api' },
      api: { skipped: 'db' },
      db: { failed: wrong },
      docs: { done: true },
    });
  });

  it('turn round for stopping', () => {
    const back = reverseDependencies(graph({ web: ['api'], api: ['db'], db: [] }));
    expect(Object.fromEntries(back.map(({ name, dependsOn }) => [name, dependsOn]))).toEqual({
      web: [],
      api: ['web'],
      db: ['api'],
    });
  });
});
