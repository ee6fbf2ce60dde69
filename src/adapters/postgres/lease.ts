// The lease of a shared database: one Berth at a time runs the cloud part. It expires by the database's
// clock. The holder counts from when it asked for the renewal, so it always notices earlier.
// docs/reference.md "Shared database".
import { randomBytes } from 'node:crypto';
import { newUlid } from '../../protocol/ulid.ts';
import type { Clock } from '../../runtime/actor.ts';
import { LEASE } from '../../settings/cloud_limits.ts';
import type { DatabaseAddress } from '../../settings/database_url.ts';
import { type ChangePermit, forbidChanges, permitChanges } from '../change_permit.ts';
import { DatabaseConnection, DatabaseError } from './connection.ts';

/** Every write is checked against this in the database. */
export interface Fence {
  member: string;
  token: string;
}

export interface LeaseOptions {
  address: DatabaseAddress;
  clock: Clock;
  /** The name of this Berth for the others. */
  host: string;
  /** Where the others reach it, as JSON; null: they cannot. */
  ownAddress: string | null;
  onHeld: (fence: Fence) => void;
  /** Given while the lease lets clusters be changed. */
  changePermit: ChangePermit;
  /** Called once. From then on no cluster may be changed, and the database refuses writes. */
  onLost: (reason: string) => void;
  /** Another Berth holds it; called with each beat. `address`: as published by the holder. */
  onStandby: (holder: string, address: string | null) => void;
  /** The database does not answer, and neither this Berth nor the last known holder can hold the lease. */
  onTrouble: (error: DatabaseError) => void;
}

interface Beat {
  held: boolean;
  fence: string;
  holder: string;
  address: string | null;
  left_ms: number;
}

const BEAT = `SELECT * FROM berth.beat_1($1, $2, $3, $4, '${LEASE.ttlMs} ms', '${LEASE.graceMs} ms')`;
const CHECK_MS = 100;

export class Lease {
  private readonly options: LeaseOptions;
  private readonly member: string;
  /** The key of the session's advisory lock, which shows the others whether this Berth is connected. */
  private readonly key = randomBytes(8).readBigInt64BE().toString();
  private readonly connection: DatabaseConnection;
  private readonly stopChecking: () => void;
  private state: 'waiting' | 'held' | 'over' = 'waiting';
  /** When the last renewal was requested. */
  private renewedAt = Number.NEGATIVE_INFINITY;
  private renewedAtWall = Number.NEGATIVE_INFINITY;
  /** When another Berth was last known to hold it. */
  private stoodAt = Number.NEGATIVE_INFINITY;
  private cancelBeat: () => void = () => undefined;
  private isBeating = false;
  private isBeatDue = false;

  constructor(options: LeaseOptions) {
    const { address, clock } = options;
    this.options = options;
    // A thread that died with the lease has left it as it was.
    forbidChanges(options.changePermit);
    this.member = newUlid(clock.now());
    this.connection = new DatabaseConnection(address, {
      purpose: 'lease',
      deadlineMs: LEASE.beatTimeoutMs,
      greeting: [`SELECT pg_try_advisory_lock(${this.key})`, 'LISTEN berth_lease'],
      onNotice: () => this.beatNow(),
      onLost: () => this.beatNow(),
    });
    this.stopChecking = clock.every(CHECK_MS, () => void this.isValid());
  }

  /** Begins to request the lease. */
  start(): void {
    this.beatNow();
  }

  /**
   * Whether no other Berth can hold it, unless this session has ended unnoticed. Whoever is first to ask
   * after its end makes it lost, before failing for lack of it.
   */
  isValid(): boolean {
    if (this.state !== 'held') return false;
    const ms = LEASE.ttlMs - LEASE.marginMs;
    const { clock } = this.options;
    // The monotonic clock stands still while the machine is suspended, and the wall clock may be set.
    if (clock.monotonic() < this.renewedAt + ms && clock.now() < this.renewedAtWall + ms) return true;
    this.lose('the database did not answer in time');
    return false;
  }

  /** The database reports that another Berth has it. */
  onFenced(): void {
    if (this.state === 'held') this.lose('another Berth has taken it');
  }

  /** Releases it to a waiting Berth. Resolves when that is done, or the database does not answer. */
  async release(): Promise<void> {
    const wasHeld = this.state === 'held';
    this.end();
    if (wasHeld)
      await this.connection.query('SELECT berth.release_1($1)', [this.member]).catch(() => undefined);
    this.connection.close();
  }

  private end(): void {
    this.state = 'over';
    forbidChanges(this.options.changePermit);
    this.cancelBeat();
    this.stopChecking();
  }

  private lose(reason: string): void {
    this.end();
    this.connection.close();
    this.options.onLost(reason);
  }

  private beatNow(): void {
    if (this.state === 'over') return;
    this.cancelBeat();
    this.isBeatDue = true;
    if (!this.isBeating) void this.beats();
  }

  private beatIn(ms: number): void {
    this.cancelBeat();
    this.cancelBeat = this.options.clock.after(ms, () => this.beatNow());
  }

  private async beats(): Promise<void> {
    this.isBeating = true;
    while (this.isBeatDue && this.state !== 'over') {
      this.isBeatDue = false;
      await this.beat();
    }
    this.isBeating = false;
  }

  private async beat(): Promise<void> {
    const { clock, host, ownAddress, onTrouble } = this.options;
    const [sentAt, sentAtWall] = [clock.monotonic(), clock.now()];
    try {
      const [beat] = await this.connection.query<Beat>(BEAT, [this.member, host, ownAddress, this.key]);
      if (this.isOver() || !beat) return;
      if (beat.held) this.hold(beat, sentAt, sentAtWall);
      else this.stand(beat);
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      if (this.isOver()) return;
      const isOverForAll = this.state !== 'held' && clock.monotonic() >= this.stoodAt + LEASE.ttlMs;
      if (isOverForAll) onTrouble(error);
      this.beatIn(LEASE.beatMs * (0.2 + Math.random() * 0.4));
    }
  }

  /** A method, because after an await the compiler would still assume the earlier state. */
  private isOver(): boolean {
    return this.state === 'over';
  }

  private hold({ fence }: Beat, sentAt: number, sentAtWall: number): void {
    // An answer that arrives after this Berth considers the lease lost does not restore it.
    if (this.state === 'held' && !this.isValid()) return;
    this.renewedAt = sentAt;
    this.renewedAtWall = sentAtWall;
    // More recent than the grace period of an ended session, so no other Berth can have the lease.
    const changeMs = LEASE.graceMs - LEASE.changeMarginMs;
    const sinceMs = this.options.clock.monotonic() - sentAt;
    permitChanges(this.options.changePermit, changeMs - sinceMs, sentAtWall + changeMs);
    this.beatIn(LEASE.beatMs);
    if (this.state === 'held') return;
    this.state = 'held';
    this.options.onHeld({ member: this.member, token: fence });
  }

  private stand({ holder, address, left_ms: leftMs }: Beat): void {
    if (this.state === 'held') {
      this.lose(`${holder} has taken it`);
      return;
    }
    this.stoodAt = this.options.clock.monotonic();
    this.options.onStandby(holder, address);
    this.beatIn(Math.min(LEASE.beatMs, Math.max(leftMs + 1, 1)));
  }
}
