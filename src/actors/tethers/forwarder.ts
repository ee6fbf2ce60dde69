// The connections of one open tether: each is given to a Ready pod chosen then, and held while there is none.
import type { Socket } from 'node:net';
import type { AddressRule } from '../../adapters/address_rule.ts';
import type { ForwardError } from '../../adapters/portforward/transport.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { StoredTether, TetherStats, TethersProtocol } from '../../protocol/tethers.ts';
import type { Clock, Context, Ref } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/limits.ts';
import { TetherConnections } from './connections.ts';
import { PendingConnections } from './pending_connections.ts';
import { TetherPods } from './pods.ts';
import { Session, type SessionOwner } from './session.ts';

/** What the tethers of a thread share. */
export interface TetherConfig {
  rule: AddressRule;
  peers: LoopbackPeers;
  /** Connections that wait for a pod, of all of them. */
  pendingInThread: { count: number };
}

/** What carries the connections of one tether as long as its listener is open; its actor (tether.ts) owns it. */
export class TetherForwarder implements SessionOwner {
  readonly peers: LoopbackPeers;
  private readonly clock: Clock;
  private readonly onDefect: (error: unknown) => void;
  private readonly tether: StoredTether;
  private readonly workloads: Ref<WorkloadsProtocol>;
  private readonly tethers: Ref<TethersProtocol>;
  private readonly pods: TetherPods;
  private readonly connections: TetherConnections;
  private readonly pending: PendingConnections;
  private readonly sessions = new Set<Session>();
  private readonly timers = new Set<() => void>();
  private readonly stats: TetherStats;
  private areStatsReported = true;
  private lastByteAt = 0;
  /** Of which last byte it was told last, and when in monotonic milliseconds. */
  private traffic = { lastByteAt: 0, toldAt: Number.NEGATIVE_INFINITY };
  /** When the last connection came (epoch), whether that is told, and when it last was (monotonic). */
  private activity = { at: 0, isTold: true, toldAt: Number.NEGATIVE_INFINITY };
  private idleSince: number;

  constructor(
    context: Context,
    tether: StoredTether,
    numbers: TetherStats,
    { rule, peers, pendingInThread }: TetherConfig,
  ) {
    const { clock } = context;
    this.peers = peers;
    this.clock = clock;
    this.tether = tether;
    this.stats = { ...numbers, connections: 0 };
    this.workloads = context.ref('workloads');
    this.tethers = context.ref('tethers');
    this.onDefect = (error) => context.crash(error);
    this.pods = new TetherPods(clock, rule, () => this.onPodsChange(), this.onDefect);
    this.connections = new TetherConnections(tether.containerPort, () => this.now());
    const { workloadId, wake } = tether;
    this.pending = new PendingConnections({
      clock,
      workloads: this.workloads,
      workloadId,
      wake,
      pods: this.pods,
      pendingInThread,
      onDefect: this.onDefect,
    });
    this.idleSince = this.now();
    this.timers.add(clock.every(TETHER.tickIntervalMs, () => this.tick()));
  }

  now(): number {
    return this.clock.monotonic();
  }

  /** Its numbers are told as if they had changed. */
  reportAgain(): void {
    this.areStatsReported = false;
  }

  accept(socket: Socket): void {
    if (this.sessions.size >= TETHER.maxConnections) {
      socket.on('error', () => undefined).resetAndDestroy();
      this.recordError(`${TETHER.maxConnections} connections are open: no more are taken`);
      return;
    }
    const session = new Session(socket, this);
    this.sessions.add(session);
    this.areStatsReported = false;
    this.activity.at = this.clock.now();
    this.activity.isTold = false;
    // At once, so that who is about to put the workload to sleep knows. Not each time: sleep counts in minutes, and whoever is
    // woken by a letter takes the processor from the connection that is being opened.
    if (this.now() - this.activity.toldAt >= TETHER.tickIntervalMs) this.reportActivity();
    this.assign(session);
  }

  onBytes(fromClient: number, toClient: number): void {
    this.stats.bytesIn += fromClient;
    this.stats.bytesOut += toClient;
    this.areStatsReported = false;
    this.lastByteAt = this.clock.now();
  }

  onForwardFailed(session: Session, setback: ForwardError): void {
    this.connections.release(session, true);
    if (setback.code === 'absent') this.pods.reportAbsent(session.podUid);
    const tried = this.now() - (session.failingSince ?? this.now());
    if (tried >= (setback.code === 'refused' ? TETHER.refusedRetryWindowMs : TETHER.retryWindowMs)) {
      session.reset(setback.text);
      return;
    }
    const { initialDelayMs, maxDelayMs } = TETHER.retry;
    const cancel = this.clock.after(Math.min(initialDelayMs + tried, maxDelayMs), () => {
      this.timers.delete(cancel);
      this.assign(session);
    });
    this.timers.add(cancel);
  }

  onClosed(session: Session, reason: string | null): void {
    this.pending.remove(session);
    this.connections.release(session, false);
    this.sessions.delete(session);
    if (reason !== null) this.recordError(reason);
    this.areStatsReported = false;
    if (this.sessions.size === 0) this.idleSince = this.now();
  }

  /** Destroys every connection and everything behind them. */
  close(): void {
    for (const cancel of this.timers) cancel();
    for (const session of [...this.sessions]) session.reset(null);
    this.connections.close();
    this.pods.stop();
    this.reportStats();
    this.reportActivity();
    this.reportTraffic();
  }

  private assign(session: Session): void {
    if (!session.isPending) return;
    const { dialer, ready } = this.pods;
    if (dialer && this.connections.assign(session, ready, dialer)) {
      this.pending.remove(session);
      return;
    }
    // The pod that it waits for now has done it no wrong yet.
    session.failingSince = null;
    this.pending.add(session);
  }

  private onPodsChange(): void {
    this.connections.retainReady((uid) => this.pods.isReady(uid));
    for (const session of [...this.pending.sessions]) this.assign(session);
    this.pending.review();
  }

  private tick(): void {
    const now = this.now();
    for (const session of [...this.sessions]) session.tick(now);
    this.pending.review();
    this.reportStats();
    this.reportActivity();
    this.reportTraffic();
    const isIdle = this.sessions.size === 0 && now - this.idleSince >= TETHER.lastConnectionIdleMs;
    if (!isIdle || !this.pods.dialer) return;
    this.connections.close();
    this.pods.stop();
  }

  private recordError(reason: string): void {
    this.stats.lastError = reason;
    this.areStatsReported = false;
  }

  private reportStats(): void {
    if (this.areStatsReported) return;
    this.areStatsReported = true;
    this.stats.connections = this.sessions.size;
    this.tethers.tell('stats', { id: this.tether.id, numbers: this.stats });
  }

  private reportActivity(): void {
    const { activity } = this;
    if (activity.isTold) return;
    activity.isTold = true;
    activity.toldAt = this.now();
    this.workloads.tell('activity', { id: this.tether.workloadId, at: activity.at });
  }

  /** When bytes have moved since it was last told: now and then while connections are open, at once when the last has closed. */
  private reportTraffic(): void {
    const { lastByteAt, traffic } = this;
    const now = this.now();
    const isDue = this.sessions.size === 0 || now - traffic.toldAt >= TETHER.trafficReportIntervalMs;
    if (lastByteAt === traffic.lastByteAt || !isDue) return;
    this.traffic = { lastByteAt, toldAt: now };
    this.workloads.tell('traffic', { id: this.tether.workloadId, lastByteAt });
  }
}
