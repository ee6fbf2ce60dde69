// docs/reference.md "Logs of many services": `context`, against grep's rule in a dozen lines.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { decodeCursor } from '../../src/logs/log_cursor.ts';
import { placeOf } from '../../src/logs/log_places.ts';
import { searchLogs } from '../../src/logs/log_search.ts';
import { readMergedLogs, startMergedLogs } from '../../src/logs/log_stream.ts';
import { LogWriter } from '../../src/logs/writer.ts';
import type { LogFilterSpec, LogPlace } from '../../src/protocol/logs.ts';
import { must } from '../kit/must.ts';
import { random } from '../kit/random.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-lines-around-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const RUN = '00000000000000a1';
const FILTER: LogFilterSpec = {
  q: 'hit',
  regex: null,
  level: null,
  stream: null,
  since: null,
  until: null,
  context: 0,
};

interface Row {
  name: string;
  text: string;
  around?: true;
  gap?: true;
}

const shown = ({ text, around, gap }: Row): string => `${gap ? '-- ' : ''}${text}${around ? ' -' : ''}`;

/** What `grep -C` shows of `lines`. */
function grep(lines: readonly string[], context: number): string[] {
  const isHit = (line: string | undefined) => line?.includes('hit') ?? false;
  const isNear = (at: number) => lines.slice(Math.max(0, at - context), at + context + 1).some(isHit);
  return lines.flatMap((line, at) => {
    if (!isNear(at)) return [];
    const gap = at > 0 && !isNear(at - 1);
    return shown({ name: '', text: line, ...(!isHit(line) && { around: true }), ...(gap && { gap }) });
  });
}

/** Reads a stream on from `places` to the end of the logs, with at most `maxBytes` at a time. */
async function read(places: Map<string, LogPlace>, filter: LogFilterSpec, maxBytes: number) {
  const rows: (Row & { id: string })[] = [];
  for (let grown = [...places.keys()]; grown.length > 0; ) {
    const logs = [...places].map(([name, place]) => ({ name, place, run: null, isRunning: true }));
    const task = { folder, logs, filter, ansi: false, grown, maxBytes, budgetMs: 60_000 };
    const { frames, moved, unfinished } = await readMergedLogs(task);
    for (const frame of Buffer.from(frames).toString().split('\n\n').slice(0, -1)) {
      const [id = '', , data = ''] = frame.split('\n').map((line) => line.replace(/^\w+: /, ''));
      rows.push({ ...(JSON.parse(data) as Row), id });
    }
    for (const { name, place } of moved) places.set(name, place);
    grown = unfinished;
  }
  return rows;
}

test('context lines come once with their match, in a search and in a stream of any pieces', async () => {
  const seed = Date.now();
  const below = random(seed);
  for (let round = 0; round < 12; round += 1) {
    const label = `seed ${seed}, round ${round}`;
    const filter = { ...FILTER, context: 1 + below(4) };
    const names = ['a', 'b'].map((name) => `${name}${round}`);
    const written = new Map<string, string[]>(names.map((name) => [name, []]));
    let now = 1_000_000;
    const limits = { maxBytes: 200 + below(2_000), keep: 10_000 };
    const writers = new Map(
      names.map((name) => [name, new LogWriter(join(folder, name), limits, () => now)]),
    );
    const print = (count: number): void => {
      for (let at = 0; at < count; at += 1) {
        const name = must(names[below(2)]);
        const text = `${below(6) === 0 ? 'hit' : 'no'} ${now} ${'x'.repeat(below(40))}`.trim();
        must(written.get(name)).push(text);
        must(writers.get(name)).append(1, RUN, Buffer.from(`${text}\n`));
        now += 1 + below(10);
      }
    };
    print(below(60));
    const starts = await startMergedLogs({ folder, names, filter, run: null, lines: null });
    const places = new Map(starts.map(({ name, place }) => [name, place]));
    const rows = await read(places, filter, 1 + below(1_000));
    for (let turn = 0; turn < 6; turn += 1) {
      print(below(20));
      rows.push(...(await read(places, filter, 1 + below(1_000))));
    }
    const of = (name: string, all: readonly Row[]) => all.filter((row) => row.name === name).map(shown);
    for (const name of names)
      expect(of(name, rows), label).toEqual(grep(must(written.get(name)), filter.context));
    for (let turn = 0; turn < 8 && rows.length > 0; turn += 1) {
      const at = below(rows.length);
      const cursor = must(decodeCursor(must(rows[at]).id));
      const resumed = await read(new Map(names.map((name) => [name, placeOf(cursor, name)])), filter, 500);
      for (const name of names)
        expect([...of(name, rows.slice(0, at + 1)), ...of(name, resumed)], `${label}, from ${at}`).toEqual(
          of(name, rows),
        );
    }
    const logs = names.map((name) => ({ name, before: null }));
    const rest = { folder, logs, filter, run: null, ansi: false };
    const { entries } = await searchLogs({ ...rest, limit: 1_000, budgetMs: 60_000 });
    const found = entries.toReversed().flatMap(({ json }) => JSON.parse(`[${json}]`) as Row[]);
    for (const name of names) expect(of(name, found), label).toEqual(of(name, rows));
    // A page has no line twice, and no line that another page finds.
    const page = await searchLogs({ ...rest, limit: 3, budgetMs: 60_000 });
    const texts = page.entries.flatMap(({ json }) =>
      (JSON.parse(`[${json}]`) as Row[]).map(({ text }) => text),
    );
    expect(new Set(texts).size, label).toBe(texts.length);
    expect(texts.filter((text) => text.includes('hit')).length, label).toBe(page.entries.length);
  }
});
