// What reaches the disk, and when: seen in the system calls, because no kill of a process shows it.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { tempDir } from '../../kit/actors.ts';
import { bundle } from '../../kit/bundle.ts';
import { hasStrace } from '../../kit/child_program.ts';

let child = '';
beforeAll(async () => {
  child = await bundle('test/adapters/storage/durability_child.ts');
});

interface Call {
  name: string;
  /** The name of the file, without its folder; `mark` for the marks. */
  file: string;
}

const CALLS = 'write,writev,pwrite64,pwritev,fdatasync,fsync,msync';

/** The calls on files of the child's folder in the order of their ends, and its marks. */
function callsOf(kind: string): Call[] {
  const folder = tempDir();
  const trace = join(folder, 'trace');
  const args = ['-f', '-y', '-o', trace, '-e', `trace=${CALLS}`, process.execPath, child, kind, folder];
  const { status, stderr } = spawnSync('strace', args, { encoding: 'utf8' });
  expect(status, stderr).toBe(0);
  const begun = new Map<string, Call>();
  const calls: Call[] = [];
  for (const line of readFileSync(trace, 'utf8').split('\n')) {
    const [, thread = ''] = /^(\d+)/.exec(line) ?? [];
    const [, mark] = /write\(1<.*?"(begin|done)\\n"/.exec(line) ?? [];
    const [, name, file] = /^\d+\s+(\w+)\(\d+<([^>]*)>/.exec(line) ?? [];
    if (mark !== undefined) calls.push({ name: mark, file: 'mark' });
    else if (name !== undefined && file?.startsWith(folder)) {
      const call = { name, file: file.slice(folder.length + 1) };
      if (line.includes('<unfinished')) begun.set(thread, call);
      else calls.push(call);
    } else if (line.includes(' resumed>')) {
      const call = begun.get(thread);
      if (call) calls.push(call);
      begun.delete(thread);
    }
  }
  return calls;
}

/** The calls on `file`, and the marks, as text. */
const callsOn = (calls: Call[], file: string): string =>
  calls
    .filter((call) => call.file === file || call.file === 'mark')
    .map(({ name }) => name)
    .join(' ');

describe.runIf(hasStrace())('on disk', () => {
  it('are the rows of a put before it resolves: pages, fdatasync, then the meta page', () => {
    // lmdb writes the meta page, which makes the commit count, with O_DSYNC.
    expect(callsOn(callsOf('put'), 'store.mdb')).toMatch(/begin \w*writev? fdatasync pwrite64 done/);
  });

  it('are both series of the event journal when its sync returns', () => {
    const calls = callsOf('journal');
    expect(callsOn(calls, 'life-1.log')).toMatch(/begin .*write.* fsync done/);
    expect(callsOn(calls, 'statistics-1.log')).toMatch(/begin .*write.* fsync done/);
  });

  it('is a line of the ledger soon after it was written, and before it is reported', () => {
    const calls = callsOn(callsOf('ledger'), 'ledger');
    expect(calls).toMatch(/begin (?:fdatasync )*p?write\w* .*done.* fdatasync/);
    // That of the opening may end as late as that of the line.
    expect(calls.match(/fdatasync/g)).toHaveLength(2);
  });
});
