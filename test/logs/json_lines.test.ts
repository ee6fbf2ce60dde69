import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesToJson } from '../../src/logs/json_lines.ts';
import type { PlacedLine } from '../../src/logs/line_cutter.ts';
import { lineText } from '../../src/logs/line_text.ts';

/** Lines one after the other in one buffer, as in a log. */
function linesOf(texts: readonly (string | Buffer)[]): PlacedLine[] {
  const parts = texts.map((text) => Buffer.concat([Buffer.from(text as string), Buffer.from('\n')]));
  const bytes = Buffer.concat(parts);
  let at = 0;
  return parts.map((part, index) => {
    const from = at;
    at += part.length;
    return { time: index, offset: from, bytes, from, to: at - 1 };
  });
}

const SHOWINGS = [
  { raw: false, stamp: null },
  { raw: true, stamp: null },
  { raw: false, stamp: (time: number) => `at ${time}` },
];
const KINDS = [
  '',
  'plain text ~',
  '\r',
  '\r\r',
  '"quoted"',
  'back\\slash',
  '\ttab',
  '\x7f',
  '\x1b[31mred\x1b[0m',
];
const MORE = ['größer ✓', '😀', Buffer.from([0xff, 0xc3]), '\0', '10 %\r20 %', ' ', '日本', ']', ','];

describe('lines as JSON', () => {
  it.each([
    ['no line', []],
    ['one empty line', ['']],
    ['lines of every kind', [...KINDS, ...MORE]],
    ['more than is kept for the next time', ['x'.repeat(65_536), '"'.repeat(65_536), 'é'.repeat(32_768)]],
    ['several parts', Array.from({ length: 40 }, (_, at) => `${at}${'\x01"é'.repeat(8_000)}`)],
    ['several plain parts', Array.from({ length: 40 }, (_, at) => `${at}${'y'.repeat(60_000)}`)],
  ])('are equal to their texts: %s', async (_, texts) => {
    const lines = linesOf(texts);
    for (const showing of SHOWINGS) {
      const expected = JSON.stringify(lines.map((line) => lineText(line, showing)));
      expect((await linesToJson(lines, showing)).toString() === expected).toBe(true);
    }
  });

  it('are equal to their texts in any combination', async () => {
    const printed = fc.array(fc.constantFrom(...KINDS, ...MORE), { maxLength: 6 });
    const joined = printed.map((parts) => Buffer.concat(parts.map((part) => Buffer.from(part as string))));
    const property = fc.asyncProperty(
      fc.array(joined, { maxLength: 12 }),
      fc.constantFrom(...SHOWINGS),
      async (texts, showing) => {
        const lines = linesOf(texts);
        const json = (await linesToJson(lines, showing)).toString();
        expect(JSON.parse(json)).toEqual(lines.map((line) => lineText(line, showing)));
      },
    );
    await fc.assert(property, { numRuns: 500 });
  });

  it('keep their bytes when the next call reuses the buffer', async () => {
    const showing = { raw: false, stamp: null };
    const [first, second] = await Promise.all([
      linesToJson(linesOf(['a'.repeat(300_000), 'b']), showing),
      linesToJson(linesOf(['c'.repeat(300_000), 'd']), showing),
    ]);
    expect(first.toString()).toBe(`["${'a'.repeat(300_000)}","b"]`);
    expect(second.toString()).toBe(`["${'c'.repeat(300_000)}","d"]`);
  });
});
