// Connections that wait for their target. It is woken once for all of them, and they are reset when waiting
// is pointless.
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { HeldConnections } from './held_connections.ts';
import type { Session } from './session.ts';

/** Why connections should stop waiting. `since`: monotonic time; after `graceMs` they are reset. */
export interface Trouble {
  reason: string;
  since: number;
  graceMs: number;
}

/** The waiting clients, as their target sees them. */
export interface Waiters {
  /** Whether nobody is waiting any more. */
  readonly areGone: boolean;
  /** Whether a client is still waiting after port scans have had time to disconnect. */
  areStillThere(): Promise<boolean>;
}

/** What connections wait for. */
export interface WakeTarget {
  /** Why nobody should keep waiting for it; null: no reason is known. */
  readonly trouble: Trouble | null;
  /** The reason to give to those whose wait has timed out, when there is no trouble. */
  readonly timeoutReason: string;
  /**
   * Wakes it if it is asleep. Resolves with why waiting is pointless; null: it is not; undefined: unknown.
   * Rejects only for defects.
   */
  ensureAwake(waiters: Waiters): Promise<Omit<Trouble, 'since'> | null | undefined>;
}

export interface PendingConnectionsOptions {
  clock: Clock;
  held: HeldConnections;
  target: WakeTarget;
  /** Receives errors other than Failures. */
  onDefect(error: unknown): void;
}

/** The waiting sessions of one listener. Owned by its SessionRouter, which calls `review` once a second. */
export class PendingConnections implements Waiters {
  private readonly options: PendingConnectionsOptions;
  private readonly pending = new Set<Session>();
  private trouble: Trouble | null = null;
  private isWaking = false;
  private wakeAttemptedAt = Number.NEGATIVE_INFINITY;

  constructor(options: PendingConnectionsOptions) {
    this.options = options;
  }

  get sessions(): ReadonlySet<Session> {
    return this.pending;
  }

  get areGone(): boolean {
    return this.pending.size === 0;
  }

  async areStillThere(): Promise<boolean> {
    const { clock } = this.options;
    // By then a port scan has disconnected. The sockets get one more turn of the loop to report it.
    await new Promise((resolve) => clock.after(TETHER.probeDelayMs, () => setImmediate(resolve)));
    return [...this.pending].some(({ isClientGone }) => !isClientGone);
  }

  /**
   * Makes the session wait, and wakes the target if necessary. Resets the session when too many are waiting.
   */
  add(session: Session): void {
    if (this.pending.has(session)) return;
    const { held } = this.options;
    if (held.isCrowded) {
      session.reset(`${held.count} connections are waiting: no more are held`);
      return;
    }
    // A refusal may be out of date. The wait for a cluster that does not answer continues.
    if (this.areGone && this.trouble?.graceMs === 0) this.trouble = null;
    this.pending.add(session);
    held.add(1);
    void this.ensureAwake();
  }

  /** The session no longer waits. Harmless if it was not waiting. */
  remove(session: Session): void {
    if (this.pending.delete(session)) this.options.held.add(-1);
  }

  /** Resets the sessions whose wait is pointless or too long, and checks the target for the others. */
  review(): void {
    const { clock, target } = this.options;
    const now = clock.monotonic();
    const trouble = target.trouble ?? this.trouble;
    for (const session of this.pending) {
      const inTrouble = trouble ? now - Math.max(session.acceptedAt, trouble.since) : 0;
      if (trouble && inTrouble >= trouble.graceMs) session.reset(trouble.reason);
      else if (now - session.acceptedAt >= TETHER.podWaitTimeoutMs)
        session.reset(trouble?.reason ?? target.timeoutReason);
    }
    if (this.pending.size > 0 && now - this.wakeAttemptedAt >= TETHER.wakeCheckIntervalMs)
      void this.ensureAwake();
  }

  /** The path to the target has changed, so trouble with the old one no longer counts. */
  renew(): void {
    this.trouble = null;
    if (this.pending.size > 0) void this.ensureAwake();
  }

  /** Never rejects. */
  private async ensureAwake(): Promise<void> {
    if (this.isWaking) return;
    const { clock, target, onDefect } = this.options;
    this.isWaking = true;
    this.wakeAttemptedAt = clock.monotonic();
    try {
      const trouble = await target.ensureAwake(this);
      if (trouble !== undefined) this.setTrouble(trouble);
    } catch (error) {
      onDefect(error);
    } finally {
      this.isWaking = false;
    }
  }

  private setTrouble(trouble: Omit<Trouble, 'since'> | null): void {
    const since =
      trouble && this.trouble?.graceMs === trouble.graceMs
        ? this.trouble.since
        : this.options.clock.monotonic();
    this.trouble = trouble && { ...trouble, since };
    if (trouble) this.review();
  }
}
