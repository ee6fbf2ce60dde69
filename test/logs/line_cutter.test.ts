import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineCutter, lastLines } from '../../src/logs/line_cutter.ts';
import { LOGS } from '../../src/settings/limits.ts';

const timeOf = (offset: number) => 1_000 + offset;
const textOf = ({ bytes, from, to }: { bytes: Buffer; from: number; to: number }) =>
  bytes.toString('utf8', from, to);

/** Cuts `bytes` forwards, in pieces of these lengths, repeating the list. */
function cutForwards(bytes: Buffer, lengths: readonly number[], start = 0) {
  const cutter = new LineCutter();
  const lines = [];
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    const piece = bytes.subarray(at, at + (lengths[turn % lengths.length] ?? 1));
    lines.push(...cutter.cut(piece, start + at, timeOf));
    at += piece.length;
  }
  const rest = cutter.flush();
  return { lines, rest };
}

describe('a log that is split forwards', () => {
  test('has the same lines as one split backwards, in whatever pieces it arrives', () => {
    const unit = fc.constantFrom('\n', '\r\n', 'a', 'longer text', 'ü', '🙂');
    const text = fc.array(unit, { maxLength: 60 }).map((units) => units.join(''));
    const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(text, lengths, (printed, pieces) => {
        const bytes = Buffer.from(printed);
        const whole = lastLines([{ run: 'a', time: 0, offset: 0, bytes }], Number.POSITIVE_INFINITY);
        const { lines, rest } = cutForwards(bytes, pieces);
        expect([...lines, ...(rest ? [rest] : [])].map(textOf)).toEqual(whole.map(textOf));
        expect([...lines, ...(rest ? [rest] : [])].map(({ time }) => time)).toEqual(
          whole.map(({ offset }) => timeOf(offset)),
        );
      }),
    );
  });

  test('has a split after 64 KiB, never within a character, and the offset where the line continues', () => {
    const bytes = Buffer.from(`${'x'.repeat(LOGS.maxLineBytes - 1)}üend\nnext\n`);
    const { lines, rest } = cutForwards(bytes, [bytes.length], 100);
    expect(lines.map(({ from, to }) => to - from)).toEqual([LOGS.maxLineBytes - 1, 5, 4]);
    expect(lines.map(({ next }) => next)).toEqual([
      100 + LOGS.maxLineBytes - 1,
      100 + bytes.indexOf('\n') + 1,
      100 + bytes.length,
    ]);
    expect(rest).toBeUndefined();
  });

  test('returns the beginning of a line that has not ended', () => {
    const cutter = new LineCutter();
    expect(cutter.cut(Buffer.from('half'), 0, timeOf)).toEqual([]);
    const line = cutter.flush();
    expect(line && textOf(line)).toBe('half');
    expect(cutter.flush()).toBeUndefined();
    expect(cutter.cut(Buffer.from('whole\n'), 90, timeOf).map(textOf)).toEqual(['whole']);
  });
});
