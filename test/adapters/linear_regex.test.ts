import { expect, it } from 'vitest';
import { linearRegex, RegexError } from '../../src/adapters/linear_regex.ts';

it('a linear regex finds a match anywhere in a text', async () => {
  const ready = await linearRegex('ready to accept (connections|requests)$');
  expect(ready.test('LOG:  database system is ready to accept connections')).toBe(true);
  expect(ready.test('LOG:  database system is starting up')).toBe(false);
  expect((await linearRegex('(?i)LISTENING')).test('Server listening on 3000')).toBe(true);
});

it('a linear regex matches at once what V8 would never finish', async () => {
  const text = `${'a'.repeat(100_000)}!`;
  // V8 needs 2^100000 steps for either.
  for (const pattern of ['^(a+)+$', '^(a|a)*$']) expect((await linearRegex(pattern)).test(text)).toBe(false);
});

it.each([
  ['(', /missing closing \)/],
  ['(?=x)', /unsupported/],
  ['(a)\\1', /invalid escape sequence/],
  ['((a{0,20}){0,10}){0,9}', /invalid repeat count/],
  [`(${'ab'.repeat(400)}){1000}`, /with its repeats it has 800000 parts, and more than 2000/],
  ['(?:[a-z]\\d){1001}', /it has 2002 parts/],
  ['('.repeat(100_000), /./],
])('refuses %.30s with the reason', async (pattern, reason) => {
  const refused = await linearRegex(pattern).catch((error: unknown) => error);
  if (!(refused instanceof RegexError)) throw new Error(`it was not refused: ${refused}`);
  expect(refused.message).toMatch(reason);
  expect(refused.message.length).toBeLessThan(200);
});

it('a linear regex reads less text the more instructions it has', async () => {
  const { reach } = await linearRegex('(?i)listening on .*:\\d+');
  expect(reach).toBeGreaterThan(10_000);
  const large = await linearRegex('\\b(a|b)*a(a|b){480}\\b');
  expect(large.reach).toBeLessThan(200);
  expect(large.reach).toBeGreaterThan(100);
});

it('a linear regex accepts common repetitions', async () => {
  const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
  const address = '^(?:(?:25[0-5]|2[0-4]\\d|1?\\d{1,2})\\.){3}\\d{1,3}:\\p{Greek}*\\d{2,5}$';
  for (const pattern of [uuid, address, '[[:alpha:]]{1,200}', '\\{(\\w+)\\}{2}', '[]a]{3}', 'a{,3}'])
    expect((await linearRegex(pattern)).reach).toBeGreaterThan(500);
});
