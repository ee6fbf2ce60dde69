import { expect, it } from 'vitest';
import { IgnoreRules, isIgnored } from '../../src/adapters/ignore_rules.ts';
import { WATCH } from '../../src/settings/limits.ts';

it('a line that could keep the matcher busy is left out, and the others count', () => {
  const lines = [`${'**/a/'.repeat(WATCH.maxStars + 4)}b`, '*.log\r', '', '!keep.log'];
  const rules = [new IgnoreRules('/x', lines.join('\n'))];
  // With that line, this would not end within the time of this test.
  expect(isIgnored(rules, `/x/${'a/'.repeat(200)}c`, false)).toBe(false);
  expect(isIgnored(rules, '/x/y/some.log', false)).toBe(true);
  expect(isIgnored(rules, '/x/y/keep.log', false)).toBe(false);
});

it('a line with the most stars is matched quickly against hostile names', () => {
  const rules = [new IgnoreRules('/x', `${'**/a/'.repeat(WATCH.maxStars)}b\n${'*a'.repeat(20)}b`)];
  expect(isIgnored(rules, `/x/${'a/'.repeat(100)}c`, false)).toBe(false);
  expect(isIgnored(rules, `/x/${'a'.repeat(250)}`, false)).toBe(false);
});
