import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readableLine } from '../../src/logs/terminal_text.ts';

const ESC = '\x1b';

test.each([
  ['plain text', 'plain text', 'plain text'],
  ['a tab stays', 'a\tb', 'a\tb'],
  ['the carriage return of a terminal newline', 'text\r', 'text'],
  ['a progress bar', '10%\r 50%\r100%', '100%'],
  ['a shorter text over a longer one', 'abcdef\rxy', 'xycdef'],
  ['backspaces', 'abc\b\bX', 'aXc'],
  ['backspaces stop at the margin', 'a\b\b\b\bX', 'X'],
  ['colours', `${ESC}[1;31mred${ESC}[0m and ${ESC}[38;2;1;2;3mmore${ESC}[m`, 'red and more'],
  ['cursor forward', `a${ESC}[3Cb`, 'a   b'],
  ['cursor forward without a number', `a${ESC}[Cb`, 'a b'],
  ['cursor back', `abc${ESC}[2DX`, 'aXc'],
  ['cursor to a column', `abc${ESC}[2GX`, 'aXc'],
  ['cursor to column 0 is column 1', `abc${ESC}[0GX`, 'Xbc'],
  ['erase to the end', `abcdef${ESC}[3G${ESC}[K`, 'ab'],
  ['erase to the end and print on', `abcdef\r${ESC}[Kxy`, 'xy'],
  ['erase to the cursor', `abcdef${ESC}[3G${ESC}[1K`, '   def'],
  ['erase to a cursor past the end', `ab${ESC}[9G${ESC}[1KX`, '        X'],
  ['erase all keeps the column', `abc${ESC}[2KX`, '   X'],
  [
    'an erased column shows nothing old when a later one is written',
    `abcdef${ESC}[2G${ESC}[K${ESC}[5GX`,
    'a   X',
  ],
  ['a title (OSC, BEL)', `${ESC}]0;a title\x07text`, 'text'],
  ['a link (OSC, ST)', `${ESC}]8;;http://x${ESC}\\text${ESC}]8;;${ESC}\\`, 'text'],
  ['a title that never ends', `text${ESC}]0;a title`, 'text'],
  ['a title with a carriage return in it', `${ESC}]0;a\rb\x07text`, 'text'],
  ['DCS', `${ESC}P1$r0m${ESC}\\text`, 'text'],
  ['two characters', `${ESC}7${ESC}=text${ESC}8${ESC}>`, 'text'],
  ['charsets', `${ESC}(B${ESC})0text\x0f`, 'text'],
  ['private modes', `${ESC}[?25l${ESC}[?2004htext${ESC}[?25h`, 'text'],
  ['movement between lines is not followed', `a${ESC}[2Ab${ESC}[5;5Hc${ESC}[2Jd`, 'abcd'],
  ['a sequence cut short', `text${ESC}[3`, 'text'],
  ['an escape at the end', `text${ESC}`, 'text'],
  ['an escape before a sequence', `${ESC}${ESC}[31mtext`, 'text'],
  ['8-bit sequences', 'a\x9b31mb\x9b2Dc', 'cb'],
  ['bells, zeros and deletes', 'a\x07b\x00c\x7fd', 'abcd'],
  ['multi-byte characters', 'grün\rG', 'Grün'],
  ['a wide character takes two columns', `日本${ESC}[3GX`, '日X '],
  ['half of a wide character leaves a blank', `日本${ESC}[2GX`, ' X本'],
  ['a wide character over half of another', `a日本\r語`, '語 本'],
  ['a picture of several characters', '👩‍💻!\r', '👩‍💻!'],
  ['what combines stays with its character', 'e\u0301x\bY', 'e\u0301Y'],
])('%s is shown as readable text', (_, printed, read) => expect(readableLine(printed)).toBe(read));

test('a cursor movement far to the right does not lengthen the line as far', () => {
  expect(readableLine(`${ESC}[999999999Gx`).length).toBe(1024);
  expect(readableLine(`${ESC}[999999999C${ESC}[999999999Cx`).length).toBe(1024);
});

test('the cursor can move back in a line longer than any terminal', () => {
  const long = 'a'.repeat(5_000);
  expect(readableLine(`${long}${ESC}[2DX`)).toBe(`${'a'.repeat(4_998)}Xa`);
});

test('no control character of random input remains', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom('\r', '\b', '\x1b', '[', ']', '\x9b', '5', ';', 'C', 'D', 'G', 'K', '\x07', '日', 'm'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const read = readableLine(pieces.join('').replaceAll('\n', ''));
      expect(read).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    }),
  );
});

test('text that is overwritten without a cursor movement is shown as with one', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary-ascii', maxLength: 6 }),
    fc.constantFrom('\r', '\r', '\b', '\b', '\t', 'ü', '\u02ff', '\x1b[1m', '\x85', 'text'),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      // CAN first ends any sequence under way, so that the movement is one.
      const line = `${pieces.join('').replaceAll('\n', '')}\x18z`;
      expect(readableLine(line)).toBe(readableLine(`${line}${ESC}[C`));
    }),
    { numRuns: 2_000 },
  );
});

test('the time grows linearly with the length of a line', () => {
  // The worst case known: many erasures and returns over many columns. Quadratic time would take minutes.
  const erasures = `${'x'.repeat(30_000)}${`${ESC}[1K${ESC}[2K\r${ESC}[1024Gx`.repeat(3_000)}`;
  expect(readableLine(erasures).trim()).toBe('x');
  expect(readableLine('a\b'.repeat(60_000))).toBe('a');
  expect(readableLine(`${'\r'.repeat(200_000)}x`)).toBe('x');
  expect(readableLine(`${ESC}]`.repeat(30_000))).toBe('');
  expect(readableLine(`${ESC}[${'1;'.repeat(30_000)}`)).toBe('');
});
