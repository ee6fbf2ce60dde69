// The restart of one service that is under way, the wakes that continue through it, and the autostart that
// waits for an earlier stop.
import { fail } from '../../protocol/errors.ts';
import { despiteHostLoss } from '../../protocol/host_loss.ts';
import type { ServiceProtocol, StartReply } from '../../protocol/service.ts';
import { type Clock, isFailure, type MessageOf, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { ServiceMachine } from './machine.ts';
import type { MemberOverride } from './member_override.ts';
import type { StartedBy } from './run.ts';
import { liveRun } from './state.ts';

interface Restart {
  /** Settles once the start has begun or been given up. */
  stopped: Promise<unknown>;
  reply: Promise<StartReply>;
  /** `client` if one of those that have asked for it is. */
  by: StartedBy;
}

type Again = Pick<MessageOf<ServiceProtocol, 'start'>, 'timeoutMs'> & { join: boolean; by: StartedBy };

export class Restarts {
  private readonly machine: ServiceMachine;
  /** The restart whose stop is under way. */
  private current: Restart | null = null;
  /** The last restart; null: a stop or a sleep came after it. */
  private last: Restart | null = null;
  /** The monotonic time of a client's last stop or sleep; null: a client has started it since. */
  private stoppedAt: number | null = null;
  /** Resolves when a later daemon will know of a client's last stop or sleep. */
  kept: Promise<void> = Promise.resolve();
  /** Autostart waits for the end of a stop. */
  private isAutostartWaiting = false;
  private readonly clock: Clock;
  private readonly override: MemberOverride;

  constructor(machine: ServiceMachine, clock: Clock, override: MemberOverride) {
    this.machine = machine;
    this.clock = clock;
    this.override = override;
  }

  get isStopping(): boolean {
    return this.current !== null;
  }

  /** Whether the stop under way is followed by a start. */
  get startFollows(): boolean {
    return this.isStopping || (this.isAutostartWaiting && this.stoppedAt === null);
  }

  /**
   * For a stop or a sleep, which overrides a restart under way: unless its group asks, also the start or
   * restart of the group.
   */
  cancel(by: 'client' | 'group' | 'shutdown'): void {
    this.current = null;
    this.last = null;
    if (by !== 'group') this.stoppedAt = this.clock.monotonic();
    if (by === 'client') this.kept = this.override.stopped();
  }

  /**
   * Whether a client has stopped the service or put it to sleep since the restart of its group was asked for
   * at `askedAt`, or by an earlier daemon.
   */
  isOverridden(askedAt: number): boolean {
    return (this.stoppedAt !== null && this.stoppedAt > askedAt) || this.override.isStopped;
  }

  /** Before a start. Fails start_failed if a client's stop has overridden it since `askedAt`. */
  allowStart(askedAt: number | undefined): void {
    if (askedAt !== undefined && this.stoppedAt !== null && this.stoppedAt > askedAt) throw this.cancelled();
    this.stoppedAt = null;
    if (askedAt === undefined) this.override.started();
  }

  /** Fails as the start after a stop is sure to fail, before a running service is stopped for it. */
  refuseFutile(): void {
    const { effects, life } = this.machine;
    const { state, stored } = life.snapshot();
    const failure = stored && liveRun(state) ? effects.startFailure(stored) : null;
    if (failure) throw failure;
  }

  /**
   * Stops the service, then starts it. A second restart joins the first until the first one's start begins,
   * and may shorten its stop. Fails as `refuseFutile` does.
   */
  restart(
    { timeoutMs, graceMs }: MessageOf<ServiceProtocol, 'restart'>,
    by: StartedBy = 'client',
  ): Promise<StartReply> {
    if (this.current) {
      if (by === 'client') this.current.by = by;
      this.machine.shortenStop(graceMs);
      return this.current.reply;
    }
    this.refuseFutile();
    this.stoppedAt = null;
    this.override.started();
    let isRepeated = false;
    const stopping = despiteHostLoss(this.clock, async () => {
      // What a client has started since must not be stopped.
      if (isRepeated && this.current !== restart) throw this.cancelled();
      isRepeated = true;
      return this.machine.stop(graceMs);
    });
    const reply = stopping.then(
      () => {
        if (this.current !== restart) throw this.cancelled();
        this.current = null;
        return this.start(timeoutMs, (leftMs) =>
          this.startAgain({ timeoutMs: leftMs ?? timeoutMs, join: leftMs !== null, by: restart.by }),
        );
      },
      (error: unknown) => {
        if (this.current === restart) this.current = null;
        throw error;
      },
    );
    const stopped = tolerateFailure<unknown, null>(stopping, () => null);
    const restart: Restart = { stopped, reply, by };
    this.current = restart;
    this.last = restart;
    return reply;
  }

  /**
   * A start: `attempt` is repeated if a restart ends what it waits for. It then joins what the restart has
   * begun, in the rest of the time. `timeoutMs` null: the service's own.
   */
  start(
    timeoutMs: number | null,
    attempt: (leftMs: number | null) => Promise<StartReply>,
  ): Promise<StartReply> {
    const { kind, startTimeout } = this.machine.life.registered().spec;
    const ms = timeoutMs ?? (kind === 'task' ? SERVICE.taskWaitMs : startTimeout);
    const until = this.clock.monotonic() + ms;
    return this.through(attempt, () => {
      const leftMs = Math.ceil(until - this.clock.monotonic());
      if (leftMs > 0) return leftMs;
      const { name } = this.machine;
      throw fail('ready_timeout', `${name} is still starting after ${ms} ms; the start continues`);
    });
  }

  /** A wake, which also joins a restart under way. It ends with its connection. */
  wake(attempt: () => Promise<StartReply>): Promise<StartReply> {
    const joined = async (): Promise<StartReply> => {
      const { current } = this;
      await current?.stopped;
      if (current && !this.last) throw this.cancelled();
      return attempt();
    };
    return this.through(joined, () => null);
  }

  /**
   * `begin`, after the stop that an earlier daemon began. Fails start_failed if a client stops the service or
   * puts it to sleep meanwhile.
   */
  async autostart(begin: () => Promise<StartReply>): Promise<StartReply> {
    const { state } = this.machine.life.snapshot();
    if (state.phase !== 'stopping') return begin();
    this.isAutostartWaiting = true;
    await tolerateFailure(state.stop.promise, () => null);
    this.isAutostartWaiting = false;
    if (this.stoppedAt !== null) throw this.cancelled();
    return begin();
  }

  /** Calls `attempt` until no restart ends what it waits for. `left` is called before each repetition. */
  private async through(
    attempt: (leftMs: number | null) => Promise<StartReply>,
    left: () => number | null,
  ): Promise<StartReply> {
    for (let leftMs: number | null = null; ; leftMs = left()) {
      const { last } = this;
      try {
        return await attempt(leftMs);
      } catch (error) {
        if (!isFailure(error) || !this.last || this.last === last) throw error;
        await this.current?.stopped;
      }
    }
  }

  /** The start of a restart. `join`: another restart has begun it. */
  private startAgain({ join, ...given }: Again): Promise<StartReply> {
    const { last } = this;
    let attempts = 0;
    return despiteHostLoss(this.clock, async () => {
      attempts += 1;
      if (attempts > 1 && this.last !== last) throw this.cancelled();
      return this.machine.start({ ...given, wait: true, join: join || attempts > 1 });
    });
  }

  private cancelled() {
    return fail('start_failed', `${this.machine.name} was stopped or put to sleep meanwhile`);
  }
}
