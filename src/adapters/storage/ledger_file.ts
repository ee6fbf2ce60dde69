// The file of the process host's ledger as it is read: by a host that begins, and by a daemon that wants to know whether a host
// would find anything in it. One line of JSON per change, the whole row each time; the newest line of a run holds.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { LedgerRun } from '../../protocol/host.ts';
import { type FieldTypes, hasFields } from './field_types.ts';

export interface LedgerRow extends Omit<LedgerRun, 'stopping'> {
  /** The boot of the machine in which it was started. */
  boot: string;
  /** The stop under way, or the one that ended it; `at` is epoch milliseconds. */
  stop: { signal: string; graceMs: number; at: number } | null;
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

/** Init is no run of ours. To `kill`, 0 and what is below 2 mean groups or everybody: no number of a row may be that. */
const isPid = (pid: number): boolean => Number.isSafeInteger(pid) && pid > 1;

/** A damaged number is that of no process yet: a run without one is looked for by its mark. */
const withValidPid = (row: LedgerRow): LedgerRow =>
  isPid(row.pid) ? row : { ...row, pid: 0, startTicks: 0 };

/** A line: `{"put": row}` or `{"drop": run}`. */
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

/** Where the host with this folder has its ledger. */
export const ledgerFile = (folder: string): string => join(folder, 'ledger');

/** The rows of a ledger that nobody has open; none where there is no file. Throws when it cannot be read. */
export function readLedger(path: string): Map<string, LedgerRow> {
  const rows = new Map<string, LedgerRow>();
  let text = '';
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    // None yet. Any other trouble must not be taken for an empty ledger: what runs would be forgotten.
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  for (const line of text.split('\n')) if (line) applyLine(line, rows);
  return rows;
}
