import { expect, it } from 'vitest';
import { pathGlob } from '../../src/adapters/path_globs.ts';
import { globFault } from '../../src/protocol/globs.ts';
import { WATCH } from '../../src/settings/limits.ts';

it.each([
  'src/**',
  '**/*.{ts,tsx}',
  'a/**/b/**/*.test.*',
  '*a*b*',
  'app/\\(group\\)/page.tsx',
  'x[()]',
  '[!a-z]?',
])('%s is a valid glob', (glob) => {
  expect(globFault(glob)).toBeNull();
});

it.each([
  ['', 'empty'],
  ['!src', 'ignore'],
  ['a\nb', 'one line'],
  ['{a', 'has no partner'],
  ['a]', 'has no partner'],
  ['+(a|aa)', '\\( stands'],
  ['a)', '\\) stands'],
  ['(a*)*', '\\( stands'],
  [`${'*a'.repeat(WATCH.maxStars + 1)}b`, `at most ${WATCH.maxStars}`],
  [`${'**/a/'.repeat(WATCH.maxStars + 1)}b`, `at most ${WATCH.maxStars}`],
  ['x'.repeat(WATCH.maxGlobLength + 1), `at most ${WATCH.maxGlobLength}`],
])('the glob %s is refused', (glob, reason) => {
  expect(globFault(glob)).toContain(reason);
});

it('a glob with the maximum number of stars is matched quickly against hostile names', () => {
  const name = 'a'.repeat(250);
  expect(globFault(`${'*a'.repeat(WATCH.maxStars)}b`)).toBeNull();
  // A matcher that tried every place for one star more would not end within the time of this test.
  expect(pathGlob(`${'*a'.repeat(WATCH.maxStars)}b`, '/x').matches(`/x/${name}`)).toBe(false);
  const deep = `${'a/'.repeat(200)}c`;
  expect(pathGlob(`${'**/a/'.repeat(WATCH.maxStars)}b`, '/x').matches(`/x/${deep}`)).toBe(false);
});
