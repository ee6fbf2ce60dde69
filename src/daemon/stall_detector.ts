// Decides whether a thread hangs. Only checks that the watcher itself was able to make count, so a suspended
// machine or a stopped process counts as one. A thread that merely waits for a processor or a disk does not
// hang, and ending it would gain nothing.
import { type TaskState, taskState } from '../adapters/process/task_state.ts';
import { THREADS } from '../settings/limits.ts';
import type { WatchedHeartbeat } from './heartbeat.ts';

/** `cpuMs`: processor time at the first missed beat. `slept`: consecutive checks that found it asleep. */
interface Silence {
  missed: number;
  cpuMs: number;
  slept: number;
}

/** How a thread hangs, for people. */
export type Stall = string;

type HangLimits = Pick<typeof THREADS.hang, 'missedBeats' | 'maxStepCpuMs'>;

export class StallDetector {
  private readonly heartbeat: Pick<WatchedHeartbeat, 'beats' | 'taskId'>;
  private readonly readTask: (taskId: number) => TaskState | undefined;
  private readonly limits: { readonly [K in keyof HangLimits]: number };
  private beats = 0;
  private silence: Silence | null = null;

  constructor(
    heartbeat: Pick<WatchedHeartbeat, 'beats' | 'taskId'>,
    limits: { readonly [K in keyof HangLimits]: number } = THREADS.hang,
    readTask = taskState,
  ) {
    this.heartbeat = heartbeat;
    this.limits = limits;
    this.readTask = readTask;
  }

  /** Consecutive checks without a beat. */
  get missed(): number {
    return this.silence?.missed ?? 0;
  }

  /** Must be called once per beat interval. Returns how the thread hangs, or null. */
  check(): Stall | null {
    const { beats, taskId } = this.heartbeat;
    // A thread that has not begun has deadlines of its own.
    if (beats !== this.beats || beats === 0) {
      this.beats = beats;
      this.silence = null;
      return null;
    }
    const task = this.readTask(taskId);
    this.silence ??= { missed: 0, cpuMs: task?.cpuMs ?? 0, slept: 0 };
    const { silence } = this;
    silence.missed += 1;
    // A thread without a task has ended, unless the system does not know tasks.
    const isAsleep = task ? task.isAsleep : taskId === 0;
    silence.slept = isAsleep ? silence.slept + 1 : 0;
    if (silence.missed < this.limits.missedBeats) return null;
    const cpuMs = (task?.cpuMs ?? 0) - silence.cpuMs;
    if (cpuMs >= this.limits.maxStepCpuMs)
      return `it computes without a pause (${cpuMs} ms of processor time)`;
    return silence.slept >= this.limits.missedBeats ? 'it waits in the system' : null;
  }
}
