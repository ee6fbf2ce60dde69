import { expect, it } from 'vitest';
import { linearRegex, RegexError } from '../../src/adapters/linear_regex.ts';

it('finds an expression anywhere in a text', async () => {
  const ready = await linearRegex('ready to accept (connections|requests)$');
  expect(ready.test('LOG:  database system is ready to accept connections')).toBe(true);
  expect(ready.test('LOG:  database system is starting up')).toBe(false);
  expect((await linearRegex('(?i)LISTENING')).test('Server listening on 3000')).toBe(true);
});

it('answers at once what V8 would never answer', async () => {
  const text = `${'a'.repeat(100_000)}!`;
  // V8 needs 2^100000 steps for either.
  for (const pattern of ['^(a+)+$', '^(a|a)*$']) expect((await linearRegex(pattern)).test(text)).toBe(false);
});

it.each([
  ['(', /missing closing \)/],
  ['(?=x)', /unsupported/],
  ['(a)\\1', /invalid escape sequence/],
  ['((a{0,100}){0,100}){0,100}', /invalid repeat count/],
  ['('.repeat(100_000), /./],
])('refuses %.30s with the reason', async (pattern, reason) => {
  const refused = await linearRegex(pattern).catch((error: unknown) => error);
  if (!(refused instanceof RegexError)) throw new Error(`it was not refused: ${refused}`);
  expect(refused.message).toMatch(reason);
  expect(refused.message.length).toBeLessThan(200);
});
