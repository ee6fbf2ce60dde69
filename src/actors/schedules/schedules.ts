// State: the schedules of all tasks, each with the last time that is settled. Rebuilt from: the store.
//
// A time is stored as requested before its task is started, and the task's run records which time it is for.
// So a time requested when the daemon was killed is requested again, and runs only once.
import type { Timetable } from '../../adapters/cron.ts';
import type { Store } from '../../adapters/storage/store_tables.ts';
import { serviceAddress } from '../../protocol/address.ts';
import type { ScheduleSpec, SchedulesProtocol, StoredSchedule } from '../../protocol/schedules.ts';
import { actor, type Context, isFailure, tolerateFailure } from '../../runtime/actor.ts';
import { SCHEDULE } from '../../settings/limits.ts';
import { loadPart } from '../../settings/load_part.ts';

export interface SchedulesConfig {
  store: Pick<Store, 'table'>;
}

interface Entry {
  readonly name: string;
  readonly spec: ScheduleSpec;
  readonly times: Timetable;
  stored: StoredSchedule;
  /** The slot that `next` follows; null: none is known. */
  after: number | null;
  /** Epoch milliseconds; null: no further time. */
  next: number | null;
  isBusy: boolean;
}

class Schedules {
  private readonly context: Context;
  private readonly store: SchedulesConfig['store'];
  private readonly entries = new Map<string, Entry>();
  private stopTimer = (): void => {};

  constructor(context: Context, { store }: SchedulesConfig) {
    this.context = context;
    this.store = store;
    context.scope.defer(() => this.stopTimer());
  }

  /** Loads the registered schedules. Costs nothing without a schedule. */
  async begin(): Promise<void> {
    for (const [name, { spec }] of this.store.table('services').all())
      if (spec.schedule) await this.change(name, spec.schedule);
  }

  async change(name: string, schedule: ScheduleSpec | null): Promise<null> {
    const rows = this.store.table('schedules');
    if (schedule === null) {
      if (this.entries.delete(name)) await tolerateFailure(rows.remove(name), () => undefined);
      this.plan();
      return null;
    }
    // Loaded with the first schedule.
    const { timetableOf } = await loadPart(() => import('../../adapters/cron.ts'));
    const text = JSON.stringify(schedule);
    const before = this.entries.get(name)?.stored ?? rows.get(name);
    const isNew = before?.schedule !== text;
    const slot = this.context.clock.now();
    const stored = isNew ? { schedule: text, slot, asked: null, skipped: 0 } : before;
    const times = timetableOf(schedule);
    const entry = { name, spec: schedule, times, stored, after: null, next: null, isBusy: false };
    if (!isNew && this.entries.has(name)) return null;
    this.entries.set(name, entry);
    if (isNew) await this.save(entry, stored);
    this.plan();
    return null;
  }

  /** Runs what is due, and sets the timer for what comes next. */
  private plan(): void {
    const { clock } = this.context;
    this.stopTimer();
    const now = clock.now();
    for (const entry of this.entries.values()) if (!entry.isBusy) this.look(entry, now);
    const times = [...this.entries.values()].flatMap(({ isBusy, next }) => (isBusy ? [] : (next ?? [])));
    if (times.length === 0) return;
    // Timers do not notice that the clock is set or that the machine sleeps.
    const ms = Math.min(SCHEDULE.lookMs, Math.max(0, Math.min(...times) - now));
    this.stopTimer = clock.after(ms, () => this.plan());
  }

  private look(entry: Entry, now: number): void {
    const { spec, stored, times } = entry;
    // The clock was set back by more than a correction: the times until the old one are times again.
    if (stored.slot - now > SCHEDULE.setBackMs) entry.stored = { ...stored, slot: now, asked: null };
    const { slot, asked } = entry.stored;
    // Times are slow to find in a time zone, and most looks come long before the next one.
    const next = entry.after === slot ? entry.next : times.next(slot);
    const due = next !== null && next <= now ? times.lastDue(slot, now) : null;
    if (due !== null && (spec.catchUp || due === asked || now - due <= SCHEDULE.lateMs)) {
      this.inBackground(this.run(entry, due));
      return;
    }
    if (due !== null) this.inBackground(this.save(entry, { ...entry.stored, slot: due, asked: null }));
    entry.after = due ?? slot;
    this.show(entry, due === null ? next : times.next(due));
  }

  /** Runs the task for the time `due`. */
  private async run(entry: Entry, due: number): Promise<void> {
    entry.isBusy = true;
    const before = entry.stored;
    const isKnown = await this.save(entry, { ...before, asked: due });
    const outcome = isKnown ? await this.start(entry.name, due) : 'unknown';
    if (outcome !== 'unknown') {
      const skipped = before.skipped + (outcome === 'skipped' ? 1 : 0);
      await this.save(entry, { ...before, slot: due, asked: null, skipped });
    }
    entry.isBusy = false;
    if (this.entries.get(entry.name) !== entry) return;
    if (outcome !== 'unknown') return this.plan();
    // The disk is full, or the process host does not answer.
    this.stopTimer();
    this.stopTimer = this.context.clock.after(SCHEDULE.retryMs, () => this.plan());
  }

  private async start(name: string, slot: number): Promise<'done' | 'skipped' | 'unknown'> {
    const service = this.context.ref(serviceAddress(name));
    try {
      await service.ask('start', { timeoutMs: null, wait: false, slot }, { deadlineMs: SCHEDULE.startMs });
      return 'done';
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (SKIPPED.has(error.code)) return 'skipped';
      return UNANSWERED.has(error.code) ? 'unknown' : 'done';
    }
  }

  /** Resolves with whether it is on disk. */
  private async save(entry: Entry, stored: StoredSchedule): Promise<boolean> {
    entry.stored = stored;
    if (this.entries.get(entry.name) !== entry) return true;
    const written = this.store.table('schedules').put(entry.name, stored);
    return tolerateFailure(
      written.then(() => true),
      () => false,
    );
  }

  private show(entry: Entry, next: number | null): void {
    entry.next = next;
    const { name, stored } = entry;
    this.context
      .ref('views')
      .tell('schedules', { rows: [{ name, nextRunAt: next, skipped: stored.skipped }] });
  }

  private inBackground(work: Promise<unknown>): void {
    work.catch((error: unknown) => this.context.crash(error));
  }
}

/** It runs still, or the hook `create` of its stack has not completed. */
const SKIPPED: ReadonlySet<string> = new Set(['already_running', 'hook_refused']);

/** Failures that say nothing about the run, so it is requested again. */
const UNANSWERED: ReadonlySet<string> = new Set([
  'daemon_busy',
  'overloaded',
  'deadline',
  'crashed',
  'gone',
  'storage_full',
]);

/** Runs tasks on their schedules: docs/reference.md "Schedules". */
export const schedulesActor = actor<SchedulesProtocol, SchedulesConfig>(
  'schedules',
  async (context, config) => {
    const schedules = new Schedules(context, config);
    await schedules.begin();
    return { changed: ({ name, schedule }) => context.replyLater(schedules.change(name, schedule)) };
  },
);
