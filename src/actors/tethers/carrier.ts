// The connections of one open tether: each is given to a Ready pod chosen then, and held while there is none.
import type { Socket } from 'node:net';
import type { AddressRule } from '../../adapters/addresses.ts';
import type { Setback } from '../../adapters/portforward/way.ts';
import type { Peers } from '../../adapters/process/peer.ts';
import { TETHER } from '../../limits.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { StoredTether, TetherNumbers, TethersProtocol } from '../../protocol/tethers.ts';
import type { Clock, Context, Ref } from '../../runtime/actor.ts';
import { Hold } from './hold.ts';
import { TetherLines } from './lines.ts';
import { TetherPods } from './pods.ts';
import { Session, type SessionOwner } from './session.ts';

/** What the tethers of a thread share. */
export interface TetherConfig {
  rule: AddressRule;
  peers: Peers;
  /** Connections that wait for a pod, of all of them. */
  room: { held: number };
}

/** What carries the connections of one tether as long as its listener is open; its actor (tether.ts) owns it. */
export class Carrier implements SessionOwner {
  readonly peers: Peers;
  private readonly clock: Clock;
  private readonly defect: (error: unknown) => void;
  private readonly tether: StoredTether;
  private readonly workloads: Ref<WorkloadsProtocol>;
  private readonly tethers: Ref<TethersProtocol>;
  private readonly pods: TetherPods;
  private readonly lines: TetherLines;
  private readonly hold: Hold;
  private readonly sessions = new Set<Session>();
  private readonly timers = new Set<() => void>();
  private readonly numbers: TetherNumbers;
  private isTold = true;
  private lastByteAt = 0;
  /** Of which last byte it was told last, and when in monotonic milliseconds. */
  private traffic = { lastByteAt: 0, toldAt: Number.NEGATIVE_INFINITY };
  /** When the last connection came (epoch), whether that is told, and when it last was (monotonic). */
  private activity = { at: 0, isTold: true, toldAt: Number.NEGATIVE_INFINITY };
  private idleSince: number;

  constructor(
    context: Context,
    tether: StoredTether,
    numbers: TetherNumbers,
    { rule, peers, room }: TetherConfig,
  ) {
    const { clock } = context;
    this.peers = peers;
    this.clock = clock;
    this.tether = tether;
    this.numbers = { ...numbers, connections: 0 };
    this.workloads = context.ref<WorkloadsProtocol>('workloads');
    this.tethers = context.ref<TethersProtocol>('tethers');
    this.defect = (error) => context.crash(error);
    this.pods = new TetherPods(clock, rule, () => this.podsChanged(), this.defect);
    this.lines = new TetherLines(tether.containerPort, () => this.now());
    const { workloadId, wake } = tether;
    this.hold = new Hold({
      clock,
      workloads: this.workloads,
      workloadId,
      wake,
      pods: this.pods,
      room,
      defect: this.defect,
    });
    this.idleSince = this.now();
    this.timers.add(clock.every(TETHER.tickMs, () => this.tick()));
  }

  now(): number {
    return this.clock.monotonic();
  }

  /** Its numbers are told as if they had changed. */
  tellAgain(): void {
    this.isTold = false;
  }

  accept(socket: Socket): void {
    if (this.sessions.size >= TETHER.connections) {
      socket.on('error', () => undefined).resetAndDestroy();
      this.note(`${TETHER.connections} connections are open: no more are taken`);
      return;
    }
    const session = new Session(socket, this);
    this.sessions.add(session);
    this.isTold = false;
    this.activity.at = this.clock.now();
    this.activity.isTold = false;
    // At once, so that who is about to put the workload to sleep knows. Not each time: sleep counts in minutes, and whoever is
    // woken by a letter takes the processor from the connection that is being opened.
    if (this.now() - this.activity.toldAt >= TETHER.tickMs) this.tellActivity();
    this.place(session);
  }

  moved(fromClient: number, toClient: number): void {
    this.numbers.bytesIn += fromClient;
    this.numbers.bytesOut += toClient;
    this.isTold = false;
    this.lastByteAt = this.clock.now();
  }

  failed(session: Session, setback: Setback): void {
    this.lines.leave(session, true);
    if (setback.code === 'absent') this.pods.doubt(session.pod);
    const tried = this.now() - (session.failingSince ?? this.now());
    if (tried >= (setback.code === 'refused' ? TETHER.refusedMs : TETHER.retryMs)) {
      session.reset(setback.text);
      return;
    }
    const { firstMs, maxMs } = TETHER.retry;
    const cancel = this.clock.after(Math.min(firstMs + tried, maxMs), () => {
      this.timers.delete(cancel);
      this.place(session);
    });
    this.timers.add(cancel);
  }

  over(session: Session, reason: string | null): void {
    this.hold.remove(session);
    this.lines.leave(session, false);
    this.sessions.delete(session);
    if (reason !== null) this.note(reason);
    this.isTold = false;
    if (this.sessions.size === 0) this.idleSince = this.now();
  }

  /** Destroys every connection and everything behind them. */
  close(): void {
    for (const cancel of this.timers) cancel();
    for (const session of [...this.sessions]) session.reset(null);
    this.lines.close();
    this.pods.stop();
    this.tellNumbers();
    this.tellActivity();
    this.tellTraffic();
  }

  private place(session: Session): void {
    if (!session.isHeld) return;
    const { door, ready } = this.pods;
    if (door && this.lines.carry(session, ready, door)) {
      this.hold.remove(session);
      return;
    }
    // The pod that it waits for now has done it no wrong yet.
    session.failingSince = null;
    this.hold.add(session);
  }

  private podsChanged(): void {
    this.lines.keep((uid) => this.pods.has(uid));
    for (const session of [...this.hold.sessions]) this.place(session);
    this.hold.review();
  }

  private tick(): void {
    const now = this.now();
    for (const session of [...this.sessions]) session.tick(now);
    this.hold.review();
    this.tellNumbers();
    this.tellActivity();
    this.tellTraffic();
    const isIdle = this.sessions.size === 0 && now - this.idleSince >= TETHER.lastIdleMs;
    if (!isIdle || !this.pods.door) return;
    this.lines.close();
    this.pods.stop();
  }

  private note(reason: string): void {
    this.numbers.lastError = reason;
    this.isTold = false;
  }

  private tellNumbers(): void {
    if (this.isTold) return;
    this.isTold = true;
    this.numbers.connections = this.sessions.size;
    this.tethers.tell('numbers', { id: this.tether.id, numbers: this.numbers });
  }

  private tellActivity(): void {
    const { activity } = this;
    if (activity.isTold) return;
    activity.isTold = true;
    activity.toldAt = this.now();
    this.workloads.tell('activity', { id: this.tether.workloadId, at: activity.at });
  }

  /** When bytes have moved since it was last told: now and then while connections are open, at once when the last has closed. */
  private tellTraffic(): void {
    const { lastByteAt, traffic } = this;
    const now = this.now();
    const isDue = this.sessions.size === 0 || now - traffic.toldAt >= TETHER.trafficMs;
    if (lastByteAt === traffic.lastByteAt || !isDue) return;
    this.traffic = { lastByteAt, toldAt: now };
    this.workloads.tell('traffic', { id: this.tether.workloadId, lastByteAt });
  }
}
