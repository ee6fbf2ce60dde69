// The end of a service's last process, as clients see it and as it is stored.
import type { LastEnd } from '../../protocol/service.ts';
import { type Context, type Failure, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { ServiceEffects } from './effects.ts';

/** Why a later daemon, or a change of files, starts the service after its end. */
export type StartReason = 'restart' | 'relaunch' | 'unasked';

/** The last end. A change goes to the views at once, and to the store as soon as there is disk space. */
export class StoredEnd {
  value: LastEnd | null;
  private readonly context: Context;
  private readonly effects: ServiceEffects;
  private readonly onChanged: () => void;

  constructor(context: Context, effects: ServiceEffects, onChanged: () => void) {
    this.context = context;
    this.effects = effects;
    this.onChanged = onChanged;
    this.value = effects.lastEnd();
  }

  /** Records that nothing is left of `run`, whose end has `status` from now on. */
  async settle(run: string, status: LastEnd['status']): Promise<void> {
    const end = this.value;
    if (end?.run !== run || (end.whole && end.status === status)) return;
    await this.replace({ ...end, status, whole: true });
  }

  /** Records that the service is not started again for these reasons. */
  async forgo(...reasons: StartReason[]): Promise<void> {
    if (!this.value || !reasons.some((reason) => this.value?.[reason])) return;
    const end = { ...this.value };
    for (const reason of reasons) delete end[reason];
    await this.replace(end);
  }

  /** Records that a completed task counts as not having run. Fails if that cannot be stored. */
  async undo(): Promise<void> {
    if (this.value?.status !== 'completed') return;
    const { completed: _completed, ...rest } = this.value;
    const end: LastEnd = { ...rest, status: 'stopped', undone: true };
    await this.effects.saveEnd(end);
    this.value = end;
    this.onChanged();
  }

  /**
   * A start has failed, so only the restart that follows it is owed. Without one, another start is owed after
   * a full disk, which passes.
   */
  async startFailed({ code }: Failure, restart: LastEnd['restart'] | null): Promise<void> {
    if (this.value && restart) {
      const { relaunch: _relaunch, ...end } = this.value;
      await this.replace({ ...end, restart });
    } else if (code !== 'storage_full') await this.forgo('relaunch', 'restart');
  }

  /** Resolves when `end` is on disk. Without disk space, resolves at once and writes it later. */
  private async replace(end: LastEnd): Promise<void> {
    this.value = end;
    this.onChanged();
    const again = (): void => {
      if (this.value !== end) return;
      this.replace(end).catch((error: unknown) => this.context.crash(error));
    };
    const later = (): unknown => this.context.clock.after(SERVICE.endRecordRetryMs, again);
    await tolerateFailure(this.effects.saveEnd(end), later);
  }
}
