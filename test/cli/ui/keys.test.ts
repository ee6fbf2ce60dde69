// Keys from the bytes of a terminal, however they are cut into pieces.
import { expect, it } from 'vitest';
import { KeyReader, MAX_PASTE, type TypedInput } from '../../../src/cli/ui/keys.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const key = (name: string): TypedInput => ({ kind: 'key', key: name });
const paste = (text: string): TypedInput => ({ kind: 'paste', text, isCut: false });

const TYPED: readonly [string, readonly TypedInput[]][] = [
  ['jk/ä漢😀', [...'jk/ä漢😀'].map(key)],
  ['\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1~\x1bOF', ['Up', 'Down', 'PageUp', 'PageDown', 'Home', 'End'].map(key)],
  ['\r\t\x7f\x03\x1a', ['Enter', 'Tab', 'Backspace', 'C-c', 'C-z'].map(key)],
  ['\x1b[200~xq\r\x1b[31my\x1b[201~j', [paste('xq\r\x1b[31my'), key('j')]],
  // Alt, unknown keys, and late answers to a program that was attached.
  ['\x1bj\x1b[1;5A\x1b[?62;22c\x1b]11;rgb:0/0/0\x07\x1bP1$r0m\x1b\\k', [key('k')]],
  ['\x1b\x1b[Aj', [key('Escape'), key('Up'), key('j')]],
];

it.each(TYPED)('the key reader reads %j', (text, expected) => {
  expect(new KeyReader().read(bytes(text))).toEqual(expected);
  // In pieces of one byte.
  const reader = new KeyReader();
  expect([...bytes(text)].flatMap((byte) => reader.read(Uint8Array.of(byte)))).toEqual(expected);
});

it('the key reader treats a lone escape as the key only when nothing follows', () => {
  const reader = new KeyReader();
  expect(reader.read(bytes('\x1b'))).toEqual([]);
  expect(reader.isWaiting).toBe(true);
  expect(reader.flush()).toEqual([key('Escape')]);
  expect(reader.isWaiting).toBe(false);
});

it('the key reader treats input that is too fast to be typed as a paste, and truncates a long paste', () => {
  const flood = 'xyq'.repeat(MAX_PASTE);
  expect(new KeyReader().read(bytes(flood))).toEqual([
    { kind: 'paste', text: flood.slice(0, MAX_PASTE), isCut: true },
  ]);
  const reader = new KeyReader();
  const typed = [`\x1b[200~${flood}`, flood, '\x1b[20', '1~j'].flatMap((text) => reader.read(bytes(text)));
  expect(typed).toEqual([{ kind: 'paste', text: flood.slice(0, MAX_PASTE), isCut: true }, key('j')]);
  // A key that is held down is no paste.
  expect(new KeyReader().read(bytes('j'.repeat(100)))).toHaveLength(100);
});
