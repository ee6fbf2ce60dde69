// docs/reference.md "Logs of many services"
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeCursor } from '../../src/logs/log_cursor.ts';
import { placeOf } from '../../src/logs/log_places.ts';
import { searchLogs } from '../../src/logs/log_search.ts';
import { readMergedLogs, startMergedLogs } from '../../src/logs/log_stream.ts';
import { LogWriter } from '../../src/logs/writer.ts';
import type { LogFilterSpec, LogPlace } from '../../src/protocol/logs.ts';
import { EVERY_LINE } from '../kit/log_filter.ts';
import { must } from '../kit/must.ts';
import { random } from '../kit/random.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-log-stream-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const BEGINNING: LogPlace = { offset: 0, marks: 0, open: [null, null], around: 0 };
const RUN = '00000000000000a1';

interface Row {
  name: string;
  run: string;
  at: string;
  text?: string;
  event?: string;
  bytes?: number;
  offset?: number;
}

/** Reads logs as a front does for one stream. */
class Reader {
  readonly rows: (Row & { id: string })[] = [];
  private readonly places: Map<string, LogPlace>;
  private readonly filter: LogFilterSpec;
  isRunning = true;

  constructor(places: Iterable<readonly [string, LogPlace]>, filter: Partial<LogFilterSpec> = {}) {
    this.places = new Map(places);
    this.filter = { ...EVERY_LINE, ...filter };
  }

  /** A reader that goes on after the entry with this id. */
  static after(id: string, names: readonly string[]): Reader {
    const cursor = must(decodeCursor(id));
    return new Reader(names.map((name) => [name, placeOf(cursor, name)]));
  }

  async read(maxBytes = 1_000_000, budgetMs = 60_000): Promise<void> {
    const { filter, isRunning } = this;
    for (let grown = [...this.places.keys()]; grown.length > 0; ) {
      const logs = [...this.places].map(([name, place]) => ({ name, place, run: null, isRunning }));
      const task = { folder, logs, filter, ansi: false, grown, maxBytes, budgetMs };
      const { frames, moved, unfinished } = await readMergedLogs(task);
      for (const frame of Buffer.from(frames).toString().split('\n\n').slice(0, -1)) {
        const [id = '', , data = ''] = frame.split('\n').map((line) => line.replace(/^\w+: /, ''));
        this.rows.push({ ...(JSON.parse(data) as Row), id });
      }
      // Without progress the same call would follow for ever.
      if (frames.length === 0 && unfinished.length > 0)
        expect(moved).not.toEqual(logs.map(({ name, place }) => ({ name, place })));
      for (const { name, place } of moved) this.places.set(name, place);
      grown = unfinished;
    }
  }
}

const shown = (rows: readonly Row[]): string[] =>
  rows.map(({ name, text, event, offset }) => `${name} ${offset ?? ''} ${text ?? event}`);

/** Everything in a log, as a search finds it. */
async function everything(names: readonly string[]): Promise<string[]> {
  const logs = names.map((name) => ({ name, before: null }));
  const task = { folder, logs, filter: EVERY_LINE, run: null, limit: 100_000, budgetMs: 60_000, ansi: false };
  const { entries } = await searchLogs(task);
  return shown(entries.map(({ json }) => JSON.parse(json) as Row)).sort();
}

/** The texts of a stream of `web` that begins with the last `lines`; null: all that pass `filter`. */
async function textsFrom(
  lines: number | null,
  filter: Partial<LogFilterSpec> = {},
): Promise<(string | undefined)[]> {
  const whole = { ...EVERY_LINE, ...filter };
  const starts = await startMergedLogs({ folder, names: ['web'], filter: whole, run: null, lines });
  const reader = new Reader(
    starts.map(({ name, place }) => [name, place]),
    filter,
  );
  await reader.read();
  return reader.rows.map(({ text }) => text);
}

describe('a stream of many logs', () => {
  test('has the lines in order of time, and an unfinished line once it ends', async () => {
    let now = 1_000_000;
    const [web, api] = ['web', 'api'].map(
      (name) => new LogWriter(join(folder, name), { maxBytes: 500, keep: 10 }, () => now),
    );
    const print = (writer: LogWriter | undefined, text: string) => {
      writer?.append(1, RUN, Buffer.from(text));
      now += 20;
    };
    for (let at = 0; at < 5; at += 1) {
      print(web, `web ${at}\n`);
      print(api, `api ${at}\n`);
    }
    print(web, 'half');
    const reader = new Reader([
      ['web', BEGINNING],
      ['api', BEGINNING],
    ]);
    await reader.read();
    const pairs = Array.from({ length: 5 }, (_, at) => [`web ${at}`, `api ${at}`]).flat();
    expect(reader.rows.map(({ text }) => text)).toEqual(pairs);
    print(web, ' and half\n');
    await reader.read();
    expect(reader.rows.at(-1)?.text).toBe('half and half');
  });

  test.each([
    // Some blocks of each log.
    { lines: 800, budgetMs: 5 },
    { lines: 60, budgetMs: 0 },
  ])(
    'gets on in all logs when a read has $budgetMs ms, and streams alternate',
    async ({ lines, budgetMs }) => {
      const names = ['web', 'api', 'db'];
      let now = 1_000_000;
      const writers = names.map(
        (name) => new LogWriter(join(folder, name), { maxBytes: 100_000, keep: 10 }, () => now),
      );
      for (let at = 0; at < lines; at += 1) {
        for (const writer of writers)
          for (const stream of [1, 2] as const)
            writer.append(stream, RUN, Buffer.from(`${stream} ${String(at).padEnd(20)}\n`));
        now += 20;
      }
      for (const filter of [{}, { q: '1 7' }]) {
        const [quick, slow] = [0, 1].map(
          () =>
            new Reader(
              names.map((name) => [name, BEGINNING]),
              filter,
            ),
        );
        await quick?.read();
        await slow?.read(10_000, budgetMs);
        expect(slow?.rows.length).toBeGreaterThan(0);
        expect(shown(must(slow).rows)).toEqual(shown(must(quick).rows));
      }
    },
  );

  test('says how much was deleted before it was read, once, and nothing where all was read', async () => {
    const writer = new LogWriter(join(folder, 'web'), { maxBytes: 100, keep: 1 }, () => 1_000_000);
    const print = (from: number, to: number): void => {
      for (let at = from; at < to; at += 1) writer.append(1, RUN, Buffer.from(`line ${at}\n`.padStart(10)));
    };
    print(0, 100);
    const reader = new Reader([['web', BEGINNING]]);
    await reader.read();
    print(100, 105);
    await reader.read();
    expect(reader.rows.filter(({ bytes }) => bytes !== undefined)).toEqual([]);
    expect(reader.rows.at(-1)?.text?.trim()).toBe('line 104');
    const { id } = must(reader.rows.at(-1));
    print(105, 200);
    for (const late of [reader, Reader.after(id, ['web'])]) {
      const before = late.rows.length;
      await late.read();
      const [lost, first, ...rest] = late.rows.slice(before);
      expect(lost).toMatchObject({ name: 'web', bytes: must(first?.offset) - 105 * 10 });
      expect(must(lost?.bytes)).toBeGreaterThan(0);
      expect(rest.at(-1)?.text?.trim()).toBe('line 199');
      const resumed = Reader.after(must(lost).id, ['web']);
      await resumed.read();
      expect(shown(resumed.rows)).toEqual(shown([must(first), ...rest]));
    }
  });

  test('shows an unfinished line when its run has ended', async () => {
    const writer = new LogWriter(join(folder, 'web'), { maxBytes: 500, keep: 10 }, () => 1_000_000);
    const mark = { time: 1_000_000, run: RUN, pid: 7, exitCode: 1, signal: null };
    writer.appendMark({ ...mark, event: 'started', exitCode: null }, false);
    writer.append(1, RUN, Buffer.from('last words'));
    const reader = new Reader([['web', BEGINNING]]);
    await reader.read();
    expect(shown(reader.rows)).toEqual(['web  started']);
    writer.appendMark({ ...mark, event: 'ended' }, false);
    // A later host does not know whether the mark was written.
    writer.appendMark({ ...mark, event: 'ended' }, true);
    await reader.read();
    expect(shown(reader.rows)).toEqual(['web  started', 'web 0 last words', 'web  ended']);
    writer.appendMark({ ...mark, run: '00000000000000a2', event: 'started', exitCode: null }, false);
    await reader.read();
    expect(reader.rows.map(({ event }) => event)).toEqual(['started', undefined, 'ended', 'started']);
  });

  test('starts with the requested number of last lines, or at a time', async () => {
    let now = 1_000_000;
    const writer = new LogWriter(join(folder, 'web'), { maxBytes: 100, keep: 100 }, () => now);
    for (let at = 0; at < 30; at += 1) {
      writer.append(1, RUN, Buffer.from(`${at % 3 === 0 ? 'yes' : 'no'} ${at}\n`));
      now += 20;
    }
    expect(await textsFrom(0)).toEqual([]);
    expect(await textsFrom(2)).toEqual(['no 28', 'no 29']);
    expect(await textsFrom(2, { q: 'yes' })).toEqual(['yes 24', 'yes 27']);
    expect(await textsFrom(null, { since: 1_000_000 + 27 * 20 })).toEqual(['yes 27', 'no 28', 'no 29']);
    expect(await textsFrom(null)).toHaveLength(30);
  });

  test('has as many last lines as requested, each whole, where streams interrupt each other', async () => {
    const writer = new LogWriter(join(folder, 'web'), { maxBytes: 1_000_000, keep: 2 }, () => 1_000_000);
    const print = (stream: 1 | 2, text: string): void => writer.append(stream, RUN, Buffer.from(text));
    print(1, 'first\n');
    print(2, 'progress');
    for (let at = 0; at < 9; at += 1) {
      print(1, `line ${at}\n`);
      print(2, '.');
    }
    print(2, ' done\n');
    print(1, 'half a line\n');
    const done = 'progress......... done';
    expect(await textsFrom(1)).toEqual(['half a line']);
    expect(await textsFrom(2)).toEqual([done, 'half a line']);
    expect(await textsFrom(4)).toEqual(['line 7', 'line 8', done, 'half a line']);
    expect(await textsFrom(3, { stream: 'stdout' })).toEqual(['line 7', 'line 8', 'half a line']);
    expect(await textsFrom(2, { stream: 'stderr' })).toEqual([done]);
    expect(await textsFrom(12)).toEqual([
      'first',
      ...Array.from({ length: 9 }, (_, at) => `line ${at}`),
      done,
      'half a line',
    ]);
    expect(await textsFrom(2, { q: 'line' })).toEqual(['line 8', 'half a line']);
  });

  test('of the last run begins with its own mark, also in a file that has just been begun', async () => {
    const runs = ['00000000000000a1', '00000000000000a2', '00000000000000a3'];
    for (const maxBytes of [1, 10_000]) {
      const name = `web-${maxBytes}`;
      const writer = new LogWriter(join(folder, name), { maxBytes, keep: 100 }, () => 1_000_000);
      for (const run of runs) {
        const mark = { time: 1_000_000, run, pid: 7, exitCode: null, signal: null };
        writer.appendMark({ ...mark, event: 'started' }, false);
        writer.append(1, run, Buffer.from(`line of ${run.slice(-2)}\n`));
        writer.appendMark({ ...mark, event: 'ended' }, false);
      }
      for (const lines of [null, 1, 100]) {
        const filter = EVERY_LINE;
        const starts = await startMergedLogs({ folder, names: [name], filter, run: 'last', lines });
        const reader = new Reader(starts.map(({ place }) => [name, place]));
        await reader.read();
        expect(reader.rows.map(({ text, event }) => text ?? event)).toEqual([
          'started',
          'line of a3',
          'ended',
        ]);
      }
    }
  });

  test('has every entry once, wherever it is resumed, while logs grow and rotate', async () => {
    const seed = Date.now();
    const below = random(seed);
    for (let round = 0; round < 15; round += 1) {
      const names = ['a', 'b', 'c'].map((name) => `${name}${round}`);
      let now = 1_000_000;
      const limits = { maxBytes: 300 + below(5_000), keep: 10_000 };
      const writers = names.map((name) => new LogWriter(join(folder, name), limits, () => now));
      const runs = names.map(() => RUN);
      const reader = new Reader(names.map((name) => [name, BEGINNING]));
      for (let at = 0; at < 150; at += 1) {
        const which = below(names.length);
        const writer = must(writers[which]);
        const run = must(runs[which]);
        if (below(15) === 0) {
          const mark = { time: now, pid: 7, exitCode: null, signal: null };
          writer.appendMark({ ...mark, event: 'ended', run }, false);
          runs[which] = `0000000000${String(at).padStart(6, '0')}`;
          writer.appendMark({ ...mark, event: 'started', run: must(runs[which]) }, false);
        } else {
          const text = 'x'.repeat(below(60)) + (below(3) > 0 ? '\n' : '');
          if (text !== '') writer.append(below(3) === 0 ? 2 : 1, run, Buffer.from(text));
        }
        now += below(30);
        if (below(10) === 0) await reader.read(1 + below(2_000));
      }
      reader.isRunning = false;
      await reader.read();
      const label = `seed ${seed}, round ${round}`;
      expect(shown(reader.rows).sort(), label).toEqual(await everything(names));
      for (let turn = 0; turn < 10; turn += 1) {
        const at = below(reader.rows.length);
        const resumed = Reader.after(must(reader.rows[at]).id, names);
        resumed.isRunning = false;
        await resumed.read();
        const before = shown(reader.rows.slice(0, at + 1));
        expect([...before, ...shown(resumed.rows)].sort(), `${label}, from ${at}`).toEqual(
          shown(reader.rows).sort(),
        );
      }
    }
  });
});
