import { describe, expect, it } from 'vitest';
import { formatServiceMemory } from '../../../src/cli/kit/format.ts';
import { type Column, createOutput, formatTable } from '../../../src/cli/kit/output.ts';
import { displayWidth, truncateMiddle, truncateText } from '../../../src/cli/kit/text_width.ts';
import { EVENTS } from '../../../src/settings/limits.ts';

interface Row {
  name: string;
  url: string;
}
const COLUMNS: readonly Column<Row>[] = [
  { title: 'NAME', cell: ({ name }) => name, canShrink: true },
  { title: 'URL', cell: ({ url }) => url },
];
const plain = (_style: unknown, text: string): string => text;
const URL = 'http://localhost:3000';

describe('a table', () => {
  it('aligns columns by their width on a terminal, not by their characters', () => {
    const rows = ['web', '网关', '🚢x', 'é'].map((name) => ({ name, url: URL }));
    const lines = formatTable(rows, COLUMNS, plain).split('\n');
    const offsets = lines.slice(1).map((line) => displayWidth(line.slice(0, line.indexOf('http'))));
    expect(offsets).toEqual([6, 6, 6, 6]);
  });

  it('truncates the cells that may be truncated, so that a row fits the terminal', () => {
    const rows = [{ name: `a${'b'.repeat(60)}`, url: URL }];
    const [, line = ''] = formatTable(rows, COLUMNS, plain, 50).split('\n');
    expect(line).toBe(`a${'b'.repeat(25)}…  ${URL}`);
    expect(formatTable(rows, COLUMNS, plain).split('\n')[1]).toContain('b'.repeat(60));
  });

  it('keeps a column readable on a terminal that is too narrow', () => {
    const [, line = ''] = formatTable([{ name: 'x'.repeat(30), url: URL }], COLUMNS, plain, 10).split('\n');
    expect(line).toBe(`${'x'.repeat(11)}…  ${URL}`);
  });
});

describe('truncated text', () => {
  it('contains whole characters', () => {
    expect(truncateText('👩‍👩‍👧‍👦👩‍👩‍👧‍👦', 3)).toBe('👩‍👩‍👧‍👦…');
    expect(truncateText('网关网关', 4)).toBe('网…');
    expect(truncateText('web', 3)).toBe('web');
  });

  it('contains both ends of a name', () => {
    const names = ['shop--login--hook-create', 'shop--login--hook-remove'];
    expect(names.map((name) => truncateMiddle(name, 12))).toEqual(['shop--…reate', 'shop--…emove']);
    for (const width of [0, 1, 2, 3, 5, 8]) {
      for (const text of ['网关网关网关', 'shop--web', '👩‍👩‍👧‍👦👩‍👩‍👧‍👦x']) {
        expect(displayWidth(truncateMiddle(text, width))).toBeLessThanOrEqual(width);
      }
    }
    expect(truncateMiddle('web', 3)).toBe('web');
  });
});

it('the memory of a service is shown once it was measured', () => {
  const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();
  expect(formatServiceMemory({ rssMB: 2, startedAt: ago(0) })).toBe('');
  expect(formatServiceMemory({ rssMB: 55, startedAt: ago(EVENTS.statsIntervalMs) })).toBe('55 MB');
  expect(formatServiceMemory({})).toBe('');
});

it('only colours of a text reach the terminal as control sequences', () => {
  let written = '';
  const stream = () => ({ write: (text: string) => (written += text) }) as unknown as NodeJS.WriteStream;
  const out = createOutput('table', { stdout: stream, stderr: stream });
  const hostile = 'a\x1b]0;title\x07\x1b[31mred\x1b[39m\x1b[2J\r\u202e\n\tb';
  out.line(hostile);
  out.record({}, () => hostile);
  out.errorLine(hostile);
  const line = 'a␛]0;title␇\x1b[31mred\x1b[39m␛[2J␍\ufffd\n\tb\n';
  expect(written).toBe(line.repeat(3));
});
