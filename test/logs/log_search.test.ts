// docs/reference.md "Logs of many services"
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { searchLogs } from '../../src/logs/log_search.ts';
import { LogWriter } from '../../src/logs/writer.ts';
import type { LogFilterSpec, LogSearchTask } from '../../src/protocol/logs.ts';
import { EVERY_LINE } from '../kit/log_filter.ts';
import { random } from '../kit/random.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-search-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const RUN = '00000000000000a1';
const NEXT_RUN = '00000000000000a2';

interface Row {
  name: string;
  run: string;
  at: string;
  stream?: string;
  text?: string;
  level?: string | null;
  fields?: object;
  offset?: number;
  event?: string;
  pid?: number | null;
  exitCode?: number | null;
  signal?: string | null;
}

function searchTask(names: readonly string[], filter: Partial<LogFilterSpec> = {}): LogSearchTask {
  return {
    folder,
    logs: names.map((name) => ({ name, before: null })),
    filter: { ...EVERY_LINE, ...filter },
    run: null,
    limit: 100,
    budgetMs: 60_000,
    ansi: false,
  };
}

/** Every entry, newest first, by pages. */
async function pages(task: LogSearchTask): Promise<Row[]> {
  const rows: Row[] = [];
  let { logs } = task;
  for (;;) {
    const answer = await searchLogs({ ...task, logs });
    rows.push(...answer.entries.map(({ json }) => JSON.parse(json) as Row));
    if (answer.bound === null) return rows;
    const next = answer.taken.map(({ name, key }) => ({ name, before: key }));
    expect(next).not.toEqual(logs);
    logs = next;
  }
}

const texts = (rows: readonly Row[]): string[] => rows.flatMap(({ text }) => text ?? []);

/** A log with a clock of its own. */
function writerOf(name: string, limits = { maxBytes: 1_000_000, keep: 100 }, start = 1_000_000) {
  let now = start;
  const writer = new LogWriter(join(folder, name), limits, () => now);
  return {
    writer,
    wait: (ms: number) => {
      now += ms;
    },
    print: (text: string, run = RUN, stream: 1 | 2 = 1) => {
      writer.append(stream, run, Buffer.from(text));
      now += 20;
    },
    mark: (event: 'started' | 'ended', run = RUN, exitCode: number | null = null) =>
      writer.appendMark({ event, time: now, run, pid: 77, exitCode, signal: null }, false),
  };
}

describe('the logs of many services', () => {
  test('are merged by time, newest first, in pages', async () => {
    const [web, api] = [writerOf('web'), writerOf('api', undefined, 1_000_005)];
    for (let at = 0; at < 10; at += 1) {
      web.print(`web ${at}\n`);
      api.print(`api ${at}\n`);
    }
    const task = { ...searchTask(['web', 'api']), limit: 3 };
    const expected = Array.from({ length: 10 }, (_, at) => [`api ${9 - at}`, `web ${9 - at}`]).flat();
    expect(texts(await pages(task))).toEqual(expected);
  });

  test('get on however little time a page has', async () => {
    const names = Array.from({ length: 20 }, (_, at) => `web${at}`);
    for (const [at, name] of names.entries()) {
      const { print } = writerOf(name, undefined, 1_000_000 + at);
      for (let line = 0; line < 3; line += 1) print(`${name} ${line}\n`);
    }
    const task = searchTask(names, { q: '1' });
    const expected = texts(await pages(task));
    expect(expected).toHaveLength(20 + 2 * 11);
    expect(texts(await pages({ ...task, budgetMs: -1 }))).toEqual(expected);
  });

  test('have markers between the lines of two runs', async () => {
    const { print, mark } = writerOf('web');
    mark('started');
    print('one\n');
    mark('ended', RUN, 3);
    mark('started', NEXT_RUN);
    print('two\n', NEXT_RUN);
    for (const limit of [1, 2, 100]) {
      const rows = await pages({ ...searchTask(['web']), limit });
      expect(rows.reverse().map(({ text, event }) => text ?? event)).toEqual([
        'started',
        'one',
        'ended',
        'started',
        'two',
      ]);
      expect(rows[2]).toMatchObject({ name: 'web', run: RUN, pid: 77, exitCode: 3, signal: null });
    }
  });

  test('have whole lines when both streams are written in turns', async () => {
    const { print } = writerOf('web');
    print('out: be');
    print('err: fi', RUN, 2);
    print('gin\n');
    print('rst\n', RUN, 2);
    const rows = await pages(searchTask(['web']));
    expect(rows.reverse().map(({ text, stream }) => [text, stream])).toEqual([
      ['out: begin', 'stdout'],
      ['err: first', 'stderr'],
    ]);
    expect(texts(await pages(searchTask(['web'], { stream: 'stderr' })))).toEqual(['err: first']);
  });

  test('can be searched for a text in any case, across colours and cursor movements', async () => {
    const { print } = writerOf('web');
    print('Payment FAILED\n\x1b[31mpay\x1b[0mment failed\npaymentfailed\n12%\rpayment failed\r\n');
    print('pay\x1b[2Cfailed\nGRÜSSE aus Köln\n');
    const found = async (q: string) => texts(await pages(searchTask(['web'], { q })));
    expect(await found('payment failed')).toEqual(['payment failed', 'payment failed', 'Payment FAILED']);
    expect(await found('y  f')).toEqual(['pay  failed']);
    expect(await found('grüsse')).toEqual(['GRÜSSE aus Köln']);
    expect(await found('ö')).toEqual(['GRÜSSE aus Köln']);
    expect(await found('a.*b')).toEqual([]);
  });

  test('can be searched by expressions and levels', async () => {
    const { print } = writerOf('web');
    print('GET /a 200\nGET /b 503\n{"level":50,"msg":"no"}\nlevel=warn msg=x\n2026 INFO fine\nstatus 5xx\n');
    const found = async (filter: Partial<LogFilterSpec>) =>
      texts(await pages(searchTask(['web'], filter))).reverse();
    expect(await found({ regex: String.raw`GET /\w 5\d\d` })).toEqual(['GET /b 503']);
    expect(await found({ regex: '503|fine$' })).toEqual(['GET /b 503', '2026 INFO fine']);
    expect(await found({ regex: '^.{10}$' })).toEqual(['GET /a 200', 'GET /b 503', 'status 5xx']);
    expect(await found({ level: 'warn' })).toEqual(['{"level":50,"msg":"no"}', 'level=warn msg=x']);
    expect(await found({ level: 'info', q: 'fine' })).toEqual(['2026 INFO fine']);
    await expect(pages(searchTask(['web'], { regex: '(' }))).rejects.toMatchObject({ code: 'invalid_spec' });
  });

  test('have the fields, level, time and offset of a line of JSON', async () => {
    const { print } = writerOf('web');
    print('first\n{"severity":"ERROR","user":{"id":7}}\n');
    const [row] = await pages(searchTask(['web']));
    expect(row).toMatchObject({
      name: 'web',
      run: RUN,
      stream: 'stdout',
      level: 'error',
      fields: { severity: 'ERROR', user: { id: 7 } },
      offset: 6,
    });
    expect(Date.parse(row?.at ?? '')).toBe(1_000_000);
  });

  test('have no fields if the JSON is nested deeper than clients can read', async () => {
    const { print } = writerOf('web');
    const nested = (depth: number): string =>
      `{"level":"error","a":${'['.repeat(depth)}${']'.repeat(depth)}}`;
    const wide = JSON.stringify({ level: 'error', all: Array.from({ length: 100 }, () => [{}]) });
    print(`${nested(31)}\n${wide}\n${nested(32)}\n${nested(30_000)}\nlast\n`);
    const rows = (await pages(searchTask(['web']))).reverse();
    expect(rows.map(({ fields }) => fields !== undefined)).toEqual([true, true, false, false, false]);
    expect(texts(rows)[3]).toBe(nested(30_000));
  });

  test('can be limited by time and by run', async () => {
    const { print } = writerOf('web', { maxBytes: 64, keep: 100 });
    for (let at = 0; at < 20; at += 1) print(`line ${at}\n`, at < 10 ? RUN : NEXT_RUN);
    const found = async (task: Partial<LogSearchTask>) =>
      texts(await pages({ ...searchTask(['web']), ...task })).reverse();
    const between = { ...EVERY_LINE, since: 1_000_100, until: 1_000_160 };
    expect(await found({ filter: between })).toEqual(['line 5', 'line 6', 'line 7', 'line 8']);
    expect(await found({ run: 'last', limit: 3 })).toHaveLength(10);
    expect((await found({ run: '2' })).at(-1)).toBe('line 9');
    expect(await found({ run: '3' })).toEqual([]);
    expect(await found({ run: NEXT_RUN, filter: { ...EVERY_LINE, q: 'line 1' } })).toHaveLength(10);
  });

  test('have a split where a line is longer than 64 KiB', async () => {
    const { print } = writerOf('web');
    print(`first\n${'x'.repeat(100_000)}`);
    print(`${'x'.repeat(100_000)}\nlast\n`);
    const rows = (await pages({ ...searchTask(['web']), limit: 1 })).reverse();
    expect(rows.map(({ offset, text }) => [offset, text?.length])).toEqual([
      [0, 5],
      [6, 65_536],
      [65_542, 65_536],
      [131_078, 65_536],
      [196_614, 3_392],
      [200_007, 4],
    ]);
  });

  /** A long text in few characters: `3a2b` for `aaabb`. */
  const outline = (text: string): string =>
    text.replace(/(.)\1*/g, (same, letter) => `${same.length}${letter}`);

  /** How a line begins. A search may miss what output of the other stream separates from that. */
  const beginning = (text: string): string => (/^(.)\1*/.exec(text)?.[0] ?? '').slice(0, 40);

  test('have every part of lines longer than 64 KiB that cross files or other output', async () => {
    const seed = Date.now();
    const below = random(seed);
    for (let round = 0; round < 12; round += 1) {
      const name = `long${round}`;
      const { writer } = writerOf(name, {
        maxBytes: [70_000, 150_000, 1_000_000][round % 3] ?? 0,
        keep: 1_000,
      });
      const expected: Record<1 | 2, string> = { 1: '', 2: '' };
      for (let piece = 0; piece < 30; piece += 1) {
        const stream = below(3) === 0 ? 2 : 1;
        // Short lines beside them, and at most two parts of the other stream's line at once.
        const text = String.fromCharCode(97 + (piece % 26)).repeat(below(stream === 1 ? 60_000 : 300));
        const end = below(6) === 0 ? '\n' : '';
        writer.append(stream, RUN, Buffer.from(`${text}${end}`));
        expected[stream] += `${text}${end}`;
      }
      for (const [stream, number] of [
        ['stdout', 1],
        ['stderr', 2],
      ] as const) {
        const filter = { ...EVERY_LINE, stream };
        const rows = (await pages({ ...searchTask([name]), filter, limit: 1 + below(5) })).reverse();
        const lines = expected[number].replace(/\n$/, '').split('\n');
        const parts = lines.flatMap((line) => line.match(/.{1,65536}/g) ?? ['']);
        const label = `seed ${seed}, round ${round}, ${stream}`;
        const shown = rows.map(({ text = '' }) => outline(text));
        expect(shown, label).toEqual(expected[number] === '' ? [] : parts.map(outline));
        for (const { offset, text = '' } of rows.slice(0, 5).filter((row) => row.text)) {
          const asked = { ...searchTask([name]), filter: { ...filter, q: beginning(text) } };
          const found = (await pages({ ...asked, limit: 50 })).map((row) => row.offset);
          expect(found.includes(offset), `${label}, ${outline(text)}`).toBe(true);
        }
      }
    }
  });

  test('have the parts of a line of very many pieces', async () => {
    const { writer } = writerOf('web');
    // A search that went back to the beginning of the line for each piece would not end in time.
    for (let piece = 0; piece < 20_000; piece += 1) {
      writer.append(1, RUN, Buffer.from('x'.repeat(40)));
      writer.append(2, RUN, Buffer.from('.'));
    }
    const filter = { ...EVERY_LINE, stream: 'stdout' } as const;
    const rows = await pages({ ...searchTask(['web']), filter });
    expect(rows.reduce((sum, { text = '' }) => sum + text.length, 0)).toBe(800_000);
    expect(rows).toHaveLength(Math.ceil(800_000 / 65_536));
  });

  test('have each line once while they rotate between pages, and lack only the oldest', async () => {
    const seed = Date.now();
    const below = random(seed);
    for (let round = 0; round < 20; round += 1) {
      const label = `seed ${seed}, round ${round}`;
      // Few files: some of what was there at the first page is removed before the last.
      const limits = { maxBytes: 300 + below(2_000), keep: round % 2 === 0 ? 1_000 : 1 + below(8) };
      const names = [`a${round}`, `b${round}`];
      const logs = names.map((name) => ({ name, lines: 0, log: writerOf(name, limits) }));
      const print = () => {
        for (let count = below(120); count > 0; count -= 1) {
          const one = logs[below(2)];
          if (one === undefined) throw new Error('there are two logs');
          one.log.print(`${one.name} ${one.lines} ${'x'.repeat(below(40))}\n`);
          one.lines += 1;
        }
      };
      while (logs.some(({ lines }) => lines < 100)) print();
      const atFirst = new Map(logs.map(({ name, lines }) => [name, lines]));
      const task = { ...searchTask(names), limit: 1 + below(30) };
      const numbers = new Map<string, number[]>(names.map((name) => [name, []]));
      for (let { logs: places } = task; ; ) {
        const answer = await searchLogs({ ...task, logs: places });
        for (const text of texts(answer.entries.map(({ json }) => JSON.parse(json) as Row))) {
          const [name = '', number] = text.split(' ');
          numbers.get(name)?.push(Number(number));
        }
        if (answer.bound === null) break;
        places = answer.taken.map(({ name, key }) => ({ name, before: key }));
        print();
      }
      for (const name of names) {
        const read = numbers.get(name) ?? [];
        const newest = (atFirst.get(name) ?? 0) - 1;
        expect(read, label).toEqual(read.map((_, at) => newest - at));
        if (limits.keep === 1_000) expect(read, label).toHaveLength(newest + 1);
      }
    }
  });

  test('are complete whatever is written, with pages of any size', async () => {
    const seed = Date.now();
    const below = random(seed);
    const integer = (least: number, most: number) => least + below(most - least + 1);
    for (let round = 0; round < 30; round += 1) {
      const name = `s${round}`;
      const limits = { maxBytes: integer(200, 200_000), keep: 1_000 };
      const { writer, wait } = writerOf(name, limits);
      const expected: { offset: number; text: string }[] = [];
      const open: Record<1 | 2, { offset: number; text: string } | null> = { 1: null, 2: null };
      let run = RUN;
      const endRun = () => {
        for (const stream of [1, 2] as const) {
          const line = open[stream];
          if (line) expected.push(line);
          open[stream] = null;
        }
      };
      const pieces = integer(1, 400);
      for (let at = 0; at < pieces; at += 1) {
        if (integer(0, 40) === 0) {
          endRun();
          run = `00000000000${String(at).padStart(5, '0')}`;
        }
        const stream = integer(0, 3) === 0 ? 2 : 1;
        const text = 'abc'.repeat(integer(0, integer(0, 20) === 0 ? 2_000 : 20));
        const ends = integer(0, 4) > 0;
        const offset = writer.end;
        if (text === '' && !ends) continue;
        writer.append(stream, run, Buffer.from(ends ? `${text}\n` : text));
        wait(integer(0, 30));
        const line = open[stream] ?? { offset, text: '' };
        open[stream] = { ...line, text: line.text + text };
        if (!ends) continue;
        expected.push(open[stream]);
        open[stream] = null;
      }
      endRun();
      expected.sort((one, other) => one.offset - other.offset);
      const limit = integer(1, 50);
      const rows = (await pages({ ...searchTask([name]), limit })).reverse();
      const label = `seed ${seed}, round ${round}`;
      expect(
        rows.map(({ offset, text }) => ({ offset, text })),
        label,
      ).toEqual(expected);
    }
  });
});
