// Requests to agents that are asleep or have just been woken: docs/reference.md "Sessions of agents".
import type { ServiceDialer } from '../../adapters/service_dialer.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';
import { SESSION } from '../../settings/agent_limits.ts';

/** Wakes an agent, or joins a start in progress. Fails as the wake does. */
export type WakeAgent = (name: string) => Promise<Pick<GatewayRoute, 'pid'>>;

export class AgentWakes {
  private readonly wake: WakeAgent;
  private readonly dialer: Pick<ServiceDialer, 'listening'>;
  /** Agents that are expected to listen soon, by name. Each resolves with the first process. */
  private readonly waking = new Map<string, Promise<GatewayRoute['pid']>>();
  private asleep: ReadonlySet<string> = new Set();
  /** Agents that something else has woken: until when requests wait for them to listen (monotonic ms). */
  private readonly wokenUntil = new Map<string, number>();

  constructor(wake: WakeAgent, dialer: Pick<ServiceDialer, 'listening'>) {
    this.wake = wake;
    this.dialer = dialer;
  }

  /** Finds out who has been woken since the last rows. */
  note(rows: readonly GatewayRoute[]): void {
    const now = performance.now();
    for (const [name, until] of this.wokenUntil) if (until <= now) this.wokenUntil.delete(name);
    for (const { isAsleep, name } of rows)
      if (!isAsleep && this.asleep.has(name)) this.wokenUntil.set(name, now + SESSION.listenMs);
    this.asleep = new Set(rows.flatMap(({ isAsleep, name }) => (isAsleep ? [name] : [])));
  }

  /** Whether the agent is being started after a sleep, so that a request waits for it. */
  isStarting({ isStarting, name }: GatewayRoute): boolean {
    return isStarting && this.isJustWoken(name);
  }

  /** Whether a request can be forwarded now: the agent is awake, and not still starting after a sleep. */
  isAwake({ isAsleep, name }: GatewayRoute): boolean {
    return !isAsleep && !this.waking.has(name) && !this.isJustWoken(name);
  }

  /** `route` once its agent is awake and, after a sleep, listens. Rejects as the wake does. */
  async awake(route: GatewayRoute): Promise<GatewayRoute> {
    if (this.isAwake(route)) return route;
    const pid = await (this.waking.get(route.name) ?? this.begin(route));
    return { ...route, isAsleep: false, pid };
  }

  private isJustWoken(name: string): boolean {
    return performance.now() < (this.wokenUntil.get(name) ?? 0);
  }

  /** Waits for an agent, for all requests that arrive meanwhile. */
  private begin(route: GatewayRoute): Promise<GatewayRoute['pid']> {
    const { name } = route;
    const waking = this.reach(route).finally(() => {
      this.waking.delete(name);
      this.wokenUntil.delete(name);
    });
    this.waking.set(name, waking);
    return waking;
  }

  private async reach(route: GatewayRoute): Promise<GatewayRoute['pid']> {
    const { isAsleep, name, port } = route;
    const pid = isAsleep || this.isStarting(route) ? (await this.wake(name)).pid : route.pid;
    await this.dialer.listening(port, SESSION.listenMs);
    return pid;
  }
}
