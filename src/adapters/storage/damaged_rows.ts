// Damaged rows of the store, set aside: docs/reference.md "Damaged store".
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { EncodedRow } from './store_tables.ts';

/** Keeps the bytes of a damaged row in a file of `folder`. Throws the system's error. */
function keepRow(folder: string, { table, key, bytes }: EncodedRow): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${table}.${encodeURIComponent(key)}`);
  const fd = openSync(path, 'w', 0o600);
  try {
    writeSync(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return path;
}

/** The `onDamaged` of a store: keeps the row in `folder`, and names it in the daemon's log. */
export function setAside(
  folder: string,
  report: (text: string) => void,
): (row: EncodedRow, reason: string) => boolean {
  return (row, reason) => {
    const what = `store: the row ${row.key} of ${row.table} is damaged and was left out (${reason})`;
    try {
      report(`${what}: its bytes are in ${keepRow(folder, row)}`);
      return true;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      report(`${what}: ${error.message}`);
      return false;
    }
  };
}

/** The rows that were set aside in `folder`, as `table.key`. */
export function damagedRows(folder: string): string[] {
  try {
    return readdirSync(folder).map(decodeURIComponent);
  } catch {
    return [];
  }
}
