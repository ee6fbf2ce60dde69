import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonItemStream } from '../../../src/adapters/kube/json_item_stream.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';

/** The items and the frame of a text in pieces of the given sizes. */
function read(text: string, cuts: readonly number[] = [1_000_000]): { items: unknown[]; frame: unknown } {
  const items: unknown[] = [];
  const reader = new JsonItemStream((item) => items.push(item));
  const bytes = Buffer.from(text);
  for (let at = 0, cut = 0; at < bytes.length; cut += 1) {
    const size = cuts[cut % cuts.length] ?? 1;
    reader.push(bytes.subarray(at, at + size));
    at += size;
  }
  return { items, frame: reader.end() };
}

describe('the items of a listing', () => {
  it('are the same as from JSON.parse, however the bytes are split', () => {
    const cuts = fc.array(fc.integer({ min: 1, max: 17 }), { minLength: 1 });
    const item = fc.dictionary(fc.string(), fc.jsonValue());
    const metadata = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(
        fc.array(item),
        metadata,
        fc.boolean(),
        fc.boolean(),
        cuts,
        (list, meta, isFirst, isPretty, sizes) => {
          const value = isFirst
            ? { items: list, metadata: meta }
            : { kind: 'List', metadata: meta, items: list, x: [1, ['items']] };
          const text = JSON.stringify(value, null, isPretty ? 2 : 0);
          // As JSON.parse returns them: -0 is 0 there.
          expect(read(text, sizes)).toEqual({
            items: JSON.parse(JSON.stringify(list)),
            frame: { ...JSON.parse(text), items: [] },
          });
        },
      ),
    );
  });

  it('are taken from the outermost array of that name only', () => {
    const text =
      '{"metadata":{"items":[{"a":1}]},"x\\"items":[{"b":1}],"other":[{"c":"items"}],"items" : [ {"d":"}]\\"{"} , {} ],"z":{}}';
    expect(read(text, [3])).toEqual({
      items: [{ d: '}]"{' }, {}],
      frame: { ...JSON.parse(text), items: [] },
    });
  });

  it('may be missing', () => {
    expect(read('{"items":[],"metadata":{}}')).toEqual({ items: [], frame: { items: [], metadata: {} } });
    expect(read('{"items":null}')).toEqual({ items: [], frame: { items: null } });
    expect(read('[{"items":[1]}]', [1])).toEqual({ items: [], frame: [{ items: [1] }] });
  });

  it.each([
    '',
    '{',
    '<html>',
    '{"items":[{"a":}]}',
    '{"items":[{"a":1',
    '{"items":[}',
    '{"items":[{]}',
    ']]]]',
    '{"items":[{}]]}',
  ])('are refused in %s', (text) => {
    expect(() => read(text, [1])).toThrow(/no JSON/);
    expect(() => read(text)).toThrow(/no JSON/);
  });

  it('end a listing when an item or the frame has no end', () => {
    const huge = 'x'.repeat(CLOUD.maxObjectBytes);
    expect(() => read(`{"items":[{"a":"${huge}`, [65_536])).toThrow(/an object has more than/);
    expect(() => read(`{"a":"${huge}`, [65_536])).toThrow(/frame of a listing has more than/);
  });
});
