// Whether a store is damaged, found out in another process: lmdb ends its process on some damaged pages.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { entryUrl } from '../../settings/build_paths.ts';
import { openStore } from './store.ts';
import { storeUnusable } from './store_file.ts';

/** The exit code of the check for a damaged store. */
const DAMAGED = 3;
const MEMORY_FAULTS: readonly unknown[] = ['SIGABRT', 'SIGBUS', 'SIGSEGV'];

/** Reads every row of the store in the file `path`. Rejects, or ends the process, when it is damaged. */
export async function readWholeStore(path: string): Promise<void> {
  const store = openStore(path, { mayCreate: false, isChecked: true });
  try {
    for (const _row of store.rows());
  } finally {
    await store.close();
  }
}

/** The program of workers/store_check.ts. */
export function runStoreCheck(path: string): void {
  readWholeStore(path).catch(() => process.exit(DAMAGED));
}

/** Whether the store in the file `path` can be read as a whole. Fails storage_lost if that is unknown. */
export async function isReadableStore(path: string): Promise<boolean> {
  const entry = fileURLToPath(entryUrl('store_check'));
  // In a session of its own, where Ctrl-C does not reach it.
  const child = spawn(process.execPath, [entry, path], { cwd: '/', detached: true, stdio: 'ignore' });
  const [code, signal] = await once(child, 'exit').catch((error: Error) => [error.message]);
  if (code === DAMAGED || MEMORY_FAULTS.includes(signal)) return false;
  if (code !== 0) throw storeUnusable(path, `cannot be checked: ${signal ?? code}`);
  return true;
}
