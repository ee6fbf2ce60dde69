// What workloads saved while they were asleep: docs/reference.md "Savings".

/** Saved resources: pod-seconds, CPU core-seconds and byte-seconds of memory, as requested by the pods. */
export interface SavedAmount {
  podSeconds: number;
  cpuSeconds: number;
  memorySeconds: number;
}

/** What the workloads of a namespace saved in a month. */
export interface StoredSavings extends SavedAmount {
  clusterId: string;
  namespace: string;
  /** In UTC, such as 2026-11. */
  month: string;
  /** The latest time included. Steady time (steady_clock.ts). */
  until: number;
}

/** The resource requests of one pod of a workload. */
export interface PodRequests {
  /** CPU cores. */
  cpu: number;
  /** Bytes. */
  memory: number;
}

/** A sleep whose savings are being counted. */
export interface SleepSpan extends PodRequests {
  /** Counted up to this time. Steady time (steady_clock.ts). */
  since: number;
  /** The number of pods it would have if awake. */
  pods: number;
}

/** Selects savings; null: any. Months are inclusive. */
export interface SavingsSelection {
  clusterId: string | null;
  namespaces: readonly string[] | null;
  from: string | null;
  to: string | null;
}

export const ALL_SAVINGS: SavingsSelection = { clusterId: null, namespaces: null, from: null, to: null };

/** The part of `workloads` that deals with savings. */
export interface SavingsProtocol {
  /** The savings up to now, ordered by month, cluster and namespace. */
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

/** Quotes a cell. A blank before text that begins like a formula keeps spreadsheets from evaluating it. */
function csvCell(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? ` ${value}` : value;
  return /[",\r\n]/.test(safe) || safe !== value ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The rows as CSV (RFC 4180), with a header line. */
export const savingsCsv = (rows: readonly SavingsItem[]): string =>
  [CSV_COLUMNS, ...rows.map((row) => CSV_COLUMNS.map((column) => csvCell(row[column])))]
    .map((cells) => `${cells.join(',')}\r\n`)
    .join('');
