// The clients of one open tether. Each is assigned to a pod, waits while there is none, and is reassigned as
// long as no pod has seen anything of it.
import type { Destroyable, ForwardError, ForwardStreamEvents } from '../../adapters/portforward/transport.ts';
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import type { HeldConnections } from './held_connections.ts';
import { PendingConnections, type PendingConnectionsOptions } from './pending_connections.ts';
import { Session, type SessionOwner } from './session.ts';
import type { SessionClient } from './session_client.ts';

/** Where sessions go: a pod, or the relay of another Berth. */
export interface SessionTarget {
  /** The number of its sessions. */
  sessions: number;
  /** Whether it became ready so recently that its program may not listen yet. */
  readonly isFresh: boolean;
  /** Whether it does not exist any more, so that nothing new comes from it. */
  readonly isGone: boolean;
  open(events: ForwardStreamEvents): Destroyable;
  /** It could not be reached. */
  noteFailure(error: ForwardError): void;
}

/** The possible targets of sessions. */
export interface SessionTargets {
  /** Whether anything is open that `close` would end. */
  readonly isOpen: boolean;
  /** The target of the next session; null: none at present. */
  choose(): SessionTarget | null;
  /** The targets have changed: those no longer usable end with their sessions. */
  retainUsable(): void;
  /** Makes the next session find out the targets again. */
  renew(): void;
  /** Ends everything. */
  close(): void;
}

export interface SessionRouterOptions extends PendingConnectionsOptions {
  targets: SessionTargets;
  /** As of SessionOwner. */
  halfClosedTimeoutMs: number | null;
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
  | { at: 'target'; target: SessionTarget; failingSince: number | null }
  | { at: 'pause'; cancelRetry: () => void; failingSince: number };

/** Owns the sessions of one tether. Decides which pod gets each of them, and when to try again. */
export class SessionRouter implements SessionOwner {
  readonly clock: Clock;
  readonly held: HeldConnections;
  readonly halfClosedTimeoutMs: number | null;
  private readonly options: SessionRouterOptions;
  private readonly targets: SessionTargets;
  private readonly pending: PendingConnections;
  private readonly routes = new Map<Session, Route>();
  private idleSince: number;

  constructor(options: SessionRouterOptions) {
    this.options = options;
    this.clock = options.clock;
    this.held = options.held;
    this.halfClosedTimeoutMs = options.halfClosedTimeoutMs;
    this.targets = options.targets;
    this.pending = new PendingConnections(options);
    this.idleSince = this.clock.monotonic();
  }

  /** The number of clients. */
  get size(): number {
    return this.routes.size;
  }

  /** Carries a client from accept to end. */
  connect(client: SessionClient): void {
    this.assign(new Session(client, this), null);
  }

  /** Must be called when the targets or the trouble with them have changed. */
  onTargetsChange(): void {
    this.targets.retainUsable();
    for (const session of [...this.pending.sessions]) this.assign(session, null);
    this.pending.review();
  }

  /**
   * Called once a second: finds clients that have disconnected or waited too long, and releases the cluster
   * when idle.
   */
  tick(): void {
    const now = this.clock.monotonic();
    for (const [session, route] of [...this.routes]) {
      session.tick(now);
      if (route.at === 'target' && route.target.isGone) session.resetIfSilent();
    }
    this.pending.review();
    if (this.size === 0 && this.targets.isOpen && now - this.idleSince >= TETHER.lastConnectionIdleMs)
      this.targets.close();
  }

  /** Makes the next session ask for the cluster's access again. Sessions on a pod stay there. */
  renew(): void {
    this.targets.renew();
    this.pending.renew();
  }

  /** Resets every client and ends everything behind them. */
  close(): void {
    for (const session of [...this.routes.keys()]) session.reset(null);
    this.targets.close();
  }

  onBytes(fromClient: number, toClient: number): void {
    this.options.onBytes(fromClient, toClient);
  }

  onAnswered(): void {
    this.options.onAnswered();
  }

  onForwardFailed(session: Session, error: ForwardError): void {
    const route = this.routes.get(session);
    if (route?.at !== 'target') return;
    const { target } = route;
    target.sessions -= 1;
    target.noteFailure(error);
    const now = this.clock.monotonic();
    const failingSince = route.failingSince ?? now;
    const triedMs = now - failingSince;
    if (triedMs >= this.retryWindowMs(session, error, target)) {
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
    if (route?.at === 'target') route.target.sessions -= 1;
    if (route?.at === 'pause') route.cancelRetry();
    this.pending.remove(session);
    this.routes.delete(session);
    if (this.size === 0) this.idleSince = this.clock.monotonic();
    this.options.onClosed(reason);
  }

  /** How long to keep trying the session after an error of its attempt at `target`. */
  private retryWindowMs(session: Session, { code }: ForwardError, { isFresh }: SessionTarget): number {
    if (code !== 'refused') return TETHER.retryWindowMs;
    // Without a readiness probe, a pod is Ready before its program listens.
    const heldMs = this.clock.monotonic() - session.acceptedAt;
    const mayListenSoon = isFresh && heldMs < TETHER.podWaitTimeoutMs;
    return mayListenSoon ? TETHER.podWaitTimeoutMs : TETHER.refusedRetryWindowMs;
  }

  /** Gives the session to a target, or makes it wait for one. */
  private assign(session: Session, failingSince: number | null): void {
    const target = this.targets.choose();
    if (!target) {
      // The retry window starts again with the next pod.
      this.routes.set(session, { at: 'queue' });
      this.pending.add(session);
      return;
    }
    this.pending.remove(session);
    target.sessions += 1;
    this.routes.set(session, { at: 'target', target, failingSince });
    session.forward((events) => target.open(events));
  }
}
