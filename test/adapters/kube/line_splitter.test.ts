import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LineTooLong, lineSplitter } from '../../../src/adapters/kube/line_splitter.ts';

describe('lines', () => {
  it('are the same however the bytes are split', () => {
    const whole = fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' ')));
    fc.assert(
      fc.property(whole, fc.array(fc.integer({ min: 1, max: 9 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const split = lineSplitter(1_000);
        const found: string[] = [];
        for (let at = 0, cut = 0; at < bytes.length; cut += 1) {
          const size = cuts[cut % Math.max(1, cuts.length)] ?? 3;
          for (const line of split(bytes.subarray(at, at + size))) found.push(Buffer.from(line).toString());
          at += size;
        }
        expect(found).toEqual(lines.filter((line) => line !== ''));
      }),
    );
  });

  it('fail when one is too long', () => {
    const split = lineSplitter(4);
    expect(split(Buffer.from('1234\n12'))).toHaveLength(1);
    expect(() => split(Buffer.from('345'))).toThrow(LineTooLong);
  });
});
