// The clients of one open tether: accepts and counts their connections, and reports traffic and activity.
import type { AddressRule } from '../../adapters/address_rule.ts';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';
import { openRequestBody } from '../../adapters/relay/open_request.ts';
import type { RelayLink } from '../../adapters/relay/relay_link.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import {
  type StoredTether,
  type TetherSettings,
  type TetherStats,
  tetherSettings,
} from '../../protocol/tethers.ts';
import type { Clock, Context, Ref } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { HeldConnections } from './held_connections.ts';
import { PodWatch } from './pod_watch.ts';
import { RemoteWorkload } from './remote_workload.ts';
import type { SessionClient } from './session_client.ts';
import { SessionRouter, type SessionRouterOptions } from './session_router.ts';
import { UsedPods } from './used_pods.ts';
import { WorkloadWaker } from './workload_waker.ts';

/** Shared by the tethers of a thread. */
export interface TetherConfig {
  rule: AddressRule;
  peers: LoopbackPeers;
  /** The clock of connections to pods, whose timers may outlast the actor that started them. */
  networkClock: Clock;
  held: HeldConnections;
  /** The link to the Berth that holds the workloads; null: their clusters are registered here. */
  link: RelayLink | null;
  /**
   * Whether another Berth may have the workloads once the cloud thread has ended: then what is open ends with
   * that thread, because nothing here knows any more who may use it. Absent: it stays open.
   */
  isShared?: boolean;
  /** Receives the numbers; absent: `tethers` does. */
  report?: (numbers: TetherStats) => void;
}

/** A port of a workload, and how connections to it are carried. */
export type CarriedPort = Pick<StoredTether, 'workloadId' | 'containerPort' | 'wake' | 'owners'> &
  Partial<TetherSettings>;

type Way = Pick<SessionRouterOptions, 'targets' | 'target' | 'halfClosedTimeoutMs'>;

function wayToPods(port: CarriedPort, pods: PodWatch, workloads: Ref<WorkloadsProtocol>, clock: Clock): Way {
  const { workloadId, containerPort, wake, owners } = port;
  return {
    targets: new UsedPods({ clock, pods, port: containerPort }),
    target: new WorkloadWaker({ workloads, workloadId, wake, subject: owners?.[0], pods }),
    halfClosedTimeoutMs: tetherSettings(port).halfClosedTimeoutMs,
  };
}

function wayOverRelay(port: CarriedPort, link: RelayLink, onChange: () => void): Way {
  const remote = new RemoteWorkload(link, openRequestBody({ ...port, ...tetherSettings(port) }), onChange);
  return { targets: remote, target: remote, halfClosedTimeoutMs: null };
}

/**
 * The counters and reports of an open tether. Its actor (tether.ts) owns it as long as the listener is open.
 */
export class TetherClients {
  private readonly clock: Clock;
  private readonly port: CarriedPort;
  /** The owner of the workload; null: it is on another machine, where the relay reports its use. */
  private readonly workloads: Ref<WorkloadsProtocol> | null;
  private readonly report: (numbers: TetherStats) => void;
  /** null: the pods are on another machine. */
  private readonly pods: PodWatch | null;
  private readonly router: SessionRouter;
  private readonly stopTicks: () => void;
  private readonly stats: TetherStats;
  private areStatsReported = true;
  /** When a byte last moved (epoch). */
  private lastByteAt = 0;
  /** The last byte reported (epoch), and when it was reported (monotonic). */
  private traffic = { lastByteAt: 0, reportedAt: Number.NEGATIVE_INFINITY };
  /**
   * When the last connection arrived (epoch), whether that was reported, and when the last report was
   * (monotonic).
   */
  private activity = { at: 0, isReported: true, reportedAt: Number.NEGATIVE_INFINITY };

  /** `report` gets the numbers, which begin with `stats`, at most once a second after changes. */
  constructor(
    context: Context,
    port: CarriedPort,
    stats: TetherStats,
    config: Omit<TetherConfig, 'peers'>,
    report: (numbers: TetherStats) => void,
  ) {
    const { clock } = context;
    this.clock = clock;
    this.port = port;
    this.report = report;
    this.stats = { ...stats, connections: 0 };
    const { link, rule, networkClock } = config;
    const onDefect = (error: unknown): void => context.crash(error);
    const onChange = (): void => this.router.onTargetsChange();
    let way: Way;
    if (link) {
      this.workloads = null;
      this.pods = null;
      way = wayOverRelay(port, link, onChange);
    } else {
      const choice = tetherSettings(port);
      this.workloads = context.ref('workloads');
      this.pods = new PodWatch({ clock, rule, choice, onChange, onDefect });
      way = wayToPods(port, this.pods, this.workloads, networkClock);
    }
    this.router = new SessionRouter({
      ...way,
      clock,
      held: config.held,
      onDefect,
      onBytes: (fromClient, toClient) => this.onBytes(fromClient, toClient),
      onAnswered: () => this.recordError(null),
      onClosed: (reason) => this.onClosed(reason),
    });
    this.stopTicks = clock.every(TETHER.tickIntervalMs, () => this.tick());
  }

  /** Reports the numbers at the next tick, even if they have not changed. */
  reportAgain(): void {
    this.areStatsReported = false;
  }

  /** The credentials of the cluster have changed: new connections use the new ones. */
  renew(): void {
    this.router.renew();
  }

  /** The workload is being put to sleep: new connections wait, and wake it. False: it is not, after all. */
  noteSleep(isSleeping: boolean): void {
    this.pods?.condemn(isSleeping);
  }

  /** Whether there are no connections. */
  get isEmpty(): boolean {
    return this.router.size === 0;
  }

  /** Accepts a new connection, or resets it when too many are open. */
  accept(client: SessionClient): void {
    if (this.router.size >= TETHER.maxConnections) {
      const reason = `${TETHER.maxConnections} connections are open: no more are taken`;
      client.reset(reason, true);
      this.recordError(reason);
      return;
    }
    this.areStatsReported = false;
    this.activity.at = this.clock.now();
    this.activity.isReported = false;
    // Reported at once, so that whoever is about to put the workload to sleep knows. But not every time:
    // sleep is counted in minutes, and a message that wakes another thread takes the processor from the
    // connection being opened.
    if (this.clock.monotonic() - this.activity.reportedAt >= TETHER.tickIntervalMs) this.reportActivity();
    this.router.connect(client);
  }

  /** Resets every connection and ends everything behind them. */
  close(): void {
    this.stopTicks();
    this.router.close();
    this.reportStats();
    this.reportActivity();
    this.reportTraffic();
  }

  private onBytes(fromClient: number, toClient: number): void {
    this.stats.bytesIn += fromClient;
    this.stats.bytesOut += toClient;
    this.areStatsReported = false;
    this.lastByteAt = this.clock.now();
  }

  private onClosed(reason: string | null): void {
    if (reason !== null) this.recordError(reason);
    this.areStatsReported = false;
  }

  private tick(): void {
    this.router.tick();
    this.reportStats();
    this.reportActivity();
    this.reportTraffic();
  }

  /** null: the tether works. */
  private recordError(reason: string | null): void {
    if (reason === this.stats.lastError) return;
    this.stats.lastError = reason;
    this.areStatsReported = false;
  }

  private reportStats(): void {
    if (this.areStatsReported) return;
    this.areStatsReported = true;
    this.stats.connections = this.router.size;
    this.report(this.stats);
  }

  private reportActivity(): void {
    const { activity } = this;
    if (activity.isReported) return;
    activity.isReported = true;
    activity.reportedAt = this.clock.monotonic();
    this.workloads?.tell('activity', { id: this.port.workloadId, at: activity.at });
  }

  /**
   * Reports when bytes last moved: from time to time while connections are open, and at once when the last
   * one closes.
   */
  private reportTraffic(): void {
    const { lastByteAt, traffic } = this;
    const now = this.clock.monotonic();
    const isDue = this.router.size === 0 || now - traffic.reportedAt >= TETHER.trafficReportIntervalMs;
    if (lastByteAt === traffic.lastByteAt || !isDue) return;
    this.traffic = { lastByteAt, reportedAt: now };
    this.workloads?.tell('traffic', { id: this.port.workloadId, lastByteAt });
  }
}
