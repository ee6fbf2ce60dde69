// The tokens by which an agent's terminal is shared: docs/reference.md "Shared terminals". They are kept only
// in memory, so they end with the daemon and cannot be forged from anything on disk.
import { randomBytes } from 'node:crypto';
import type { AccessKey } from '../../protocol/access_key.ts';
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { SHARE } from '../../settings/agent_limits.ts';

/** What a share token gives access to. Times are epoch milliseconds. */
export interface Share {
  readonly id: string;
  readonly agent: string;
  readonly mode: 'observe';
  readonly createdAt: number;
  readonly expiresAt: number;
}

interface OpenShare {
  share: Share;
  secret: string;
  /** Monotonic time of its end, because the wall clock may be set back. */
  until: number;
  cancel: () => void;
}

const SHARE_ID = /^(?:berth\.)?(share-[A-Za-z0-9_-]{16})\./;

/** The id of the share that a token or bearer claims to belong to; null if it does not claim any. */
export const shareIdIn = (given: string): string | null => SHARE_ID.exec(given)?.[1] ?? null;

export class ShareTokens {
  private readonly clock: Clock;
  private readonly open = new Map<string, OpenShare>();
  /** Called with the id of each share that has ended. */
  onEnded: (id: string) => void = () => {};

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Shares the terminal of `agent`. Throws daemon_busy when too many shares are open. */
  create(agent: string, minutes: number): { share: Share; key: AccessKey } {
    if (this.open.size >= SHARE.maxOpen)
      throw fail('daemon_busy', `${SHARE.maxOpen} shares are open`, {
        hint: 'Revoke one that is not needed.',
      });
    const ms = minutes * 60_000;
    const createdAt = this.clock.now();
    const id = `share-${randomBytes(12).toString('base64url')}`;
    const secret = randomBytes(32).toString('base64url');
    const share: Share = { id, agent, mode: 'observe', createdAt, expiresAt: createdAt + ms };
    const opened = { share, secret, until: this.clock.monotonic() + ms, cancel: () => {} };
    this.open.set(id, opened);
    this.endInTime(opened);
    return { share, key: { id, secret } };
  }

  /** The open share with this id, and its secret; null if there is none. */
  find(id: string): { share: Share; secret: string } | null {
    const found = this.open.get(id);
    if (!found) return null;
    if (this.left(found) > 0) return found;
    this.end(id);
    return null;
  }

  /** The open shares of an agent, the oldest first. */
  of(agent: string): Share[] {
    return [...this.open.values()].map(({ share }) => share).filter((share) => share.agent === agent);
  }

  /** Ends a share; false: there is none with this id. */
  end(id: string): boolean {
    const found = this.open.get(id);
    if (!found) return false;
    this.open.delete(id);
    found.cancel();
    this.onEnded(id);
    return true;
  }

  /** Ends the shares of agents that are gone. */
  retainAgents(isAgent: (name: string) => boolean): void {
    for (const [id, { share }] of this.open) if (!isAgent(share.agent)) this.end(id);
  }

  endAll(): void {
    this.retainAgents(() => false);
  }

  private left({ share, until }: OpenShare): number {
    return Math.min(share.expiresAt - this.clock.now(), until - this.clock.monotonic());
  }

  /** Timers pause while the machine is suspended, so the clock is checked from time to time. */
  private endInTime(opened: OpenShare): void {
    const left = this.left(opened);
    if (left <= 0) this.end(opened.share.id);
    else opened.cancel = this.clock.after(Math.min(left, SHARE.lookMs), () => this.endInTime(opened));
  }
}
