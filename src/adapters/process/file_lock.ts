// A lock between processes and threads: a file that one of them has locked. The system unlocks it when its
// holder ends, whatever ended it.
import { closeSync, constants } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { openRegularFile } from '../../settings/state_files.ts';
import { loadLibc } from './libc.ts';

const RETRY_MS = 20;

/**
 * Does `work` while nobody else has the lock file at `path`, which is made. Rejects with the error of `late`
 * when another has it for longer than `timeoutMs`. Where the system offers no locks, nobody is kept out.
 */
export async function withFileLock<T>(
  path: string,
  { timeoutMs, late }: { timeoutMs: number; late: () => Error },
  work: () => Promise<T>,
): Promise<T> {
  const libc = await loadLibc().catch(() => null);
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  const fd = openRegularFile(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const begun = performance.now();
    while (libc && !libc.lock(fd)) {
      if (performance.now() - begun > timeoutMs) throw late();
      await pause(RETRY_MS);
    }
    return await work();
  } finally {
    closeSync(fd);
  }
}
