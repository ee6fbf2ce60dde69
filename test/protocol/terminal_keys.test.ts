import { expect, it } from 'vitest';
import { isCursorKey, keyBytes } from '../../src/protocol/terminal_keys.ts';

it.each([
  ['Enter', '\r'],
  ['C-c', '\x03'],
  ['C-C', '\x03'],
  ['C-[', '\x1b'],
  ['C-Space', '\0'],
  ['C-?', '\x7f'],
  ['M-x', '\x1bx'],
  ['M-C-x', '\x1b\x18'],
  ['M-Enter', '\x1b\r'],
  ['a', 'a'],
  ['-', '-'],
  ['C--', null],
  ['é', 'é'],
  ['😀', '😀'],
  ['Up', '\x1b[A'],
  ['S-Up', '\x1b[1;2A'],
  ['C-M-Left', '\x1b[1;7D'],
  ['F1', '\x1bOP'],
  ['S-F1', '\x1b[1;2P'],
  ['F5', '\x1b[15~'],
  ['C-Delete', '\x1b[3;5~'],
  ['PgDn', '\x1b[6~'],
  ['S-Tab', '\x1b[Z'],
  ['ab', null],
  ['', null],
  ['C-', null],
  ['C-é', null],
  ['C-5', null],
  ['S-a', null],
  ['S-Enter', null],
  ['\x1b', null],
  ['enter', null],
  ['constructor', null],
])('the key %j sends %j', (key, bytes) => expect(keyBytes(key)).toBe(bytes));

it('cursor keys have another form in application mode', () => {
  expect(['Up', 'Home', 'C-Up', 'F1', 'Delete'].map((key) => keyBytes(key, true))).toEqual([
    ...['\x1bOA', '\x1bOH', '\x1b[1;5A', '\x1bOP', '\x1b[3~'],
  ]);
  expect(['Up', 'C-Up', 'F1'].map(isCursorKey)).toEqual([true, false, false]);
});
