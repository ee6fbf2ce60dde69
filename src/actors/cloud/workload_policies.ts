// Applies policies and annotations to the workloads: docs/reference.md "Policies".
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { NamespaceRow } from '../../adapters/kube/namespaces.ts';
import type { ObservedWorkload, StoredWorkload, WorkloadsProtocol } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type {
  DueSwitch,
  GovernedWorkloadsProtocol,
  PolicyReport,
  PreviewRow,
  SleepAnnotations,
  StoredPolicy,
  SwitchRecord,
  WorkloadPolicy,
} from '../../protocol/policies.ts';
import type { SleepReceipt } from '../../protocol/receipts.ts';
import type { Clock, Context, Handlers, ReplyOf } from '../../runtime/actor.ts';
import { CLOUD, POLICY } from '../../settings/cloud_limits.ts';
import { isLeftAlone, leftReason } from './managers.ts';
import {
  type Decision,
  decide,
  differences,
  dueSwitch,
  graceEnd,
  inOrder,
  isUndecided,
  isWokenSince,
  keptAwakeUntil,
  type SelectingPolicy,
  type WantedPhase,
  wantedPhase,
} from './policy_decision.ts';
import { nextSwitches } from './sleep_timeline.ts';
import { Timelines } from './timelines.ts';
import type { WakeOrders } from './wake_order.ts';
import { subjectOf } from './workload_events.ts';
import type { WorkloadTable } from './workload_table.ts';

export interface WorkloadPoliciesOwner {
  /** The name of this Berth. */
  readonly self: string;
  readonly clock: Clock;
  readonly table: Pick<
    WorkloadTable,
    'rows' | 'rowsOf' | 'get' | 'update' | 'shown' | 'showAgain' | 'forgetSwitches'
  >;
  readonly orders: Pick<WakeOrders, 'keepsAwake'>;
  /** A schedule was added, changed or removed. */
  onScheduleChange(): void;
}

/** What has been learned about a cluster since the start. Its switches wait for both fields. */
interface Heard {
  isListed: boolean;
  /** The annotations of the namespaces that have any; null: not read yet. */
  namespaces: ReadonlyMap<string, SleepAnnotations> | null;
}

/** Work on many workloads yields after this many ms. */
const SLICE_MS = 5;
/**
 * Up to this many changed policies are matched to find the affected workloads; above it, all are shown again.
 */
const MAX_ASKED = 4;

const OPPOSITE = { asleep: 'awake', awake: 'asleep' } as const;

/** The receipt of a workload that a schedule has put to sleep; null: it is awake, or something else did. */
const scheduleReceiptOf = ({ replicas, receipt }: ObservedWorkload): SleepReceipt | null =>
  replicas === 0 && receipt?.by === 'schedule' ? receipt : null;

/** A record that begins anew counts from another number, so that no switch has the key of an earlier one. */
const nextCount = ({ switched, scaledAt }: StoredWorkload): number =>
  (switched?.count ?? Math.floor(scaledAt)) + 1;

export class WorkloadPolicies {
  private readonly owner: WorkloadPoliciesOwner;
  private policies: readonly SelectingPolicy[] = [];
  /**
   * Caches the first policy that selects a workload, by its record, which is replaced whenever it changes.
   */
  private firstPolicies = new WeakMap<StoredWorkload, StoredPolicy | null>();
  private readonly heard = new Map<string, Heard>();
  private readonly timelines = new Timelines();

  constructor(owner: WorkloadPoliciesOwner) {
    this.owner = owner;
  }

  /**
   * Replaces all policies. `areNew`: they are not as they were. Throws invalid_spec for an invalid selector.
   */
  setPolicies(policies: readonly StoredPolicy[], areNew: boolean): void {
    const before = this.policies;
    this.policies = inOrder(policies);
    this.firstPolicies = new WeakMap();
    const changed = differences(before, this.policies);
    const isConcerned = (row: StoredWorkload): boolean => changed.some((policy) => policy.has(row));
    const all = this.owner.table.rows();
    const rows = changed.length > MAX_ASKED ? all : all.filter(isConcerned);
    // As with every new setting, what was left alone is tried again.
    for (const { id, undone } of areNew ? rows : [])
      if (undone > 0) this.owner.table.update(id, (row) => ({ ...row, undone: 0 }));
    this.owner.table.showAgain(rows.map(({ id }) => id));
  }

  /** Sets the namespaces of a cluster; null: the account may not list them. */
  setNamespaces(clusterId: string, rows: readonly NamespaceRow[] | null): void {
    const before = this.heardOf(clusterId);
    const namespaces = new Map(rows?.flatMap(({ name, sleep }) => (sleep ? [[name, sleep] as const] : [])));
    this.heard.set(clusterId, { ...before, namespaces });
    const isSame = JSON.stringify([...(before.namespaces ?? [])]) === JSON.stringify([...namespaces]);
    if (isSame && before.namespaces !== null) return;
    const table = this.owner.table;
    if (!isSame) table.showAgain(table.rowsOf(clusterId).map(({ id }) => id));
    this.owner.onScheduleChange();
  }

  /** The workloads of a cluster were listed, or a watch has resumed from its position. */
  onListed(clusterId: string): void {
    const heard = this.heardOf(clusterId);
    if (heard.isListed) return;
    this.heard.set(clusterId, { ...heard, isListed: true });
    this.owner.onScheduleChange();
  }

  forgetCluster(clusterId: string): void {
    this.heard.delete(clusterId);
  }

  onRowChange(before: StoredWorkload | undefined, after: StoredWorkload | undefined): void {
    const said = (row: StoredWorkload | undefined): string =>
      JSON.stringify([row?.seen.sleep ?? null, row?.seen.labels]);
    const isNew =
      !before && after && (after.seen.sleep !== null || after.switched !== null || this.policies.length > 0);
    if (isNew || (before && after && said(before) !== said(after))) this.owner.onScheduleChange();
  }

  decisionOf(row: StoredWorkload): Decision {
    const namespace = this.heard.get(row.clusterId)?.namespaces?.get(row.seen.namespace) ?? null;
    return decide(row, namespace, this.firstPolicy(row));
  }

  /** The idle timeout of a workload, with its source; null: none, or none at present. */
  idleOf(row: StoredWorkload): Decision['idle'] {
    const { idle, awakeUntil } = this.decisionOf(row);
    return awakeUntil !== null && this.owner.clock.now() < awakeUntil ? null : idle;
  }

  /**
   * Which of these workloads have their auto-sleep decided by something other than their own setting, and by
   * what.
   */
  deciders(ids: readonly string[]): Pick<ReplyOf<WorkloadsProtocol, 'idle'>, 'policies'> {
    const rows = ids.flatMap((id) => this.owner.table.get(id) ?? []);
    const decided = rows.flatMap((row) => {
      const who = this.idleOf(row)?.who ?? 'auto-sleep';
      return who === 'auto-sleep' ? [] : [[row.id, { who, subject: subjectOf(row) }] as const];
    });
    return decided.length > 0 ? { policies: Object.fromEntries(decided) } : {};
  }

  /** What decides on a workload's sleep; null: only its own setting. */
  shown(row: StoredWorkload): WorkloadPolicy | null {
    const decision = this.decisionOf(row);
    // Most workloads, of which a start shows every one.
    if (isUndecided(decision)) return null;
    const { excludedBy, idle, schedule, awakeUntil } = decision;
    const isLeft = isLeftAlone(row) && (idle !== null || schedule !== null);
    const faults = [...decision.faults, ...(isLeft ? [leftReason(row)] : [])];
    const isOwn = idle === null || idle.who === 'auto-sleep';
    if (!schedule && isOwn && excludedBy === null && awakeUntil === null && faults.length === 0) return null;
    const [next] = this.shownSwitches(row, 1);
    return {
      schedule: schedule?.who ?? null,
      idle: idle?.who ?? null,
      idleMinutes: idle?.minutes ?? null,
      ...{ excludedBy, awakeUntil, faults },
      nextSwitch: next ?? null,
    };
  }

  /** Whether its schedule wants a switch of `row` to `to` that has not been made. */
  isDue(row: StoredWorkload, to: SwitchRecord['to']): boolean {
    return dueSwitch(row.switched, this.wantedOf(this.decisionOf(row)), this.owner.clock.now()) === to;
  }

  /** Someone wants them to be `to`: the opposite switch counts as made and undone if it is due. */
  onWish(ids: Iterable<string>, to: SwitchRecord['to']): void {
    for (const id of ids) {
      const row = this.owner.table.get(id);
      if (row && this.isDue(row, OPPOSITE[to])) this.keep(row, this.wantedOf(this.decisionOf(row)));
    }
  }

  /**
   * The switches that are due, and the time of the next one (epoch milliseconds); null: there is no schedule.
   * Switches that need no change are recorded at once.
   */
  async due(): Promise<{ due: DueSwitch[]; nextAt: number | null }> {
    const due: DueSwitch[] = [];
    const outdated: string[] = [];
    let nextAt: number | null = null;
    const ready = [...this.heard.keys()].filter((clusterId) => this.isReady(clusterId));
    const isOver = (row: StoredWorkload): boolean =>
      dueSwitch(row.switched, this.wantedOf(this.decisionOf(row)), this.owner.clock.now()) !== null;
    for (const clusterId of ready) this.owner.table.forgetSwitches(clusterId, isOver);
    const rows = ready.flatMap((clusterId) => this.owner.table.rowsOf(clusterId));
    await this.eachRow(rows, (seen) => {
      // A change that matters here since the rows were taken causes another look.
      if (!this.isReady(seen.clusterId)) return;
      if (seen.switched === null && isUndecided(this.decisionOf(seen))) return;
      const row = this.owner.table.get(seen.id);
      if (!row) return;
      const one = this.dueOf(row);
      if (one) due.push(one);
      else if (this.isShownPast(row)) outdated.push(row.id);
      const until = this.switchesOf(row, 1)[0]?.at;
      if (until !== undefined) nextAt = Math.min(nextAt ?? until, until);
    });
    this.owner.table.showAgain(outdated);
    return { due, nextAt };
  }

  /** A switch was made, or must not be tried again; null instead of `to`: it was withdrawn. */
  onSwitched(id: string, to: SwitchRecord['to'] | null): void {
    const row = this.owner.table.get(id);
    if (!row) return;
    const wanted = this.wantedOf(this.decisionOf(row));
    // If the schedule wants something else by now, that becomes due next.
    const made = { to: to ?? 'awake', at: 0, schedule: wanted?.schedule ?? '' };
    // A withdrawn one becomes due again, with another key, if it is wanted after all.
    if (to === null) this.keep(row, row.switched ?? made);
    else this.keep(row, wanted?.to === to ? wanted : made);
  }

  async reports(): Promise<PolicyReport[]> {
    const reports = new Map(
      this.policies.map((one) => [one, { policy: one.policy, selected: 0, decided: 0 }]),
    );
    await this.eachRow(this.owner.table.rows(), (row) => {
      for (const [one, report] of reports) if (one.has(row)) this.count(row, report);
    });
    return [...reports.values()];
  }

  async report(name: string): Promise<PolicyReport> {
    const { policy, has } = this.named(name);
    const report = { policy, selected: 0, decided: 0 };
    await this.eachRow(this.owner.table.rows(), (row) => {
      if (has(row)) this.count(row, report);
    });
    return report;
  }

  /** The next switches of the workloads that a policy selects, at most CLOUD.maxBulk of them. */
  async preview(name: string): Promise<{ report: PolicyReport; rows: PreviewRow[] }> {
    const { policy, has } = this.named(name);
    const report = { policy, selected: 0, decided: 0 };
    const rows: PreviewRow[] = [];
    await this.eachRow(this.owner.table.rows(), (row) => {
      if (!has(row)) return;
      this.count(row, report);
      if (rows.length < CLOUD.maxBulk) rows.push(this.previewRow(row));
    });
    return { report, rows };
  }

  private previewRow(row: StoredWorkload): PreviewRow {
    return {
      ...{ id: row.id, clusterId: row.clusterId, state: row.state },
      ...{ kind: row.seen.kind, namespace: row.seen.namespace, name: row.seen.name },
      policy: this.shown(row),
      switches: this.shownSwitches(row, POLICY.previewed),
    };
  }

  private named(name: string): SelectingPolicy {
    const found = this.policies.find(({ policy }) => policy.name === name);
    if (!found) throw fail('unknown_policy', `there is no policy ${name}`);
    return found;
  }

  /** Counts a workload that the policy of `report` selects. */
  private count(row: StoredWorkload, report: PolicyReport): void {
    const { schedule, idle } = this.decisionOf(row);
    const who = `policy:${report.policy.name}`;
    report.selected += 1;
    if (schedule?.who === who || idle?.who === who) report.decided += 1;
  }

  /** Calls `look` for each of `rows`, yielding to the event loop in between. */
  private async eachRow(rows: readonly StoredWorkload[], look: (row: StoredWorkload) => void): Promise<void> {
    const { clock } = this.owner;
    let startedAt = clock.monotonic();
    for (const row of rows) {
      look(row);
      if (clock.monotonic() - startedAt < SLICE_MS) continue;
      await nextTurn();
      startedAt = clock.monotonic();
    }
  }

  private firstPolicy(row: StoredWorkload): StoredPolicy | null {
    if (this.policies.length === 0) return null;
    const known = this.firstPolicies.get(row);
    if (known !== undefined) return known;
    const first = this.policies.find(({ has }) => has(row))?.policy ?? null;
    this.firstPolicies.set(row, first);
    return first;
  }

  private heardOf(clusterId: string): Heard {
    return this.heard.get(clusterId) ?? { isListed: false, namespaces: null };
  }

  /** Whether its workloads and the annotations of its namespaces are known to be current. */
  private isReady(clusterId: string): boolean {
    const { isListed, namespaces } = this.heardOf(clusterId);
    return isListed && namespaces !== null;
  }

  private dueOf(row: StoredWorkload): DueSwitch | null {
    const { id, clusterId, seen, switched } = row;
    const decision = this.decisionOf(row);
    const wanted = this.wantedOf(decision);
    const now = this.owner.clock.now();
    const to = dueSwitch(switched, wanted, now);
    if (to === null || (wanted && graceEnd(row, wanted.at, now) !== null)) return null;
    const receipt = scheduleReceiptOf(seen);
    const isWoken = receipt !== null && receipt.from !== switched?.sleptBy;
    const isLeftAwake = wanted !== null && (isWokenSince(row, wanted.at) || this.owner.orders.keepsAwake(id));
    const isNeeded = to === 'asleep' ? seen.replicas > 0 && !isLeftAwake : isWoken;
    if (!isNeeded || isLeftAlone(row)) {
      this.keep(row, wanted);
      return null;
    }
    const who = decision.schedule?.who ?? decision.excludedBy ?? 'berth';
    const key = `switch ${id} ${seen.uid} ${nextCount(row)} ${to}`;
    return { id, clusterId, subject: subjectOf(row), to, key, who };
  }

  /** Whether the next switch that clients see is over, without a switch. */
  private isShownPast({ id }: StoredWorkload): boolean {
    const shown = this.owner.table.shown(id)?.policy?.nextSwitch;
    return !!shown && shown.at <= this.owner.clock.now();
  }

  private keep(before: StoredWorkload, wanted: WantedPhase | null): void {
    const by = wanted?.to === 'asleep' ? scheduleReceiptOf(before.seen)?.from : null;
    const sleptBy = by && by !== this.owner.self ? { sleptBy: by } : null;
    const switched = wanted && { ...wanted, count: nextCount(before), ...sleptBy };
    this.owner.table.update(before.id, (row) => ({ ...row, switched }));
  }

  private wantedOf({ schedule, awakeUntil }: Decision): WantedPhase | null {
    if (!schedule) return null;
    const found = this.timelines.of(schedule);
    return found && wantedPhase(found.timeline, found.key, awakeUntil, this.owner.clock.now());
  }

  private switchesOf(row: StoredWorkload, count: number): PreviewRow['switches'] {
    const { schedule, awakeUntil } = this.decisionOf(row);
    const found = schedule && this.timelines.of(schedule);
    if (!found) return [];
    const now = this.owner.clock.now();
    return nextSwitches(found.timeline, now, keptAwakeUntil(row, found.timeline, awakeUntil, now), count);
  }

  /** The next switches that will be made. */
  private shownSwitches(row: StoredWorkload, count: number): PreviewRow['switches'] {
    return isLeftAlone(row) ? [] : this.switchesOf(row, count);
  }
}

/** The handlers of the policy messages of `workloads`. */
export const governedHandlers = (
  context: Pick<Context, 'replyLater'>,
  policies: WorkloadPolicies,
): Omit<Handlers<GovernedWorkloadsProtocol>, 'placeOf'> => ({
  setPolicies: (message) => {
    policies.setPolicies(message.policies, message.areNew);
    return null;
  },
  dueSwitches: () => context.replyLater(policies.due()),
  switched: ({ id, to }) => {
    policies.onSwitched(id, to);
    return null;
  },
  policyReports: () => context.replyLater(policies.reports()),
  policyReport: ({ name }) => context.replyLater(policies.report(name)),
  previewPolicy: ({ name }) => context.replyLater(policies.preview(name)),
});
