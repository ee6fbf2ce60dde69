// The connections to the relay of another Berth: dialled when someone waits for one, and closed after a long
// time without use. docs/reference.md "Remote tethers".
import { type Clock, isFailure } from '../../runtime/actor.ts';
import { RELAY, TETHER } from '../../settings/cloud_limits.ts';
import type { Mux } from './mux.ts';
import type { RelayConnection } from './relay_connection.ts';

/** Opens streams over a relay link. */
export interface RelayUser {
  /** Whether it waits for a connection. */
  readonly isWaiting: boolean;
  /** A connection with room is available, or the trouble has changed. */
  onRelayChange(): void;
}

/** Why there is no connection. `since`: monotonic time; waiting users may give up after `graceMs`. */
export interface RelayTrouble {
  reason: string;
  since: number;
  graceMs: number;
}

export interface RelayLinkOptions {
  clock: Clock;
  /**
   * Called before each `dial`; returns a check of whether its connection may still be used. The user whose
   * token opened it may log out.
   */
  watchHolder(): () => boolean;
  /** Connects; rejects with a Failure. `onClosed` is called when the connection ends. */
  dial(onClosed: () => void): Promise<RelayConnection>;
  /** Receives errors other than Failures. */
  onDefect(error: unknown): void;
}

/** Codes of answers that waiting will not change. */
const FINAL_CODES: ReadonlySet<string> = new Set(['remote_denied', 'relay_off']);

interface OpenConnection {
  readonly connection: RelayConnection;
  isSameHolder(): boolean;
  /** Monotonic time since when it has no streams; null: it has some. */
  idleSince: number | null;
}

/** The link to the other Berth, shared by the tethers of a thread. */
export class RelayLink {
  private readonly options: RelayLinkOptions;
  private readonly users = new Set<RelayUser>();
  private readonly open = new Set<OpenConnection>();
  private readonly stopReviews: () => void;
  private lastTrouble: RelayTrouble | null = null;
  private isDialling = false;
  private isClosed = false;

  constructor(options: RelayLinkOptions) {
    this.options = options;
    this.stopReviews = options.clock.every(RELAY.reviewIntervalMs, () => this.review());
  }

  get clock(): Clock {
    return this.options.clock;
  }

  get trouble(): RelayTrouble | null {
    return this.lastTrouble;
  }

  /** A connection with room; null if there is none. */
  get free(): Mux | null {
    for (const { connection, isSameHolder } of this.open)
      if (connection.mux.isFree && isSameHolder()) return connection.mux;
    return null;
  }

  /** Adds a user; returns a function that removes it. */
  join(user: RelayUser): () => void {
    this.users.add(user);
    return () => void this.users.delete(user);
  }

  /** Connects as long as a user waits. Must be called when one begins to. */
  connect(): void {
    if (this.isDialling || !this.isNeeded) return;
    this.isDialling = true;
    // A refused request may be allowed by now. The wait for a Berth that does not answer continues.
    if (this.lastTrouble?.graceMs === 0) this.lastTrouble = null;
    this.dialOn().catch(this.options.onDefect);
  }

  /** Ends every connection. */
  close(): void {
    this.isClosed = true;
    this.stopReviews();
    for (const { connection } of this.open) connection.close('this Berth ends');
    this.open.clear();
  }

  private get isNeeded(): boolean {
    if (this.isClosed || this.open.size >= RELAY.maxDialled || this.free) return false;
    return [...this.users].some(({ isWaiting }) => isWaiting);
  }

  private async dialOn(): Promise<void> {
    try {
      let pauseMs: number = RELAY.retry.initialDelayMs;
      while (this.isNeeded) {
        await this.dial();
        if (!this.isNeeded) break;
        await new Promise<void>((resolve) => this.clock.after(pauseMs, resolve));
        pauseMs = Math.min(2 * pauseMs, RELAY.retry.maxDelayMs);
      }
    } finally {
      this.isDialling = false;
    }
  }

  private async dial(): Promise<void> {
    const since = this.lastTrouble?.since ?? this.clock.monotonic();
    // A Berth that accepts the connection but says nothing causes no failure in time.
    const reason = this.lastTrouble?.reason ?? 'the other Berth does not answer';
    this.lastTrouble = { reason, since, graceMs: TETHER.retryWindowMs };
    try {
      const isSameHolder = this.options.watchHolder();
      const connection = await this.options.dial(() => this.forgetClosed());
      if (this.isClosed) connection.close('this Berth ends');
      else this.open.add({ connection, isSameHolder, idleSince: this.clock.monotonic() });
      this.lastTrouble = null;
    } catch (error) {
      if (!isFailure(error)) throw error;
      const graceMs = FINAL_CODES.has(error.code) ? 0 : TETHER.retryWindowMs;
      this.lastTrouble = { reason: error.message, since, graceMs };
    } finally {
      this.tellUsers();
    }
  }

  private forgetClosed(): void {
    for (const one of this.open) if (!one.connection.mux.isOpen) this.open.delete(one);
    this.connect();
  }

  private tellUsers(): void {
    for (const user of [...this.users]) user.onRelayChange();
  }

  /** Closes connections that are unused, or that were opened for another user or with another token. */
  private review(): void {
    const now = this.clock.monotonic();
    for (const one of this.open) {
      const { mux } = one.connection;
      one.idleSince = mux.size === 0 ? (one.idleSince ?? now) : null;
      const isIdle = one.idleSince !== null && now - one.idleSince >= TETHER.lastConnectionIdleMs;
      if (!one.isSameHolder())
        one.connection.close('the login at the other Berth has ended, or its token has changed');
      else if (isIdle || mux.isSpent) one.connection.close('nobody uses it');
    }
  }
}
