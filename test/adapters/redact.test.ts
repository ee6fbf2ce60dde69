import { expect, it } from 'vitest';
import { redact } from '../../src/adapters/redact.ts';

const SECRET = 'eyJhbGciOi.secret.part';

it.each([
  ['nothing of it', 'nothing of it'],
  [`you sent Bearer ${SECRET}!`, 'you sent Bearer [removed]!'],
  [`${SECRET} and ${SECRET}`, '[removed] and [removed]'],
  ['cut in the middle: eyJhbGciOi.sec', 'cut in the middle: [removed]'],
  [`${SECRET} and again eyJhbGci`, '[removed] and again [removed]'],
  ['only eyJ', 'only eyJ'],
  ['eyJhbGciOi.other', 'eyJhbGciOi.other'],
])('%s', (text, expected) => expect(redact(text, SECRET)).toBe(expected));

it('a text without a secret, or with a word that only resembles one, is unchanged', () => {
  expect(redact('a token', null)).toBe('a token');
  expect(redact('a token', 'token')).toBe('a token');
});
