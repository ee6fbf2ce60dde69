// Many selectors at once give the answers of each alone: docs/reference.md "Label selectors".
import { expect, it } from 'vitest';
import { type GrantScope, scopeMatcher } from '../../src/protocol/grants.ts';
import { labelText, parseSelector } from '../../src/protocol/labels.ts';
import { SelectorIndex } from '../../src/protocol/selector_index.ts';
import { random } from '../kit/random.ts';

const KEYS = ['app', 'tier', 'team', 'a/b', 'x'];
const VALUES = ['', 'web', 'db', 'api', 'x1'];

function inventions(seed: number) {
  const below = random(seed);
  const one = (from: readonly string[]): string => from[below(from.length)] ?? '';
  const some = (): string => Array.from({ length: 1 + below(3) }, () => one(VALUES)).join(', ');
  const requirement = (): string => {
    const key = one(KEYS);
    const forms = [`${key}=${one(VALUES)}`, `${key}==web`, `${key} != ${one(VALUES)}`, key, `!${key}`];
    return one([...forms, `${key} in (web, ${some()})`, `${key} notin (db, ${some()})`]);
  };
  return {
    below,
    selector: () => Array.from({ length: 1 + below(4) }, requirement).join(','),
    labels: () => labelText(Object.fromEntries(KEYS.slice(below(5)).map((key) => [key, one(VALUES)]))),
  };
}

it('an index of selectors matches what one of them matches', () => {
  const seed = Number(process.env['BERTH_SELECTOR_SEED'] ?? Date.now() % 1_000_000);
  const { below, selector, labels } = inventions(seed);
  for (let round = 0; round < 300; round += 1) {
    const scopes = Array.from({ length: 1 + below(5) }, (): GrantScope => {
      const [clusterId, namespace] = [below(3) ? null : 'C1', below(3) ? null : 'web'];
      return { clusterId, namespace, labels: below(8) === 0 ? null : selector() };
    });
    const isIn = scopeMatcher(scopes);
    for (let count = 0; count < 20; count += 1) {
      const place = {
        ...{ clusterId: below(2) ? 'C1' : 'C2', namespace: below(2) ? 'web' : 'hr', labels: labels() },
      };
      const plain = scopes.some(
        (scope) =>
          (scope.clusterId ?? place.clusterId) === place.clusterId &&
          (scope.namespace ?? place.namespace) === place.namespace &&
          (scope.labels === null || parseSelector(scope.labels)(place.labels)),
      );
      expect(isIn(place), `seed ${seed}: ${JSON.stringify({ scopes, place })}`).toBe(plain);
    }
  }
});

it('a workload costs as much as its labels, however many requirements there are, and once', () => {
  const keys = Array.from({ length: 30 }, (_, index) => `key-${index}`);
  const selectors = Array.from({ length: 250 }, (_, index) =>
    [...keys.map((key) => `!${key}`), `team=t${index}`].join(','),
  );
  const index = new SelectorIndex(selectors);
  const texts = ['t7', 'none'].map((team) => labelText({ team, app: 'web', tier: 'front' }));
  expect(texts.map((text) => index.matches(text))).toEqual([true, false]);
  expect(index.applied, 'one selector is met').toBe(1);
  const all = labelText({ ...Object.fromEntries(keys.map((key) => [key, 'x'])), team: 't7' });
  expect(index.matches(all)).toBe(false);
  const applied = 2 + keys.length * selectors.length;
  expect(index.applied).toBe(applied);
  for (const text of [...texts, all]) index.matches(text);
  expect(index.applied).toBe(applied);
});
