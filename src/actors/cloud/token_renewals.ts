// When the tokens of clusters are renewed: docs/reference.md "Cluster token renewal".

import { renewalPauseMs, renewalTime } from '../../protocol/cluster_account.ts';
import type { StoredCluster } from '../../protocol/clusters.ts';
import type { Clock } from '../../runtime/actor.ts';
import { atTime } from '../../runtime/clock.ts';
import { CLOUD } from '../../settings/cloud_limits.ts';

const { checkMs, retry } = CLOUD.tokenRenewal;

export class TokenRenewals {
  private readonly clock: Clock;
  /** Resolves with whether the token was renewed. */
  private readonly renew: (id: string) => Promise<boolean>;
  private readonly timers = new Map<string, () => void>();
  private readonly onDefect: (error: unknown) => void;

  constructor(clock: Clock, renew: (id: string) => Promise<boolean>, onDefect: (error: unknown) => void) {
    this.clock = clock;
    this.renew = renew;
    this.onDefect = onDefect;
  }

  /** Starts over with the current record of the cluster. */
  schedule(row: StoredCluster): void {
    this.cancel(row.id);
    const [at, pauseMs] = [renewalTime(row), renewalPauseMs(row)];
    if (at === null || pauseMs === null) return;
    // If the life of the token seems to begin in the future, one of the clocks is or was wrong.
    this.wait(row.id, Math.min(at, this.clock.now() + pauseMs), retry.initialDelayMs);
  }

  cancel(id: string): void {
    this.timers.get(id)?.();
    this.timers.delete(id);
  }

  private wait(id: string, at: number, pauseMs: number): void {
    const attempt = (): void => {
      for (const cancel of cancels) cancel();
      void this.attempt(id, pauseMs).catch(this.onDefect);
    };
    // The time may be set back, and the other clock stands still while the machine is suspended.
    const leftMs = Math.max(0, at - this.clock.now());
    const cancels = [atTime(this.clock, at, checkMs, attempt), this.clock.after(leftMs, attempt)];
    this.timers.set(id, () => {
      for (const cancel of cancels) cancel();
    });
  }

  private async attempt(id: string, pauseMs: number): Promise<void> {
    const timer = this.timers.get(id);
    // A success has scheduled the next renewal, and so has any change of the cluster.
    if ((await this.renew(id)) || this.timers.get(id) !== timer) return;
    this.wait(id, this.clock.now() + pauseMs, Math.min(2 * pauseMs, retry.maxDelayMs));
  }
}
