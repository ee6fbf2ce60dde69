// Text from outside is shown, never obeyed.
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createOutput } from '../../../src/cli/kit/output.ts';
import { safeJson, sanitize, sanitizeLine } from '../../../src/cli/kit/sanitize.ts';

it('characters that move the cursor, set colours or change the writing direction are replaced', () => {
  expect(sanitize('a\tb\nc ü ✓ 漢字 🚢')).toBe('a\tb\nc ü ✓ 漢字 🚢');
  expect(sanitize('\x1b[2Jx\x07\r\x00')).toBe('␛[2Jx␇␍␀');
  expect(sanitize('\x7f\x9b31m')).toBe('␡\ufffd31m');
  for (const mark of ['\u202e', '\u2066', '\u200f', '\u061c', '\u2028']) {
    expect(sanitize(`user${mark}txt`)).toBe('user\ufffdtxt');
  }
  expect(sanitizeLine('one\ntwo')).toBe('one␊two');
});

it('JSON has control characters escaped, and nothing else', () => {
  const value = { line: 'a\x9b31m\x7f\u202eb\u2028c\x1b[0m\n\t✓ 漢字 🚢', '\u2066': [1, null] };
  for (const indent of [0, 2]) {
    const text = safeJson(value, indent);
    expect(JSON.parse(text)).toEqual(value);
    expect(text).toBe(sanitize(text));
    expect(text).toContain('\\u009b31m\\u007f\\u202eb\\u2028c\\u001b[0m\\n\\t✓ 漢字 🚢');
  }
});

describe('a table', () => {
  const rows = [
    { name: 'web', size: 3 },
    { name: 'a\x1b[31mlong', size: null },
  ];
  const columns = [
    { title: 'NAME', cell: ({ name }: { name: string }) => name },
    { title: 'SIZE', cell: ({ size }: { size: number | null }) => size, alignRight: true },
    { title: 'MORE', cell: () => 'x', wideOnly: true },
  ];
  const printed = (format: 'table' | 'wide' | 'json' | 'jsonl', list = rows): [string, string] => {
    let out = '';
    let err = '';
    const stream = (take: (text: string) => void): NodeJS.WriteStream =>
      Object.assign(new Writable(), { write: (text: string) => Boolean(take(text)) }) as never;
    const streams = {
      stdout: () =>
        stream((text) => {
          out += text;
        }),
      stderr: () =>
        stream((text) => {
          err += text;
        }),
    };
    createOutput(format, streams).rows(list, columns, 'nothing');
    return [out, err];
  };

  it('aligns columns, shows empty values as a dash, and contains no control characters', () => {
    expect(printed('table')).toEqual([
      ['NAME        SIZE', 'web            3', 'a␛[31mlong     -', ''].join('\n'),
      '',
    ]);
    expect(printed('wide')[0].split('\n')[1]).toBe('web            3  x');
  });

  it('is JSON, or one object per line, on request', () => {
    expect(JSON.parse(printed('json')[0])).toEqual(rows);
    expect(
      printed('jsonl')[0]
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual(rows);
  });

  it('reports an empty list on stderr, but not in JSON', () => {
    expect(printed('table', [])).toEqual(['', 'nothing\n']);
    expect(printed('json', [])).toEqual(['[]\n', '']);
    expect(printed('jsonl', [])).toEqual(['', '']);
  });
});
