// Counts what workloads save while they sleep: docs/reference.md "Savings". A sleep is counted when it ends,
// in the same commit as the record that ends it; until then the record says from when to count. So nothing is
// written while a workload sleeps, and no end of the daemon counts anything twice or not at all.
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { SavedAmount, SavingsSelection, SleepSpan, StoredSavings } from '../../protocol/savings.ts';
import { SAVINGS } from '../../settings/cloud_limits.ts';
import { currentReceiptOf, savedCountOf } from './workload_receipts.ts';

/** A part of a sleep, for one workload. */
export interface EndedSpan {
  clusterId: string;
  namespace: string;
  span: SleepSpan;
  /** Steady time. */
  until: number;
}

/** What is known about the time of a change. Steady time. */
export interface Sight {
  /** When the cluster was last seen in the state before the change; minus infinity: never. */
  seenAt: number;
  now: number;
  /** Sleeps in its namespace have been counted up to this time. */
  countedTo: number;
}

const clamp = (at: number, least: number, most: number): number => Math.min(Math.max(at, least), most);

const isWatched = ({ seenAt, now }: Sight): boolean => now - seenAt <= SAVINGS.watchedMs;

/** When a counted sleep ended, as far as known. */
function endOf(span: SleepSpan, after: StoredWorkload | undefined, sight: Sight): number {
  if (isWatched(sight)) return sight.now;
  const wake = after?.seen.replicas === 0 ? null : after?.seen.wakeReceipt;
  const isOfThis = wake && wake.at >= span.since && wake.at <= sight.now;
  return clamp(isOfThis ? wake.at : sight.seenAt, span.since, sight.now);
}

/**
 * When the sleep shown by `after` began. Its receipt is not trusted: anyone who may annotate can write one,
 * and a recreated workload may carry an old one.
 */
function beginningOf(before: StoredWorkload | undefined, after: StoredWorkload, sight: Sight): number {
  const { seenAt, now, countedTo } = sight;
  const least = isWatched(sight) ? now : Math.max(now - SAVINGS.maxPastMs, seenAt, before ? 0 : countedTo);
  return clamp(currentReceiptOf(after)?.at ?? now, Math.min(least, now), now);
}

const isSameSleep = (before: StoredWorkload, after: StoredWorkload): boolean =>
  before.seen.uid === after.seen.uid && before.seen.receipt?.at === after.seen.receipt?.at;

/**
 * How to count `after` from now on (null: not at all), and the finished part of `before`. Only sleeps made by
 * some Berth count, because their pod count is known. `after` undefined: the workload is gone.
 */
export function countSleep(
  before: StoredWorkload | undefined,
  after: StoredWorkload | undefined,
  sight: Sight,
): { span: SleepSpan | null; ended: EndedSpan | null } {
  const open = before?.span ?? null;
  const pods = after ? savedCountOf(after) : null;
  const isOn = before !== undefined && after !== undefined && isSameSleep(before, after);
  const { cpu, memory } = after?.seen.requests ?? { cpu: 0, memory: 0 };
  if (open && isOn && open.pods === pods && open.cpu === cpu && open.memory === memory)
    return { span: open, ended: null };
  const until = open && endOf(open, after, sight);
  const ended =
    open && before && until !== null
      ? { clusterId: before.clusterId, namespace: before.seen.namespace, span: open, until }
      : null;
  if (after === undefined || pods === null) return { span: null, ended };
  const since = isOn && until !== null ? until : beginningOf(before, after, sight);
  return { span: { since: Math.max(since, until ?? since), pods, cpu, memory }, ended };
}

const monthOf = (at: number): string => new Date(at).toISOString().slice(0, 7);

/** The savings of a part of a sleep, month by month. */
export function savingsOf({ clusterId, namespace, span, until }: EndedSpan): StoredSavings[] {
  const months: StoredSavings[] = [];
  for (let from = span.since; from < until; ) {
    const date = new Date(from);
    const to = Math.min(until, Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1));
    const podSeconds = (span.pods * (to - from)) / 1_000;
    const amount = { podSeconds, cpuSeconds: podSeconds * span.cpu, memorySeconds: podSeconds * span.memory };
    months.push({ clusterId, namespace, month: monthOf(from), until: to, ...amount });
    from = to;
  }
  return months;
}

const keyOf = ({ clusterId, namespace, month }: StoredSavings): string =>
  `${month}/${clusterId}/${namespace}`;

const sumOf = (row: StoredSavings, more: StoredSavings): StoredSavings => ({
  ...row,
  until: Math.max(row.until, more.until),
  podSeconds: row.podSeconds + more.podSeconds,
  cpuSeconds: row.cpuSeconds + more.cpuSeconds,
  memorySeconds: row.memorySeconds + more.memorySeconds,
});

/** Totals by cluster, namespace and month. */
export class SavingsTotals {
  private readonly rows = new Map<string, StoredSavings>();
  /** By cluster and namespace. */
  private readonly ends = new Map<string, number>();

  constructor(rows: Iterable<StoredSavings> = []) {
    for (const row of rows) this.add(row);
  }

  /** Returns the new sum. */
  add(row: StoredSavings): StoredSavings {
    const key = keyOf(row);
    const before = this.rows.get(key);
    const sum = before ? sumOf(before, row) : row;
    this.rows.set(key, sum);
    const place = `${row.clusterId}/${row.namespace}`;
    this.ends.set(place, Math.max(this.ends.get(place) ?? 0, row.until));
    return sum;
  }

  /** The time up to which savings of a namespace have been counted. */
  countedTo(clusterId: string, namespace: string): number {
    return this.ends.get(`${clusterId}/${namespace}`) ?? 0;
  }

  /** The totals with `added`; this object stays unchanged. */
  with(added: readonly StoredSavings[]): StoredSavings[] {
    const sums = new SavingsTotals();
    for (const row of added) {
      const key = keyOf(row);
      if (!sums.rows.has(key)) sums.rows.set(key, this.rows.get(key) ?? { ...row, ...NOTHING });
      sums.add(row);
    }
    return [...sums.rows.values()];
  }

  /** Replaces the totals of these rows. */
  replace(sums: readonly StoredSavings[]): void {
    for (const row of sums) this.rows.set(keyOf(row), row);
  }

  forgetCluster(clusterId: string): void {
    for (const [key, row] of this.rows) if (row.clusterId === clusterId) this.rows.delete(key);
    for (const key of this.ends.keys()) if (key.startsWith(`${clusterId}/`)) this.ends.delete(key);
  }

  /** Ordered by month, cluster and namespace. */
  all(): StoredSavings[] {
    return [...this.rows.keys()].sort().flatMap((key) => this.rows.get(key) ?? []);
  }
}

const NOTHING: SavedAmount = { podSeconds: 0, cpuSeconds: 0, memorySeconds: 0 };

const isSelected =
  ({ clusterId, namespaces, from, to }: SavingsSelection) =>
  (row: StoredSavings): boolean =>
    (clusterId === null || row.clusterId === clusterId) &&
    (namespaces === null || namespaces.includes(row.namespace)) &&
    (from === null || row.month >= from) &&
    (to === null || row.month <= to);

/**
 * The savings up to `now`: `ended`, everything already counted, and the part of the current sleeps in `rows`.
 */
export function savingsUntil(
  ended: SavingsTotals,
  rows: readonly StoredWorkload[],
  now: number,
  selection: SavingsSelection,
): StoredSavings[] {
  const sums = new SavingsTotals(ended.all());
  for (const { clusterId, seen, span } of rows)
    if (span)
      for (const part of savingsOf({ clusterId, namespace: seen.namespace, span, until: now }))
        sums.add(part);
  return sums.all().filter(isSelected(selection));
}
