import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { rotatedStart } from '../../src/logs/format.ts';
import { lineText } from '../../src/logs/line_text.ts';
import {
  type LogTailQuery,
  logEndOffset,
  readLog,
  readLogParts,
  readLogTail,
} from '../../src/logs/reader.ts';
import { LogWriter } from '../../src/logs/writer.ts';

const RUN = '00000000000000aa';
const OTHER = '00000000000000bb';
const WIDE = { maxBytes: 1 << 20, keep: 5 };

let folder = '';
let log: LogWriter;
let time = 0;
const open = (limits = WIDE) => {
  log = new LogWriter(folder, limits, () => time);
  return log;
};
beforeEach(() => {
  time = Date.parse('2026-11-20T10:00:00Z');
  folder = join(mkdtempSync(join(tmpdir(), 'berth-logs-')), 'web');
});
afterEach(() => {
  log.close();
  rmSync(join(folder, '..'), { recursive: true });
});

const out = (text: string, run = RUN) => log.append(1, run, Buffer.from(text));
const err = (text: string, run = RUN) => log.append(2, run, Buffer.from(text));
const ask = (query: Partial<LogTailQuery> = {}): LogTailQuery => ({
  lines: 50,
  stream: null,
  run: null,
  ...query,
});
const iso = (time: number) => new Date(time).toISOString();
const tail = (query: Partial<LogTailQuery & { timestamps: boolean; raw: boolean }> = {}) =>
  readLogTail(folder, ask(query))
    .lines.map((line) => lineText(line, { raw: query.raw ?? false, stamp: query.timestamps ? iso : null }))
    .map((line) => `${line}\n`)
    .join('');
const files = () => readdirSync(folder).sort();
/** All raw bytes on disk, in order. */
const whole = () =>
  files()
    .flatMap((name) => rotatedStart(name) ?? [])
    .sort((a, b) => a - b)
    .map((start) => `out.${start}.log`)
    .concat('out.log')
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('');

describe('the last lines', () => {
  test('of a missing log are empty', () => {
    open();
    expect(readLogTail(join(folder, 'none'), ask()).lines).toEqual([]);
    expect(readLogTail(folder, ask()).lines).toEqual([]);
    // A follower continues from there: beyond the end it would miss the first lines.
    for (const offset of [7, Number.MAX_SAFE_INTEGER])
      expect(readLog(join(folder, 'none'), offset, 100)).toMatchObject({ start: 0, end: 0 });
  });

  test('are in order, and include a last line without a newline', () => {
    open();
    out('one\ntwo\nthr');
    out('ee\nfour');
    expect(tail()).toBe('one\ntwo\nthree\nfour\n');
    expect(tail({ lines: 2 })).toBe('three\nfour\n');
    expect(tail({ lines: 1 })).toBe('four\n');
    out('\n\n');
    expect(tail({ lines: 2 })).toBe('four\n\n');
  });

  test('can be limited to one stream or one run', () => {
    open();
    out('a1\na');
    err('e1\ne2\n');
    out('2\n');
    out('b1\n', OTHER);
    expect(tail({ stream: 'stdout' })).toBe('a1\na2\nb1\n');
    expect(tail({ stream: 'stderr' })).toBe('e1\ne2\n');
    expect(tail({ run: RUN, stream: 'stdout' })).toBe('a1\na2\n');
    expect(tail({ run: OTHER })).toBe('b1\n');
    expect(tail({ run: '00000000000000cc' })).toBe('');
  });

  test('end where a run ends', () => {
    open();
    out('killed in the mid');
    out('next\n', OTHER);
    expect(tail()).toBe('killed in the mid\nnext\n');
  });

  test('have the offset at which each begins, separately for each stream', () => {
    open();
    const offsets = (query: Partial<LogTailQuery> = {}) =>
      readLogTail(folder, ask(query)).lines.map(({ offset }) => offset);
    out('one\ntw');
    err('oo');
    out('o\r');
    err('ps');
    expect([offsets(), offsets({ stream: 'stdout' }), offsets({ stream: 'stderr' })]).toEqual([
      [0, 4],
      [0, 4],
      [6],
    ]);
    out('\n');
    err(`${'x'.repeat(65_536)}y`);
    expect(offsets({ stream: 'stdout', lines: 1 })).toEqual([4]);
    expect(offsets({ stream: 'stderr', lines: 5 })).toEqual([6, 13 + 65_536 - 4]);
  });

  test('have the time at which each began', () => {
    open();
    out('one\ntw');
    time += 1_000;
    out('o\nthree\n');
    expect(tail({ timestamps: true })).toBe(
      '2026-11-20T10:00:00.000Z one\n2026-11-20T10:00:00.000Z two\n2026-11-20T10:00:01.000Z three\n',
    );
    expect(tail({ timestamps: true, raw: true, lines: 1 })).toBe('2026-11-20T10:00:01.000Z three\n');
  });

  test('are readable, or raw', () => {
    open();
    out('\x1b[31mred\x1b[0m\r\n10%\r20%\r\n');
    expect(tail()).toBe('red\n20%\n');
    expect(tail({ raw: true })).toBe('\x1b[31mred\x1b[0m\r\n10%\r20%\r\n');
    log.append(1, RUN, Buffer.from([0xff, 0xfe, 0x0a]));
    expect(tail({ lines: 1 })).toBe('\ufffd\ufffd\n');
    expect(tail({ lines: 1, raw: true })).toBe('\ufffd\ufffd\n');
  });

  test('have whole characters when one arrives in two writes', () => {
    open();
    const bytes = Buffer.from('grün\n');
    log.append(1, RUN, bytes.subarray(0, 3));
    log.append(1, RUN, bytes.subarray(3));
    expect(tail()).toBe('grün\n');
  });

  test('are split after 64 KiB, never within a character', () => {
    open();
    const long = `x${'ü'.repeat(40_000)}`;
    out(`first\n${long}`);
    out('\nlast\n');
    const lines = tail().trimEnd().split('\n');
    expect(lines.map((line) => Buffer.byteLength(line))).toEqual([5, 65_535, 14_466, 4]);
    expect(lines.slice(1, 3).join('')).toBe(long);
    expect(tail({ lines: 2 }).split('\n')[0]?.length).toBe(14_466 / 2);
  });

  test('are found in a log far larger than the first read, and across rotations', () => {
    open({ maxBytes: 10_000, keep: 1000 });
    const long = 'y'.repeat(2_000);
    for (let index = 0; index < 500; index += 1) out(`${index} ${long}\n`);
    for (const lines of [1, 3, 100, 499, 500, 501])
      expect(tail({ lines })).toBe(
        Array.from(
          { length: Math.min(lines, 500) },
          (_, index) => `${500 - Math.min(lines, 500) + index} ${long}\n`,
        ).join(''),
      );
  });

  test('are found for a stream that was last written long ago', () => {
    open({ maxBytes: 100_000, keep: 100 });
    err('old\n');
    for (let index = 0; index < 300; index += 1) out(`${'z'.repeat(5_000)}\n`);
    expect(tail({ stream: 'stderr' })).toBe('old\n');
  });
});

describe('reading from an offset', () => {
  test('returns every byte once, whatever the size of the steps', () => {
    open({ maxBytes: 300, keep: 1000 });
    let text = '';
    for (let index = 0; index < 70; index += 1) {
      const line = `line ${index}\n`;
      (index % 3 === 0 ? err : out)(line);
      text += line;
    }
    for (const limit of [1, 7, 1_000, 4_096, 1 << 20]) {
      let at = 0;
      const read: Uint8Array[] = [];
      while (at < log.end) {
        const step = readLog(folder, at, limit);
        expect(step.start).toBe(at);
        expect(step.end).toBe(Math.min(at + limit, log.end));
        read.push(step.bytes);
        at = step.end;
      }
      expect(Buffer.concat(read).toString()).toBe(text);
    }
    const { parts } = readLogParts(folder, 0, 1 << 20, { stream: 'stderr', timestamps: false });
    const errors = Buffer.concat(parts.map(({ bytes }) => bytes)).toString();
    expect(errors.match(/\d+/g)?.map(Number)).toEqual(Array.from({ length: 24 }, (_, index) => index * 3));
  });

  test('returns where it really begins when rotation has removed the rest', () => {
    open({ maxBytes: 1_000, keep: 2 });
    for (let index = 0; index < 100; index += 1) out(`${String(index).padStart(99, '.')}\n`);
    const read = readLog(folder, 0, 1 << 20);
    expect(read.start).toBe(7_000);
    expect(read.end).toBe(10_000);
    expect(Buffer.from(read.bytes).toString().slice(0, 100)).toBe(`${'70'.padStart(99, '.')}\n`);
  });

  test('returns nothing past the end', () => {
    open();
    out('abc');
    expect(readLog(folder, 3, 100)).toMatchObject({ start: 3, end: 3 });
    expect(readLog(folder, 999, 100)).toMatchObject({ end: 3 });
    expect(logEndOffset(folder)).toBe(3);
    expect(logEndOffset(join(folder, 'nowhere'))).toBe(0);
  });
});

describe('rotation', () => {
  test('loses no byte, and keeps the files within their size and number', () => {
    open({ maxBytes: 5_000, keep: 3 });
    for (let index = 0; index < 2_000; index += 1) out(`line ${index}\n`);
    const sizes = files().map((name) => statSync(join(folder, name)).size);
    expect(files().filter((name) => name.endsWith('.log'))).toHaveLength(4);
    expect(files().filter((name) => name.endsWith('.idx'))).toHaveLength(4);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(5_000);
    const kept = whole();
    expect(kept.endsWith('line 1998\nline 1999\n')).toBe(true);
    const numbers = kept.match(/(?<=line )\d+(?=\n)/g)?.map(Number) ?? [];
    expect(numbers).toEqual(
      Array.from({ length: numbers.length }, (_, index) => 2_000 - numbers.length + index),
    );
  });

  test('that keeps no files leaves the current file unchanged', () => {
    open({ maxBytes: 100, keep: 0 });
    for (let index = 0; index < 100; index += 1) out('0123456789');
    expect(files()).toEqual(['out.idx', 'out.log']);
    expect(log.end).toBe(1_000);
  });

  test('uses changed limits at once', () => {
    const limits = { maxBytes: 1 << 20, keep: 5 };
    open(limits);
    out('x'.repeat(500));
    Object.assign(limits, { maxBytes: 100, keep: 1 });
    out('y');
    expect(files()).toEqual(['out.0.idx', 'out.0.log', 'out.idx', 'out.log']);
  });
});

describe('a reopened log', () => {
  test('is rotated if it was already full', () => {
    open({ maxBytes: 100, keep: 5 });
    out('x'.repeat(100));
    log.close();
    out('y');
    expect(files()).toEqual(['out.0.idx', 'out.0.log', 'out.idx', 'out.log']);
  });

  test('continues where it ended', () => {
    open();
    out('one\n');
    log.close();
    open();
    expect(log.end).toBe(4);
    out('two\n');
    expect(tail()).toBe('one\ntwo\n');
    expect(files()).toEqual(['out.idx', 'out.log']);
  });

  test.each([
    ['after the log was moved aside', () => renameSync(join(folder, 'out.log'), join(folder, 'out.0.log'))],
    [
      'after both were moved aside',
      () => {
        renameSync(join(folder, 'out.log'), join(folder, 'out.0.log'));
        renameSync(join(folder, 'out.idx'), join(folder, 'out.0.idx'));
      },
    ],
  ])('finishes a rotation that was interrupted %s', (_, cut) => {
    open();
    out('one\n');
    log.close();
    cut();
    // A reader that comes before the host continues misses nothing.
    expect(tail()).toBe('one\n');
    expect(logEndOffset(folder)).toBe(4);
    expect(readLog(folder, 1, 100)).toEqual({ start: 1, end: 4, bytes: Buffer.from('ne\n') });
    open();
    expect(log.end).toBe(4);
    out('two\n');
    expect(tail()).toBe('one\ntwo\n');
    expect(files()).toEqual(['out.0.idx', 'out.0.log', 'out.idx', 'out.log']);
  });

  test('ignores a truncated record at the end of the index', () => {
    open();
    out('one\n');
    log.close();
    appendFileSync(join(folder, 'out.idx'), 'torn');
    open();
    err('two\n');
    expect(tail({ stream: 'stderr' })).toBe('two\n');
    expect(tail()).toBe('one\ntwo\n');
  });

  test('ignores zeros at the end of the index, as after a loss of power', () => {
    open();
    out('one\n');
    err('two\n');
    log.close();
    appendFileSync(join(folder, 'out.idx'), Buffer.alloc(4_096));
    expect(tail()).toBe('one\ntwo\n');
    open();
    expect(log.end).toBe(8);
    out('three\n');
    expect(tail()).toBe('one\ntwo\nthree\n');
    expect(tail({ stream: 'stderr' })).toBe('two\n');
  });

  test('never reuses offsets, even if the end of the log was lost', () => {
    open();
    out('one\n');
    err('two\n');
    log.close();
    truncateSync(join(folder, 'out.log'), 2);
    open();
    expect(log.end).toBe(4);
    out('three\n', OTHER);
    expect(readLog(folder, 4, 100)).toMatchObject({ start: 4, end: 10 });
    expect(tail({ lines: 1 })).toBe('three\n');
  });
});

describe('a user who edits the log files', () => {
  test.each([
    ['removes the log', () => rmSync(join(folder, 'out.log'))],
    ['removes both', () => ['out.log', 'out.idx'].map((name) => rmSync(join(folder, name)))],
    ['removes the folder', () => rmSync(folder, { recursive: true })],
    ['empties the log', () => truncateSync(join(folder, 'out.log'), 0)],
  ])('and %s loses the old output, but no output written more than a second later', (_, act) => {
    open();
    out('old\n');
    act();
    time += 1_000;
    out('new\n');
    expect(tail({ lines: 1 })).toBe('new\n');
    expect(readFileSync(join(folder, 'out.log'), 'utf8')).toBe('new\n');
    expect(log.end).toBe(8);
    expect(readLog(folder, 4, 100)).toMatchObject({ start: 4, end: 8 });
  });
});

test('a reader returns the same as a log in one string, whatever is written, in whatever pieces', () => {
  const chunk = fc.record({
    stream: fc.constantFrom<1 | 2>(1, 2),
    run: fc.constantFrom(RUN, OTHER),
    text: fc.string({ unit: fc.constantFrom('a', 'b', '\n', 'ü'), maxLength: 30 }),
    ms: fc.constantFrom(0, 1, 50),
  });
  const step = fc.oneof(
    { weight: 8, arbitrary: chunk },
    { weight: 1, arbitrary: fc.constant('reopen' as const) },
  );
  const look = fc.record({ from: fc.nat(400), limit: fc.nat(200), lines: fc.integer({ min: 1, max: 20 }) });
  const limits = { maxBytes: 60, keep: 1_000 };
  const property = fc.property(fc.array(step, { maxLength: 60 }), look, (steps, { from, limit, lines }) => {
    rmSync(folder, { recursive: true, force: true });
    open(limits);
    const chunks: { stream: 1 | 2; run: string; bytes: Buffer }[] = [];
    for (const one of steps) {
      if (one === 'reopen') {
        log.close();
        open(limits);
        continue;
      }
      time += one.ms;
      const bytes = Buffer.from(one.text);
      log.append(one.stream, one.run, bytes);
      chunks.push({ stream: one.stream, run: one.run, bytes });
    }
    const all = Buffer.concat(chunks.map(({ bytes }) => bytes));
    const start = Math.min(from, all.length);
    const read = readLog(folder, from, limit);
    expect([read.start, read.end]).toEqual([start, Math.min(start + limit, all.length)]);
    expect(Buffer.from(read.bytes)).toEqual(all.subarray(start, start + limit));
    for (const stream of [null, 'stdout', 'stderr'] as const) {
      const mine = chunks.filter((one) => !stream || one.stream === (stream === 'stdout' ? 1 : 2));
      // A newline where the run changes in the middle of a line.
      let text = '';
      let run = '';
      for (const one of mine.filter(({ bytes }) => bytes.length > 0)) {
        if (run && run !== one.run && !text.endsWith('\n')) text += '\n';
        run = one.run;
        text += one.bytes;
      }
      const expected = (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n').slice(-lines);
      expect(tail({ lines, stream })).toBe(text === '' ? '' : `${expected.join('\n')}\n`);
    }
    log.close();
  });
  fc.assert(property, { numRuns: 100 });
});
