// Starts of a task that may not need a run: docs/reference.md "Tasks", "Schedules".

import type { ServiceProtocol, StartReply } from '../../protocol/service.ts';
import { isHookOf } from '../../protocol/stacks.ts';
import type { MessageOf } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { ServiceMachine } from './machine.ts';
import { completedReply, type LiveRun } from './run.ts';
import { liveRun } from './state.ts';

type StartRequest = MessageOf<ServiceProtocol, 'start'>;

export class TaskStarts {
  private readonly name: string;
  private readonly life: ServiceLifecycle;
  private readonly machine: ServiceMachine;
  private readonly effects: ServiceEffects;

  constructor(name: string, life: ServiceLifecycle, machine: ServiceMachine, effects: ServiceEffects) {
    this.name = name;
    this.life = life;
    this.machine = machine;
    this.effects = effects;
  }

  /** Starts it for a scheduled time, once. */
  async atSlot(request: StartRequest, slot: number): Promise<StartReply> {
    const { effects, life, name } = this;
    const { end, state } = life.snapshot();
    const run = liveRun(state);
    const had = [effects.slot, run?.metadata.task?.slot, end?.slot];
    if (had.includes(slot))
      return { name, status: life.view().status, pid: run?.pid ?? null, unchanged: true };
    const before = effects.slot;
    effects.slot = slot;
    try {
      return await this.machine.start(request);
    } catch (error) {
      // No run was started for it, so it may be requested again.
      effects.slot = before;
      throw error;
    }
  }

  /**
   * Starts it, unless it is a task that has completed with the same content before. Joins a run under way,
   * and starts it again after one of other content.
   */
  async ifChanged(request: StartRequest): Promise<StartReply> {
    const before = this.life.snapshot();
    const run = liveRun(before.state);
    if (run && request.wait) return this.joinThenStart(run, request);
    const completed = before.state.phase === 'idle' && before.end?.completed;
    if (!completed || before.stored?.spec.kind !== 'task') return this.machine.start(request);
    const isSameContent =
      this.isHook() || (await this.effects.contentOf(before.stored)) === completed.content;
    const isSame = isSameContent && this.life.snapshot().state === before.state;
    if (isSame) return { ...completedReply(this.name, completed.ms), unchanged: true };
    return this.machine.start(request);
  }

  private async joinThenStart(run: LiveRun, request: StartRequest): Promise<StartReply> {
    const isOlder = this.isOlder(run);
    // Joined in this turn: a run that ends meanwhile would be started again.
    const [joined, older] = await Promise.allSettled([this.machine.start(request), isOlder]);
    if (older.status === 'rejected') throw older.reason;
    const { end } = this.life.snapshot();
    const hasFailed = joined.status === 'rejected' && end?.run === run.id && end.status === 'crashed';
    if (older.value && (joined.status === 'fulfilled' || hasFailed)) return this.ifChanged(request);
    if (joined.status === 'rejected') throw joined.reason;
    return joined.value;
  }

  /** Lets a completed task run again. Its leftover processes go on. Fails as the store does. */
  async undo(): Promise<null> {
    const { state } = this.life.snapshot();
    if (state.phase === 'ended') await this.life.record(state);
    await this.life.lastEnd.undo();
    return null;
  }

  /** Whether this is a hook of a stack, which runs once, whatever its content. */
  private isHook(): boolean {
    return isHookOf(this.life.snapshot().stored?.spec.stack, this.name);
  }

  /** Whether a run has other content than the current one; false for hooks. */
  private async isOlder({ metadata: { task } }: LiveRun): Promise<boolean> {
    const { stored } = this.life.snapshot();
    if (!task || !stored || this.isHook()) return false;
    return (await this.effects.contentOf(stored)) !== task.content;
  }
}
