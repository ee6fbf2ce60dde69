// Reads the ledger file of the process host, for a new host, and for a daemon that checks whether a host
// would find anything in it. The file has one line of JSON per change with the whole row; the newest line of
// a run counts.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LedgerRun } from '../../protocol/host.ts';
import { ledgerLinkOf } from '../../settings/state_paths.ts';
import { type FieldTypes, hasFields } from './field_types.ts';

/** Where and when a run was started. */
export interface RunOrigin {
  /** The boot id of the machine. */
  boot: string;
  /** The id of the state directory (`stateDirId`); absent in rows of earlier versions. */
  stateId?: string;
}

export interface LedgerRow extends Omit<LedgerRun, 'stopping' | 'stopGraceMs'>, RunOrigin {
  /**
   * The stop under way, or the one that ended the run; `at` is epoch milliseconds. `isCommand`: its command
   * runs, and no signal was sent yet. `isSent` false: none was sent, for another reason; absent: it was.
   * `killAt`: a later stop has shortened it, to this time in epoch milliseconds.
   */
  stop: {
    signal: string;
    graceMs: number;
    at: number;
    isCommand?: true;
    isSent?: false;
    killAt?: number;
  } | null;
}

const LEDGER_FIELDS: FieldTypes<LedgerRow> = {
  run: 'string',
  service: 'string',
  boot: 'string',
  pid: 'number',
  startTicks: 'number',
  startedAt: 'number',
  port: 'number',
  pty: 'boolean',
  memo: 'object',
  stop: 'object',
  end: 'object',
};

const isLedgerRow = (value: unknown): value is LedgerRow =>
  hasFields(value, LEDGER_FIELDS) && value.memo !== null;

/**
 * For `kill`, 0 and negative numbers mean groups or all processes, and 1 is init: no row may contain them.
 */
const isPid = (pid: number): boolean => Number.isSafeInteger(pid) && pid > 1;

/** A row with a damaged pid has none: its process is found by its mark. */
const withValidPid = (row: LedgerRow): LedgerRow =>
  isPid(row.pid) ? row : { ...row, pid: 0, startTicks: 0 };

/** Applies a line `{"put": row}` or `{"drop": run}`. Skips a torn or foreign line. */
function applyLine(line: string, rows: Map<string, LedgerRow>): void {
  let entry: { put?: unknown; drop?: unknown } | null;
  try {
    entry = JSON.parse(line);
  } catch {
    return;
  }
  if (isLedgerRow(entry?.put)) rows.set(entry.put.run, withValidPid(entry.put));
  else if (typeof entry?.drop === 'string') rows.delete(entry.drop);
}

/** The path of the ledger in the folder of a host. */
export const ledgerFile = (folder: string): string => join(folder, 'ledger');

/** The path of the second link to the ledger at `path`. */
export const ledgerLink = (path: string): string => ledgerLinkOf(dirname(path));

/** The text of a file, null without one. No other error may count as an empty ledger. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
    throw error;
  }
}

/**
 * The rows of a ledger that no process has open, by run; none without a file. Throws when the file cannot be
 * read, because the running processes would be forgotten.
 */
export function readLedger(path: string): Map<string, LedgerRow> {
  const rows = new Map<string, LedgerRow>();
  const text = textOf(path) ?? textOf(ledgerLink(path)) ?? '';
  for (const line of text.split('\n')) if (line) applyLine(line, rows);
  return rows;
}
