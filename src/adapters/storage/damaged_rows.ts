// Damaged rows of the store: their bytes are kept in a folder. docs/reference.md "Damaged store".
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { CopiedRow } from './store_copy.ts';
import type { EncodedRow } from './store_tables.ts';

/** The files of rows that were left out are named `<table>.<key>`, the others begin with this. */
const RESTORED = 'restored.';

/** Keeps the bytes of a damaged row in a file of `folder`. Throws the system's error. */
function keepRow(folder: string, { table, key, bytes }: EncodedRow, isRestored: boolean): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${isRestored ? RESTORED : ''}${table}.${encodeURIComponent(key)}`);
  const fd = openSync(path, 'w', 0o600);
  try {
    writeSync(fd, bytes);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return path;
}

/**
 * The `onDamaged` of a store: keeps the row in `folder`, names it in the daemon's log, and returns the bytes
 * of the same row from `copied`, if that has it.
 */
export function setAside(
  folder: string,
  report: (text: string) => void,
  copied: (row: EncodedRow) => CopiedRow | undefined = () => undefined,
): (row: EncodedRow, reason: string) => Uint8Array | boolean {
  return (row, reason) => {
    const copy = copied(row);
    const outcome = copy ? `is now that of the copy of ${copy.at.toISOString()}` : 'was left out';
    const what = `store: the row ${row.key} of ${row.table} is damaged and ${outcome} (${reason})`;
    try {
      report(`${what}: its bytes are in ${keepRow(folder, row, copy !== undefined)}`);
      return copy?.bytes ?? true;
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      report(`${what}: ${error.message}`);
      return copy?.bytes ?? false;
    }
  };
}

/** The rows whose bytes are in `folder`, as `<table>.<key>`. */
export function damagedRows(folder: string): { leftOut: string[]; restored: string[] } {
  let names: string[];
  try {
    names = readdirSync(folder).map(decodeURIComponent);
  } catch {
    names = [];
  }
  return {
    leftOut: names.filter((name) => !name.startsWith(RESTORED)),
    restored: names.filter((name) => name.startsWith(RESTORED)).map((name) => name.slice(RESTORED.length)),
  };
}

/** The services whose rows were left out: what is theirs stays. docs/reference.md "Damaged store". */
export function leftOutServices(folder: string): ReadonlySet<string> {
  const prefix = 'services.';
  const rows = damagedRows(folder).leftOut.filter((row) => row.startsWith(prefix));
  return new Set(rows.map((row) => row.slice(prefix.length)));
}

/** Counts the lost rows of services as left out in `folder`, and names them in the daemon's log. */
export function leaveOutServices(
  folder: string,
  report: (text: string) => void,
): (names: readonly string[]) => void {
  return (names) => {
    if (names.length === 0) return;
    const list = [...new Set(names)].join(', ');
    report(
      `the store lacks these services, whose processes and logs stay until they are registered: ${list}`,
    );
    const known = leftOutServices(folder);
    try {
      for (const key of names)
        if (!known.has(key)) keepRow(folder, { table: 'services', key, bytes: Buffer.alloc(0) }, false);
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      report(`store: \`berth doctor\` does not know what it lacks: ${error.message}`);
    }
  };
}
