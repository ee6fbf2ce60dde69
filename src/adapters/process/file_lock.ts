// A lock between processes and threads: a file locked by one of them. The system unlocks it when the holder
// ends, however it ends.
import { closeSync, constants } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { openRegularFile } from '../../settings/state_files.ts';
import { loadLibc } from './libc.ts';

const RETRY_MS = 20;

/**
 * Runs `work` while holding the lock file at `path`, which is created if necessary. Rejects with the error
 * from `late` when another holds it for longer than `timeoutMs`. If the system has no file locks, no one is
 * kept out.
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
