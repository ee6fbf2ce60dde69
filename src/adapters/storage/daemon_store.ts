// The store of a daemon: docs/reference.md "Damaged store". Opened only once the state directory belongs to
// this daemon.
import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { ServiceSpec, StoredService } from '../../protocol/service.ts';
import { isFailure } from '../../runtime/actor.ts';
import type { StatePaths } from '../../settings/state_paths.ts';
import { setAside } from './damaged_rows.ts';
import { type FieldTypes, hasFields } from './field_types.ts';
import { decodeRow, encodeRow } from './row_codec.ts';
import { openStore, STORE_FORMAT, type StoreOptions } from './store.ts';
import { readStoreCopy, StoreCopier, storeCopyTime, writeStoreCopy } from './store_copy.ts';
import {
  checkStoreFile,
  type FileLoss,
  fileBytes,
  isDiskFull,
  isTruncated,
  storeUnusable,
} from './store_file.ts';
import type { PagesInFlight } from './store_room.ts';
import { type EncodedRow, type Store, TABLES } from './store_tables.ts';

export interface DaemonStoreOptions {
  paths: StatePaths;
  inFlight: PagesInFlight;
  /** Writes a line to the daemon's log. */
  report: (text: string) => void;
}

export interface FirstStoreOptions extends DaemonStoreOptions {
  /** Restores the copy, or starts with an empty store if there is no copy. */
  restore: boolean;
  /** Whether this is the only thread that has the store open, so that its file may be replaced. */
  isAlone: boolean;
  /** Seals the environment of a service of an earlier format. Fails key_unusable. */
  seal: (stored: StoredService) => StoredService;
}

/** The command that restores the copy. */
const RESTORE = '`berth daemon --restore-store`';

const optionsOf = ({ paths, inFlight, report }: DaemonStoreOptions): StoreOptions => ({
  inFlight,
  onDamaged: setAside(paths.damaged, report),
});

/** Opens, on a further thread, the store that `openDaemonStore` has opened. Throws as `openStore` does. */
export const openSharedStore = (options: DaemonStoreOptions): Store =>
  openStore(options.paths.store, { ...optionsOf(options), mayCreate: false });

/**
 * Opens the store of the state directory and keeps its copy up to date. Converts a store in an earlier
 * format. Rejects with storage_lost, and names the way to recover, when the store is damaged, or is missing
 * although there was one.
 */
export async function openDaemonStore(options: FirstStoreOptions): Promise<Store> {
  const { paths, report, restore, isAlone } = options;
  if (restore) await restoreStore(options);
  checkPresence(paths);
  let copier: StoreCopier | undefined;
  const onLost = (loss: FileLoss): void => {
    report(`${paths.store} was ${loss}: changes are refused until the daemon is restarted`);
    // Everything acknowledged can still be read at this point, except from a truncated file.
    void (loss === 'truncated' ? copier?.close() : copier?.copy());
  };
  const open = () => openStore(paths.store, { ...optionsOf(options), isChecked: true, onLost: once(onLost) });
  const found = withWayBack(paths, open);
  const store = isAlone && found.format < STORE_FORMAT ? await renew(found, options, open) : found;
  copier = new StoreCopier(store, paths.storeCopy, report);
  return { ...bound(store), close: () => copier.close().then(() => store.close()) };
}

function once<T>(work: (given: T) => void): (given: T) => void {
  let isDone = false;
  return (given) => {
    if (!isDone) work(given);
    isDone = true;
  };
}

const bound = (store: Store): Store => ({
  format: store.format,
  table: (name) => store.table(name),
  parts: (table, prefix) => store.parts(table, prefix),
  rows: () => store.rows(),
  load: (rows) => store.load(rows),
  version: () => store.version(),
  close: () => store.close(),
});

/** The rows of the copy; undefined without one. Throws storage_lost when it is damaged. */
function rowsOfCopy({ storeCopy }: StatePaths): EncodedRow[] | undefined {
  if (!existsSync(storeCopy)) return undefined;
  try {
    return readStoreCopy(storeCopy);
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

function withWayBack<T>(paths: StatePaths, work: () => T): T {
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
 * Whether the daemon could open its store, as far as its file shows without lmdb, which would write to it.
 * Throws storage_lost as `openDaemonStore` does.
 */
export function checkDaemonStore(paths: StatePaths): void {
  checkPresence(paths);
  withWayBack(paths, () => checkStoreFile(paths.store));
}

function checkPresence(paths: StatePaths): void {
  withWayBack(paths, () => {
    const bytes = fileBytes(paths.store);
    if (bytes === undefined || bytes === 0) {
      const trace = tracesOf(paths);
      const what = bytes === undefined ? 'is missing' : 'is empty';
      if (trace !== undefined) throw storeUnusable(paths.store, `${what}, although ${trace} is there`);
    } else if (existsSync(paths.storeCopy) && isTruncated(paths.store)) {
      throw storeUnusable(paths.store, 'is truncated');
    }
  });
}

/** Waits until renames in a folder are on disk. */
function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Atomically replaces the store file with one that contains `rows`. Nothing has the file open. */
async function replaceStore(path: string, rows: readonly EncodedRow[]): Promise<void> {
  const fresh = `${path}.new`;
  for (const file of [fresh, `${fresh}-lock`]) rmSync(file, { force: true });
  try {
    const store = openStore(fresh);
    await store.load(rows).finally(() => store.close());
    renameSync(fresh, path);
    syncFolder(dirname(path));
  } finally {
    for (const file of [fresh, `${fresh}-lock`, `${path}-lock`]) rmSync(file, { force: true });
  }
}

async function restoreStore({ paths, report }: FirstStoreOptions): Promise<void> {
  const rows = rowsOfCopy(paths);
  const time = rows && storeCopyTime(paths.storeCopy);
  const old = `${paths.store}.old`;
  const isReplaced = existsSync(paths.store);
  if (isReplaced) renameSync(paths.store, old);
  await replaceStore(paths.store, rows ?? []);
  const from = time ? `the store is the copy of ${time.toISOString()} again` : 'the store is a new one';
  report(isReplaced ? `${from}; what was there is now ${old}` : from);
}

const STORED_FIELDS: FieldTypes<Pick<StoredService, 'spec' | 'revision'>> = {
  spec: 'object',
  revision: 'number',
};
const SPEC_FIELDS: FieldTypes<Pick<ServiceSpec, 'name' | 'port' | 'cmd' | 'cwd' | 'env' | 'dependsOn'>> = {
  name: 'string',
  port: 'number',
  cmd: 'string',
  cwd: 'string',
  env: 'object',
  dependsOn: 'object',
};

const isService = (row: unknown): row is StoredService =>
  hasFields(row, STORED_FIELDS) && hasFields(row.spec, SPEC_FIELDS);

/**
 * The row in the current format. Empty when the row is invalid: earlier formats have no checksum to show it.
 */
function renewedRow(old: EncodedRow, { paths, report, seal }: FirstStoreOptions): EncodedRow[] {
  const { table, key } = old;
  const value = decodeRow(old.bytes);
  if (table === 'services' && !isService(value)) {
    setAside(paths.damaged, report)(old, 'fields are missing');
    return [];
  }
  const row = table === 'services' && isService(value) ? seal(value) : value;
  return [{ table, key, bytes: encodeRow(row, TABLES[table].isText) }];
}

/** Converts a store in an earlier format after copying it. On a full disk the store is used unconverted. */
async function renew(old: Store, options: FirstStoreOptions, open: () => Store): Promise<Store> {
  const { paths, report } = options;
  const rows = [...old.rows()];
  try {
    await writeStoreCopy(paths.storeCopy, rows);
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    report(`store: it keeps its earlier format for now: ${error.message}`);
    return old;
  }
  await old.close();
  try {
    const renewed = rows.flatMap((row) => renewedRow(row, options));
    await replaceStore(paths.store, renewed);
  } catch (error) {
    if (!isFailure(error)) throw error;
    report(`store: it keeps its earlier format for now: ${error.message}`);
  }
  return open();
}
