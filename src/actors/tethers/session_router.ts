// The clients of one open tether: each is given to a pod, waits while there is none, and is given to a pod
// again as long as no pod has seen anything of it.
import type { ClusterDialer } from '../../adapters/cluster_dialer.ts';
import type { PodRow } from '../../adapters/kube/pods.ts';
import type { ForwardError } from '../../adapters/portforward/transport.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { HeldConnections } from './held_connections.ts';
import { PendingConnections, type PendingConnectionsOptions } from './pending_connections.ts';
import { Session, type SessionOwner } from './session.ts';
import type { SessionClient } from './session_client.ts';
import { type UsedPod, UsedPods } from './used_pods.ts';

/** The pods that sessions may go to. */
export interface PodSource {
  /** The dialer of the cluster; null while nothing is known of it. */
  readonly dialer: ClusterDialer | null;
  readonly usable: readonly PodRow[];
  /** Whether open connections to the pod may be used again. */
  isUsable(uid: string): boolean;
  /** Whether the pod has become Ready so recently that its program may not listen yet. */
  isFresh(uid: string): boolean;
  /** The pod does not exist. */
  reportAbsent(uid: string): void;
  /** Nobody needs the pods any more. */
  stop(): void;
}

export interface SessionRouterOptions extends PendingConnectionsOptions {
  pods: PodSource;
  /** Port of the pods. */
  port: number;
  halfClosedTimeoutMs: number;
  /** The clock of the connections to the pods. */
  networkClock: Clock;
  /** Bytes from a client, and to it. */
  onBytes(fromClient: number, toClient: number): void;
  /** A pod has answered a client for the first time. */
  onAnswered(): void;
  /** A client has gone. `reason`: why it was reset; null if it was not for an error. */
  onClosed(reason: string | null): void;
}

/**
 * Where a session is. `failingSince`: monotonic time of the first failed attempt since it last waited for a
 * pod.
 */
type Route =
  | { at: 'queue' }
  | { at: 'pod'; pod: UsedPod; failingSince: number | null }
  | { at: 'pause'; cancelRetry: () => void; failingSince: number };

/** Owns the sessions of one tether and decides which pod gets each of them, and when it is tried again. */
export class SessionRouter implements SessionOwner {
  readonly clock: Clock;
  readonly held: HeldConnections;
  readonly halfClosedTimeoutMs: number;
  private readonly options: SessionRouterOptions;
  private readonly pods: PodSource;
  private readonly usedPods: UsedPods;
  private readonly pending: PendingConnections;
  private readonly routes = new Map<Session, Route>();
  private idleSince: number;

  constructor(options: SessionRouterOptions) {
    this.options = options;
    this.clock = options.clock;
    this.held = options.held;
    this.halfClosedTimeoutMs = options.halfClosedTimeoutMs;
    this.pods = options.pods;
    this.usedPods = new UsedPods(options.networkClock);
    this.pending = new PendingConnections(options);
    this.idleSince = this.clock.monotonic();
  }

  /** Number of clients. */
  get size(): number {
    return this.routes.size;
  }

  /** Carries a client from its accept to its end. */
  connect(client: SessionClient): void {
    this.assign(new Session(client, this), null);
  }

  /** To be called when the pods or the trouble with them have changed. */
  onPodsChange(): void {
    this.usedPods.retain((uid) => this.pods.isUsable(uid));
    for (const session of [...this.pending.sessions]) this.assign(session, null);
    this.pending.review();
  }

  /**
   * Once a second: finds clients that have gone or have waited for too long, and lets go of the cluster when
   * idle.
   */
  tick(): void {
    const now = this.clock.monotonic();
    for (const session of [...this.routes.keys()]) session.tick(now);
    this.pending.review();
    if (this.size === 0 && this.pods.dialer && now - this.idleSince >= TETHER.lastConnectionIdleMs)
      this.disconnect();
  }

  /** Has the next session ask for the cluster's access again. Sessions on a pod stay there. */
  renew(): void {
    this.usedPods.retain(() => false);
    this.pods.stop();
    this.pending.renew();
  }

  /** Resets every client and ends everything behind them. */
  close(): void {
    for (const session of [...this.routes.keys()]) session.reset(null);
    this.disconnect();
  }

  onBytes(fromClient: number, toClient: number): void {
    this.options.onBytes(fromClient, toClient);
  }

  onAnswered(): void {
    this.options.onAnswered();
  }

  onForwardFailed(session: Session, error: ForwardError): void {
    const route = this.routes.get(session);
    if (route?.at !== 'pod') return;
    const { pod } = route;
    pod.sessions -= 1;
    this.usedPods.avoid(pod, error.code === 'unreachable' ? TETHER.unreachableAvoidMs : TETHER.podAvoidMs);
    if (error.code === 'absent') this.pods.reportAbsent(pod.uid);
    const now = this.clock.monotonic();
    const failingSince = route.failingSince ?? now;
    const triedMs = now - failingSince;
    if (triedMs >= this.retryWindowMs(session, error, pod)) {
      this.routes.set(session, { at: 'queue' });
      session.reset(error.text);
      return;
    }
    const { initialDelayMs, maxDelayMs } = TETHER.retry;
    const delayMs = Math.min(initialDelayMs + triedMs, maxDelayMs);
    const cancelRetry = this.clock.after(delayMs, () => this.assign(session, failingSince));
    this.routes.set(session, { at: 'pause', cancelRetry, failingSince });
  }

  onClosed(session: Session, reason: string | null): void {
    const route = this.routes.get(session);
    if (route?.at === 'pod') route.pod.sessions -= 1;
    if (route?.at === 'pause') route.cancelRetry();
    this.pending.remove(session);
    this.routes.delete(session);
    if (this.size === 0) this.idleSince = this.clock.monotonic();
    this.options.onClosed(reason);
  }

  /** For how long the session is tried again after an error of its attempt at `pod`. */
  private retryWindowMs(session: Session, { code }: ForwardError, pod: UsedPod): number {
    if (code !== 'refused') return TETHER.retryWindowMs;
    // Without a probe a pod is Ready before its program listens.
    const heldMs = this.clock.monotonic() - session.acceptedAt;
    const mayListenSoon = this.pods.isFresh(pod.uid) && heldMs < TETHER.podWaitTimeoutMs;
    return mayListenSoon ? TETHER.podWaitTimeoutMs : TETHER.refusedRetryWindowMs;
  }

  /** Gives the session to a pod, or has it wait for one. */
  private assign(session: Session, failingSince: number | null): void {
    const { dialer, usable } = this.pods;
    const pod = dialer && this.usedPods.choose(usable, dialer);
    if (!pod) {
      // The window for retries begins anew with the next pod.
      this.routes.set(session, { at: 'queue' });
      this.pending.add(session);
      return;
    }
    this.pending.remove(session);
    pod.sessions += 1;
    this.routes.set(session, { at: 'pod', pod, failingSince });
    session.forward((events) => pod.connections.open(this.options.port, events));
  }

  private disconnect(): void {
    this.usedPods.close();
    this.pods.stop();
  }
}
