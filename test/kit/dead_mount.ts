// A file system whose server can be made to answer nothing any more.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterThisTest, tempDir } from './actors.ts';

const SCRIPT = fileURLToPath(new URL('dead_mount.py', import.meta.url));

export interface DeadMount {
  path: string;
  /**
   * From now on, calls with its paths do not return until the test has ended, except those of processes with
   * the text `spared` in their command line.
   */
  die(spared?: string): Promise<void>;
}

const line = async (child: ChildProcess): Promise<boolean> =>
  Promise.race([once(child.stdout ?? child, 'data').then(() => true), once(child, 'exit').then(() => false)]);

/** Mounts it in a new folder; undefined where mounting is not allowed. It has the folder `proj` and the file `file`. */
export async function deadMount(): Promise<DeadMount | undefined> {
  const path = join(tempDir(), 'mount');
  mkdirSync(path);
  const child = spawn('python3', [SCRIPT, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  if (!(await line(child))) return undefined;
  afterThisTest(async () => {
    // Its end ends every call.
    const ended = once(child, 'exit');
    child.stdin.end();
    await ended;
    execFileSync('umount', ['-l', path]);
  });
  return {
    path,
    die: async (spared = '') => {
      child.stdin.write(`${spared}\n`);
      await line(child);
    },
  };
}
