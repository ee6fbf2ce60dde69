// docs/reference.md "Tasks": the hash over the files of a task.
import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hashInputs } from '../../src/adapters/input_hash.ts';
import { tempDir } from '../kit/actors.ts';

function folder(): string {
  const cwd = tempDir();
  mkdirSync(join(cwd, 'migrations', 'deep'), { recursive: true });
  writeFileSync(join(cwd, 'migrations', '1.sql'), 'one');
  writeFileSync(join(cwd, 'migrations', 'deep', '2.sql'), 'two');
  writeFileSync(join(cwd, 'other.txt'), 'x');
  return cwd;
}

describe('the hash of inputs', () => {
  it('changes only with the content and the names of matching files', () => {
    const cwd = folder();
    const hash = () => hashInputs({ cwd, globs: ['migrations/**/*.sql'] });
    const first = hash();
    expect(first).toMatch(/^[0-9a-f]{64}$/);
    writeFileSync(join(cwd, 'other.txt'), 'y');
    utimesSync(join(cwd, 'migrations', '1.sql'), 1, 1);
    expect(hash()).toBe(first);
    writeFileSync(join(cwd, 'migrations', '1.sql'), 'One');
    const changed = hash();
    expect(changed).not.toBe(first);
    writeFileSync(join(cwd, 'migrations', '3.sql'), '');
    const added = hash();
    expect(new Set([first, changed, added]).size).toBe(3);
    rmSync(join(cwd, 'migrations', '3.sql'));
    expect(hash()).toBe(changed);
  });

  it('includes the files of a folder, and nothing for a glob without matches', () => {
    const cwd = folder();
    expect(hashInputs({ cwd, globs: ['migrations'] })).toBe(hashInputs({ cwd, globs: ['migrations/**'] }));
    expect(hashInputs({ cwd, globs: ['no/such/*'] })).toBe(hashInputs({ cwd, globs: [] }));
  });

  it('reads no pipes and follows no links, including a link to itself', () => {
    const cwd = folder();
    execFileSync('mkfifo', [join(cwd, 'migrations', 'pipe.sql')]);
    symlinkSync('/dev/zero', join(cwd, 'migrations', 'device.sql'));
    symlinkSync('.', join(cwd, 'migrations', 'loop'));
    const globs = ['**'];
    expect(hashInputs({ cwd, globs })).toBe(hashInputs({ cwd, globs }));
  });

  it('includes files and folders whose names are not UTF-8', () => {
    const cwd = folder();
    const hash = () => hashInputs({ cwd, globs: ['odd/**/*.txt'] });
    const inOdd = (name: string) => Buffer.concat([Buffer.from(`${cwd}/odd/`), Buffer.from(name, 'latin1')]);
    mkdirSync(inOdd('f\xff'), { recursive: true });
    const hashes = [hash()];
    for (const content of ['1', '2'])
      for (const name of ['\xe9.txt', 'f\xff/a.txt']) {
        writeFileSync(inOdd(name), content);
        hashes.push(hash());
      }
    renameSync(inOdd('f\xff'), inOdd('f\xfe'));
    hashes.push(hash());
    expect(new Set(hashes).size).toBe(6);
  });

  it('takes several slashes for one', () => {
    const cwd = folder();
    const hash = (glob: string) => hashInputs({ cwd, globs: [glob] });
    const hashed = hash('migrations/deep/*');
    expect(hashed).not.toBe(hash('no/such/*'));
    expect(hash('migrations//deep///*')).toBe(hashed);
    expect(hash('.//migrations/deep/*')).toBe(hashed);
    expect(hash(`${cwd}//migrations//deep/*`)).toBe(hashed);
    expect(hash('../../..//nothing')).toBe(hash('no/such/*'));
  });

  it.skipIf(process.platform !== 'linux')('names a file that cannot be read, and why', () => {
    const cwd = `/proc/${process.pid}`;
    expect(() => hashInputs({ cwd, globs: ['mem'] })).toThrow(`its input ${cwd}/mem cannot be read: EIO`);
  });
});
