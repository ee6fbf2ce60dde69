import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LedgerRow } from '../../src/adapters/storage/ledger_file.ts';
import { RunLedger } from '../../src/host/run_ledger.ts';

let folder = '';
let path = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-ledger-'));
  mkdirSync(join(folder, 'host'));
  path = join(folder, 'host', 'ledger');
});
afterEach(() => rmSync(folder, { recursive: true }));

const row = (run: string, more: Partial<LedgerRow> = {}): LedgerRow => ({
  service: 'web',
  run,
  pid: 11,
  startTicks: 2,
  startedAt: 3,
  port: 4,
  pty: false,
  memo: { revision: 1, port: 4, ready: null, passed: false, deadline: null, restarts: 0 },
  boot: 'boot',
  stop: null,
  end: null,
  ...more,
});
const runs = () => [...new RunLedger(path).rows.keys()];

test('the ledger returns the newest row of each run, without dropped runs', () => {
  const ledger = new RunLedger(path);
  expect(ledger.put(row('a'))).toBe(true);
  ledger.put(row('b'));
  ledger.put(row('c'));
  ledger.put(row('a', { pid: 7, stop: { signal: 'SIGTERM', graceMs: 5, at: 6 } }));
  ledger.drop('b');
  ledger.drop('never');
  const again = new RunLedger(path);
  expect(again.rows).toEqual(ledger.rows);
  expect(again.rows.get('a')?.pid).toBe(7);
  expect([...again.rows.keys()]).toEqual(['a', 'c']);
});

test('a pid that cannot be a run is dropped: to kill it would mean a group, init or everything', () => {
  const ledger = new RunLedger(path);
  for (const pid of [0, 1, -1, -7, 1.5, 2 ** 53]) ledger.put(row(`pid ${pid}`, { pid }));
  ledger.put(row('kept', { pid: 2 }));
  const read = [...new RunLedger(path).rows.values()].map(({ run, pid, startTicks }) => [
    run,
    pid,
    startTicks,
  ]);
  expect(read.pop()).toEqual(['kept', 2, 2]);
  for (const [, pid, startTicks] of read) expect([pid, startTicks]).toEqual([0, 0]);
  expect(read).toHaveLength(6);
});

test('a row with a missing or mistyped part is dropped', () => {
  const whole = row('a');
  const damaged = Object.keys(whole).flatMap((key) => [
    { ...whole, [key]: undefined },
    { ...whole, [key]: key === 'pty' ? 1 : true },
  ]);
  for (const put of [...damaged, { ...whole, memo: null }, null, 7, []])
    appendFileSync(path, `${JSON.stringify({ put })}\n`);
  expect(runs()).toEqual([]);
  appendFileSync(path, `${JSON.stringify({ put: whole })}\n`);
  expect(runs()).toEqual(['a']);
});

test('a line truncated anywhere is ignored, and lines after it count', () => {
  const ledger = new RunLedger(path);
  ledger.put(row('a'));
  const before = statSync(path).size;
  ledger.put(row('b'));
  const after = statSync(path).size;
  const whole = readFileSync(path);
  for (let size = before; size < after - 1; size += 7) {
    writeFileSync(path, whole.subarray(0, size));
    expect(runs()).toEqual(['a']);
    writeFileSync(path, whole.subarray(0, size));
    new RunLedger(path).put(row('c'));
    expect(runs()).toEqual(['a', 'c']);
  }
});

test('garbage of any kind is skipped', () => {
  new RunLedger(path).put(row('a'));
  appendFileSync(
    path,
    '{}\nnull\n[]\n5\n{"put":null}\n{"put":{"run":5}}\n{"drop":{}}\n\0\0\0\n{"drop":"x"}\n',
  );
  expect(runs()).toEqual(['a']);
});

test('the ledger stays small while runs start and end', () => {
  const ledger = new RunLedger(path);
  ledger.put(row('kept'));
  for (let index = 0; index < 3_000; index += 1) {
    ledger.put(row(`run ${index}`));
    ledger.drop(`run ${index}`);
  }
  expect(statSync(path).size).toBeLessThan(300 * 1024);
  expect(runs()).toEqual(['kept']);
  expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['host', 'host.ledger', 'host/ledger']);
});

test('an unreadable ledger does not count as an empty one', () => {
  rmSync(path, { force: true });
  expect(() => new RunLedger(folder)).toThrow('EISDIR');
});

test('a removed ledger is read by its second link, and written again while its host lives', () => {
  const ledger = new RunLedger(path);
  ledger.put(row('a'));
  rmSync(join(folder, 'host'), { recursive: true });
  mkdirSync(join(folder, 'host'));
  expect(runs()).toEqual(['a']);
  ledger.put(row('b'));
  for (const name of ['ledger', '../host.ledger']) rmSync(join(folder, 'host', name));
  for (let call = 0; call < 2; call += 1) expect(ledger.flush()).toBe(true);
  expect(runs()).toEqual(['a', 'b']);
});
