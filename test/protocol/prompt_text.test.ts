// What may be typed as a prompt, and how: docs/reference.md "Prompt".
import { describe, expect, it } from 'vitest';
import {
  appearedLines,
  faultOfPrompt,
  isPartTyped,
  typedPrompt,
  withPlainEnd,
} from '../../src/protocol/prompt_text.ts';

const typed = (text: string, isPasted: boolean, newline: string | null = '\r') => {
  const result = typedPrompt(text, { isPasted, newline });
  return 'bytes' in result ? Buffer.from(result.bytes).toString() : result;
};

describe('the text of a prompt', () => {
  it.each(['a', 'a\nb\tc', `'"$\`\\{}`, '😀 e\u0301 \u200d\u202e', '[201~ ^[[201~ \\x1b[201~', ' \n '])(
    'is accepted: %j',
    (text) => expect(faultOfPrompt(text)).toBeNull(),
  );

  it.each([
    ['\x1b[201~rm', 'U+001B at 0'],
    ['a\x03', 'U+0003 at 1'],
    ['a\0', 'U+0000 at 1'],
    ['a\x7f', 'U+007F at 1'],
    ['\u009b201~', 'U+009B at 0'],
    ['a\r\nb', 'newlines in place of carriage returns'],
    ['\ud83d', 'U+D83D at 0'],
  ])('is refused: %j', (text, why) => expect(faultOfPrompt(text)).toContain(why));

  it('is pasted if the program uses bracketed paste', () => {
    expect(typed('one\n\ttwo', true)).toBe('\x1b[200~one\n\ttwo\x1b[201~');
    expect(typed('x'.repeat(20_000), true)).toHaveLength(20_012);
  });

  it.each([
    ['see @foo', true],
    ['@', true],
    ['mail a@foo', true],
    ['one\ntwo $skill', true],
    ['run /review', true],
    ['/review @foo', true],
    ['see @foo ', false],
    ['see @foo\n', false],
    ['@foo is it', false],
    ['/review', false],
    ['/a@b', false],
    ['', false],
  ])('gets a space if it would open a list of completions: %j', (text, isClosed) => {
    expect(withPlainEnd(text, { completes: '@$/' })).toBe(isClosed ? `${text} ` : text);
    expect(withPlainEnd(text, {})).toBe(text);
  });

  it.each([
    ['in C:\\', true],
    ['/cd C:\\', true],
    ['/x\\', true],
    ['one\\\ntwo', false],
    ['in C:\\ ', false],
    ['', false],
  ])('gets a space if its backslash would continue the line: %j', (text, isContinued) => {
    expect(withPlainEnd(text, { continuesLines: true })).toBe(isContinued ? `${text} ` : text);
    expect(withPlainEnd(text, { completes: '@' })).toBe(text);
  });

  it('is searched for its last word in little time', () => {
    const text = `${'x'.repeat(200_000)} y`;
    expect(withPlainEnd(text, { completes: '@' })).toBe(text);
  });

  it('is typed otherwise, if the program receives it unchanged', () => {
    expect(typed('one\ntwo', false)).toBe('one\rtwo');
    expect(typed('one\ntwo', false, '\x1b\r')).toBe('one\x1b\rtwo');
    expect(typed('one', false, null)).toBe('one');
    expect(typed('one\ntwo', false, null)).toEqual({ fault: expect.stringContaining('submitted alone') });
    expect(typed('one\ttwo', false)).toEqual({ fault: expect.stringContaining('a tab would be a key') });
    expect(typed('é'.repeat(2_048), false)).toEqual({ fault: expect.stringContaining('4095 bytes') });
    expect(typed(`${'é'.repeat(2_047)}\n`.repeat(10), false)).toHaveLength(20_480);
  });
});

it('lines that have appeared are found, each as often as it is new', () => {
  expect(appearedLines(['$ '], ['$ echo ok', 'ok', '$ '])).toEqual(['$ echo ok', 'ok']);
  expect(appearedLines(['a', 'ok', '$ '], ['ok', '$ x', 'ok', '$ '])).toEqual(['$ x', 'ok']);
  expect(appearedLines(['', 'a'], ['', 'a', '', 'b', '', 'c', '', ''])).toEqual(['b', '', 'c']);
  expect(appearedLines(['a'], ['a'])).toEqual([]);
});

describe('a text that is higher than the input', () => {
  const text = '/no a\nb\n> c\nd\ne\nf';
  const typed = ['hello', '› > c   ↑', '  d', '  e', '  f', ''];

  it.each([
    ['at its beginning', ['unknown', '› /no a', '  b', '  > c', '  d   ↓', '']],
    ['with fewer rows', ['unknown', 'at all', '› /no a', '  b   ↓']],
    ['at its end', typed],
  ])('is still typed when that shows it %s', (_where, after) => {
    expect(isPartTyped(text, typed, after)).toBe(true);
  });

  it.each([
    ['a footer is below it', [...typed, '? for keys']],
    ['an empty input is below it', [...typed, '›']],
    ['an answer follows', [...typed, '* heard', '› ask', '? for keys']],
    ['nothing is shown', []],
  ])('is taken when %s', (_why, after) => expect(isPartTyped(text, typed, after)).toBe(false));

  it('is not meant where all of it is shown, or nothing', () => {
    expect(isPartTyped('a\nb', ['› a', '  b'], ['› a', '  b'])).toBe(false);
    expect(isPartTyped('a\nb', ['› a', '  b', 'footer'], ['b'])).toBe(false);
  });
});
