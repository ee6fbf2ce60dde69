// Which process belongs to which run, on tables that a real system does not produce on demand.
import { expect, test } from 'vitest';
import type { ProcessRow } from '../../../src/adapters/process/process_table.ts';
import { ProcessTree, type RunRoot, runMarkInEnviron } from '../../../src/adapters/process/process_tree.ts';

/** `isBlank`: it has no environment. */
type Given = Partial<ProcessRow> & { pid: number; mark?: string; isBlank?: boolean };

const row = ({ mark: _mark, isBlank: _isBlank, ...given }: Given): ProcessRow => ({
  ...{ ppid: 1, pgid: given.pid, session: given.pid, startTicks: given.pid, state: 'S' },
  ...{ cpuTicks: 0, rssBytes: 0, comm: 'x' },
  ...given,
});
const root = (run: string, pid: number, more: Partial<RunRoot> = {}): RunRoot => ({
  ...{ run, pid, startTicks: pid, grouped: true },
  ...more,
});

/** A tree over a sequence of tables. */
function scans(...tables: Given[][]) {
  let current: Given[] = [];
  const reads: number[] = [];
  let hasBlankOrphan = false;
  const tree = new ProcessTree(
    () => new Map(current.map((given) => [given.pid, row(given)])),
    (pid) => {
      reads.push(pid);
      const { mark, isBlank } = current.find((given) => given.pid === pid) ?? {};
      if (isBlank) return Buffer.alloc(0);
      return Buffer.from(`A=1\0${mark === undefined ? '' : `BERTH_RUN=${mark}\0`}B=2\0`);
    },
  );
  return {
    reads,
    hasBlankOrphan: () => hasBlankOrphan,
    next(roots: RunRoot[], spared: number[] = []) {
      current = tables.shift() ?? [];
      const scan = tree.scan(roots, new Set(spared));
      const { members } = scan;
      hasBlankOrphan = scan.hasBlankOrphan;
      return Object.fromEntries([...members].map(([run, rows]) => [run, rows.map(({ pid }) => pid).sort()]));
    },
  };
}

test.each([
  ['A=1\0BERTH_RUN=abc\0B=2\0', 'abc'],
  ['BERTH_RUN=abc', 'abc'],
  ['XBERTH_RUN=no\0BERTH_RUN=yes\0', 'yes'],
  ['XBERTH_RUN=no\0', null],
  ['BERTH_RUN=\0', ''],
  ['', null],
])('the mark of %j is %j', (environ, mark) => expect(runMarkInEnviron(Buffer.from(environ))).toBe(mark));

test('group, session, parents and marks lead to a run', () => {
  const { next } = scans([
    { pid: 10 },
    { pid: 11, pgid: 10, session: 10 },
    { pid: 12, session: 10 },
    { pid: 13, ppid: 12 },
    { pid: 14, ppid: 13 },
    { pid: 15, mark: 'a' },
    { pid: 16, ppid: 15 },
    { pid: 17 },
    { pid: 18, ppid: 17 },
  ]);
  expect(next([root('a', 10)])).toEqual({ a: [10, 11, 12, 13, 14, 15, 16] });
});

test('a mark of a known run takes precedence over all but an earlier membership, and an unknown mark is ignored', () => {
  const { next } = scans([
    { pid: 10 },
    { pid: 20 },
    { pid: 11, ppid: 10, pgid: 10, session: 10, mark: 'b' },
    { pid: 12, ppid: 10, mark: 'stranger' },
  ]);
  expect(next([root('a', 10), root('b', 20)])).toEqual({ a: [10, 12], b: [11, 20] });
});

test('an environment that is empty in the middle of exec is read again', () => {
  const orphan = { pid: 15, ppid: process.pid };
  const { next, hasBlankOrphan } = scans([{ ...orphan, isBlank: true }], [{ ...orphan, mark: 'a' }]);
  expect([next([root('a', 10)]), hasBlankOrphan()]).toEqual([{ a: [] }, true]);
  expect([next([root('a', 10)]), hasBlankOrphan()]).toEqual([{ a: [15] }, false]);
});

test('only orphans of this process that belong to no run are doubtful', () => {
  const { next, hasBlankOrphan } = scans([
    { pid: 10, ppid: process.pid, isBlank: true },
    { pid: 11, ppid: 1, isBlank: true },
    { pid: 12, ppid: process.pid },
  ]);
  expect([next([root('a', 10)]), hasBlankOrphan()]).toEqual([{ a: [10] }, false]);
});

test('a process once seen in a tree stays in it when it leaves group, session and parent', () => {
  const child = { pid: 11, pgid: 10, session: 10, ppid: 10 };
  const { next } = scans([{ pid: 10 }, child], [{ pid: 11, pgid: 11, session: 11, ppid: 1 }]);
  const roots = [root('a', 10)];
  expect(next(roots)).toEqual({ a: [10, 11] });
  expect(next(roots)).toEqual({ a: [11] });
});

test('a reused pid is another process', () => {
  const { next } = scans(
    [{ pid: 10 }, { pid: 11, ppid: 10, mark: 'a' }],
    [{ pid: 10 }, { pid: 11, startTicks: 99 }],
  );
  const roots = [root('a', 10)];
  expect(next(roots)).toEqual({ a: [10, 11] });
  expect(next(roots)).toEqual({ a: [10] });
});

test('the group of a run is its own as long as it always has a member', () => {
  const orphan = { pid: 11, pgid: 10, session: 10 };
  const { next } = scans([{ pid: 10 }, orphan], [orphan], [{ pid: 99 }], [orphan]);
  const roots = [root('a', 10)];
  expect(next(roots)).toEqual({ a: [10, 11] });
  expect(next(roots)).toEqual({ a: [11] });
  expect(next(roots)).toEqual({ a: [] });
  // The system has given the number to another process.
  expect(next(roots)).toEqual({ a: [] });
});

test('a leader with another start means another group', () => {
  const { next } = scans([
    { pid: 10, startTicks: 99 },
    { pid: 11, pgid: 10, session: 10 },
  ]);
  expect(next([root('a', 10)])).toEqual({ a: [] });
});

test('a run that ended before is found by its mark only', () => {
  const { next } = scans([{ pid: 10 }, { pid: 11, pgid: 10 }, { pid: 12, mark: 'a' }]);
  expect(next([root('a', 9, { grouped: false })])).toEqual({ a: [12] });
});

test('zombies are no members, but hold their group', () => {
  const { next } = scans([
    { pid: 10, state: 'Z' },
    { pid: 11, pgid: 10 },
  ]);
  expect(next([root('a', 10)])).toEqual({ a: [11] });
});

test('a spared process is no member, nor are its descendants', () => {
  const { next } = scans([{ pid: 10 }, { pid: 11, ppid: 10, mark: 'a' }, { pid: 12, ppid: 11 }]);
  expect(next([root('a', 10)], [11])).toEqual({ a: [10] });
});

test('a table with a cycle of parents is read to its end', () => {
  const { next } = scans([{ pid: 10 }, { pid: 11, ppid: 12 }, { pid: 12, ppid: 11 }]);
  expect(next([root('a', 10)])).toEqual({ a: [10] });
});

test('an environment is read once per process, and never of a kernel thread', () => {
  const kernel = { pgid: 0, session: 0 };
  const table = [{ pid: 2, ...kernel }, { pid: 3, ppid: 2, ...kernel }, { pid: 10 }, { pid: 11 }];
  const { next, reads } = scans(table, table, [{ pid: 10 }, { pid: 11, startTicks: 99 }]);
  for (let index = 0; index < 3; index += 1) next([root('a', 10)]);
  expect(reads).toEqual([10, 11, 11]);
});

test('in a container process 2 is an ordinary one', () => {
  const { next } = scans([{ pid: 2 }, { pid: 3, ppid: 2, mark: 'a' }]);
  expect(next([root('a', 9, { grouped: false })])).toEqual({ a: [3] });
});

test('without a table a run is its first process, and an unknown run is empty', () => {
  const { members } = new ProcessTree(() => new Map()).scan(
    [root('a', process.pid), root('b', 2 ** 22 + 1), root('c', 0, { grouped: false })],
    new Set(),
  );
  expect([...members].map(([run, rows]) => [run, rows.map(({ pid }) => pid)])).toEqual([
    ['a', [process.pid]],
    ['b', []],
    ['c', []],
  ]);
});
