// Starts of a task that may not need a run: docs/reference.md "Tasks", "Schedules".
import type { ServiceProtocol, StartReply } from '../../protocol/service.ts';
import type { MessageOf } from '../../runtime/actor.ts';
import type { ServiceEffects } from './effects.ts';
import type { ServiceLifecycle } from './lifecycle.ts';
import type { ServiceMachine } from './machine.ts';
import { completedReply } from './run.ts';
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

  /** Starts it, unless it is a task that has completed with the same content before. */
  async ifChanged(request: StartRequest): Promise<StartReply> {
    const before = this.life.snapshot();
    const completed = before.state.phase === 'idle' && before.end?.completed;
    if (!completed || before.stored?.spec.kind !== 'task') return this.machine.start(request);
    const content = await this.effects.contentOf(before.stored);
    const isSame = content === completed.content && this.life.snapshot().state === before.state;
    if (isSame) return { ...completedReply(this.name, completed.ms), unchanged: true };
    return this.machine.start(request);
  }
}
