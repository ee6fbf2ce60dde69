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
  '{a,aa}'.repeat(6),
  `{${'a,'.repeat(63)}b}`,
  `[{,]\\{a,b,c\\}${'[,]'.repeat(40)}`,
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
  ['{a,aa}'.repeat(7), 'at most 64 combinations'],
  ['{a,{b,c}{d,e}{f,g}}{h,i,j,k,l}', 'at most 64 combinations'],
  ['x'.repeat(WATCH.maxGlobLength + 1), `at most ${WATCH.maxGlobLength}`],
])('the glob %s is refused', (glob, reason) => {
  expect(globFault(glob)).toContain(reason);
});

it('a glob with the maximum number of alternatives is matched quickly against hostile names', () => {
  const glob = `${'{a,aa}'.repeat(6)}b`;
  expect(pathGlob(glob, '/x').matches('a'.repeat(250))).toBe(false);
  expect(pathGlob(`{a,aa,aaa,aaaa}/*${'{a,aa}'.repeat(4)}*b*`, '/x').matches(`a/${'a'.repeat(250)}`)).toBe(
    false,
  );
});

it('a glob with the maximum number of stars is matched quickly against hostile names', () => {
  const name = 'a'.repeat(250);
  expect(globFault(`${'*a'.repeat(WATCH.maxStars)}b`)).toBeNull();
  // A matcher that tried every place for one star more would not end within the time of this test.
  expect(pathGlob(`${'*a'.repeat(WATCH.maxStars)}b`, '/x').matches(`/x/${name}`)).toBe(false);
  const deep = `${'a/'.repeat(200)}c`;
  expect(pathGlob(`${'**/a/'.repeat(WATCH.maxStars)}b`, '/x').matches(`/x/${deep}`)).toBe(false);
});
