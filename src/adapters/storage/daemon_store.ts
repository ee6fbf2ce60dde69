// The store of a daemon: docs/reference.md "Damaged store". Opened only once the state directory belongs to
// this daemon.
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { COMMAND_ID_PATTERN } from '../../protocol/commands.ts';
import { SERVICE_NAME_PATTERN } from '../../protocol/names.ts';
import type { ServiceSpec, StoredService } from '../../protocol/service.ts';
import { isFailure } from '../../runtime/actor.ts';
import type { StatePaths } from '../../settings/state_paths.ts';
import { leaveOutServices, setAside } from './damaged_rows.ts';
import { type FieldTypes, hasFields } from './field_types.ts';
import { decodeRow, encodeRow } from './row_codec.ts';
import { openStore, STORE_FORMAT, type StoreOptions } from './store.ts';
import { copiedRows, StoreCopier, storeCopyTime, writeStoreCopy } from './store_copy.ts';
import { type FileLoss, fileBytes, isDiskFull, storeUnusable } from './store_file.ts';
import { checkDaemonStore, rowsOfCopy, withWayBack } from './store_presence.ts';
import type { PagesInFlight } from './store_room.ts';
import { type EncodedRow, type Store, TABLES } from './store_tables.ts';

export interface DaemonStoreOptions {
  paths: StatePaths;
  inFlight: PagesInFlight;
  /** Writes a line to the daemon's log. */
  report: (text: string) => void;
}

export interface FirstStoreOptions extends DaemonStoreOptions {
  /**
   * Restores the copy, or starts with an empty store if there is no copy. `isReadable`: whether the store in
   * a file can be read as a whole (store_check.ts); such a store is not replaced. null: no restore.
   */
  restore: { isReadable: (path: string) => Promise<boolean> } | null;
  /** Whether this is the only thread that has the store open, so that its file may be replaced. */
  isAlone: boolean;
  /** Seals the environment of a service of an earlier format. Fails key_unusable. */
  seal: (stored: StoredService) => StoredService;
}

const optionsOf = ({ paths, inFlight, report }: DaemonStoreOptions): StoreOptions => ({
  inFlight,
  onDamaged: setAside(paths.damaged, report, copiedRows(paths.storeCopy)),
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
  if (restore) await restoreStore(options, restore.isReadable);
  checkDaemonStore(paths);
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
  loss: () => store.loss(),
  close: () => store.close(),
});

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

/** The services that have logs, and no row among `rows`. */
function lostServices({ logs }: StatePaths, rows: readonly EncodedRow[]): string[] {
  const known = new Set(rows.flatMap(({ table, key }) => (table === 'services' ? key : [])));
  const names = existsSync(logs) ? readdirSync(logs) : [];
  return names.filter(
    (name) => SERVICE_NAME_PATTERN.test(name) && !COMMAND_ID_PATTERN.test(name) && !known.has(name),
  );
}

/** `path`, or, where that is taken, the first free one of `path.2` and so on. */
function unusedName(path: string): string {
  let name = path;
  for (let n = 2; existsSync(name); n += 1) name = `${path}.${n}`;
  return name;
}

/** Whether there is a store that its file alone does not show to be damaged. */
function looksIntact(paths: StatePaths): boolean {
  try {
    checkDaemonStore(paths);
    return (fileBytes(paths.store) ?? 0) > 0;
  } catch (error) {
    if (isFailure(error)) return false;
    throw error;
  }
}

/** Replaces the store by its copy. Fails storage_lost when the store is undamaged, or the copy damaged. */
async function restoreStore(
  { paths, report }: FirstStoreOptions,
  isReadable: (path: string) => Promise<boolean>,
): Promise<void> {
  if (looksIntact(paths) && (await isReadable(paths.store)))
    throw storeUnusable(
      paths.store,
      'is undamaged, so --restore-store leaves it: start the daemon without this option. ' +
        'To go back to the copy all the same, move that file away first',
    );
  const rows = rowsOfCopy(paths);
  const time = rows && storeCopyTime(paths.storeCopy);
  const old = unusedName(`${paths.store}.old`);
  const isReplaced = existsSync(paths.store);
  if (isReplaced) renameSync(paths.store, old);
  await replaceStore(paths.store, rows ?? []);
  const from = time ? `the store is the copy of ${time.toISOString()} again` : 'the store is a new one';
  report(isReplaced ? `${from}; what was there is now ${old}` : from);
  leaveOutServices(paths.damaged, report)(lostServices(paths, rows ?? []));
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
