// What workloads have saved while they slept: docs/reference.md "Savings".

/** What was not used. Seconds of pods, of CPU cores, and of bytes of memory, as the pods request them. */
export interface SavedAmount {
  podSeconds: number;
  cpuSeconds: number;
  memorySeconds: number;
}

/** What the workloads of a namespace have saved in a month. */
export interface StoredSavings extends SavedAmount {
  clusterId: string;
  namespace: string;
  /** In UTC, such as 2026-11. */
  month: string;
  /** The latest time that is in it. Steady time (steady_clock.ts). */
  until: number;
}

/** What one pod of a workload requests. */
export interface PodRequests {
  /** CPU cores. */
  cpu: number;
  /** Bytes. */
  memory: number;
}

/** A sleep that is being counted. */
export interface SleepSpan extends PodRequests {
  /** Up to here it is counted. Steady time (steady_clock.ts). */
  since: number;
  /** The pods that it would have. */
  pods: number;
}

/** Savings by what they are of; null: anything. Months are inclusive. */
export interface SavingsSelection {
  clusterId: string | null;
  namespaces: readonly string[] | null;
  from: string | null;
  to: string | null;
}

export const ALL_SAVINGS: SavingsSelection = { clusterId: null, namespaces: null, from: null, to: null };

/** What `workloads` knows of savings. */
export interface SavingsProtocol {
  /** Until now, ordered by month, cluster and namespace. */
  savings(message: SavingsSelection): StoredSavings[];
}

const MONTH = /^\d{4}-(?:0[1-9]|1[0-2])$/;

/** Whether `text` is a month such as 2026-11. */
export const isMonth = (text: string): boolean => MONTH.test(text);

/** Savings as clients see them. */
export interface SavingsItem {
  month: string;
  cluster_id: string;
  cluster: string;
  namespace: string;
  pod_seconds: number;
  cpu_request_core_seconds: number;
  memory_request_byte_seconds: number;
}

const CSV_COLUMNS = [
  'month',
  'cluster_id',
  'cluster',
  'namespace',
  'pod_seconds',
  'cpu_request_core_seconds',
  'memory_request_byte_seconds',
] as const satisfies readonly (keyof SavingsItem)[];

/** Programs for tables run what begins like a formula: a blank before it makes it text. */
function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? ` ${value}` : value;
  return /[",\r\n]/.test(safe) || safe !== value ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The rows as CSV (RFC 4180), with a line of titles. */
export const savingsCsv = (rows: readonly SavingsItem[]): string =>
  [CSV_COLUMNS, ...rows.map((row) => CSV_COLUMNS.map((column) => csvCell(row[column])))]
    .map((cells) => `${cells.join(',')}\r\n`)
    .join('');
