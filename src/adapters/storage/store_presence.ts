// Whether the store of a state directory is there and can be one, by its file alone, without lmdb:
// docs/reference.md "Damaged store".
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isFailure } from '../../runtime/actor.ts';
import type { StatePaths } from '../../settings/state_paths.ts';
import { restorableRows, storeCopyTime } from './store_copy.ts';
import { checkStoreFile, fileBytes, isTruncated, storeUnusable } from './store_file.ts';
import type { EncodedRow } from './store_tables.ts';

/** The command that restores the copy. */
const RESTORE = '`berth daemon --restore-store`';

/** What may be used again of the copy; undefined without one. Throws storage_lost when it is damaged. */
export function rowsOfCopy({ storeCopy }: StatePaths): EncodedRow[] | undefined {
  if (!existsSync(storeCopy)) return undefined;
  try {
    return restorableRows(storeCopy);
  } catch {
    throw storeUnusable(storeCopy, `is damaged; once it is removed, ${RESTORE} begins with an empty store`);
  }
}

function wayBack(paths: StatePaths): string {
  try {
    const time = rowsOfCopy(paths) && storeCopyTime(paths.storeCopy);
    return time
      ? `${RESTORE} goes back to the copy of ${time.toISOString()} (${paths.storeCopy})`
      : `there is no copy of it; ${RESTORE} begins with an empty store`;
  } catch (error) {
    if (isFailure(error)) return `its copy does not help: ${error.message}`;
    throw error;
  }
}

/** Adds the way to recover to a storage_lost of `work`. */
export function withWayBack<T>(paths: StatePaths, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isFailure(error) || error.code !== 'storage_lost') throw error;
    throw storeUnusable(paths.store, `${error.message.replace(`${paths.store}: `, '')}: ${wayBack(paths)}`);
  }
}

/** Evidence that a store existed: its copy, events or logs. */
function tracesOf({ storeCopy, events, logs }: StatePaths): string | undefined {
  const hasEvents = fileBytesIn(events).some((bytes) => bytes > 0);
  return existsSync(storeCopy) ? storeCopy : hasEvents ? events : namesIn(logs).length > 0 ? logs : undefined;
}

const namesIn = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);
const fileBytesIn = (folder: string): number[] =>
  namesIn(folder)
    .filter((name) => name.endsWith('.log'))
    .map((name) => statSync(join(folder, name)).size);

/**
 * Checks the store as far as its file shows without lmdb, which would write to it. Throws storage_lost, and
 * names the way to recover, when it is damaged, or is missing although there was one.
 */
export function checkDaemonStore(paths: StatePaths): void {
  withWayBack(paths, () => {
    const bytes = fileBytes(paths.store);
    if (bytes === undefined || bytes === 0) {
      const trace = tracesOf(paths);
      const what = bytes === undefined ? 'is missing' : 'is empty';
      if (trace !== undefined) throw storeUnusable(paths.store, `${what}, although ${trace} is there`);
    } else if (existsSync(paths.storeCopy) && isTruncated(paths.store)) {
      throw storeUnusable(paths.store, 'is truncated');
    }
    checkStoreFile(paths.store);
  });
}
