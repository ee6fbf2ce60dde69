// The watches of all clusters, scope by scope: how far each has come, and since when one may have missed
// something.
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { scopeKey, type WatchPosition, type WorkloadScope } from '../../protocol/cloud_watches.ts';

interface ScopeState {
  readonly scope: WorkloadScope;
  position: WatchPosition | null;
  /** From when on changes may be missing; null: it is current. */
  staleSince: number | null;
}

export class WatchStates {
  /** By cluster, then by `scopeKey`. */
  private readonly states = new Map<string, Map<string, ScopeState>>();

  /** Where the watch of a scope goes on, if that is a version of the API server `origin`. */
  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null {
    const position = this.states.get(clusterId)?.get(scopeKey(scope))?.position;
    return position?.origin === origin ? position : null;
  }

  setPosition(position: WatchPosition): void {
    this.of(position.clusterId, position).position = position;
  }

  /** Returns whether that is news. */
  setStaleSince(clusterId: string, scope: WorkloadScope, since: number | null): boolean {
    const state = this.of(clusterId, scope);
    const isNews = state.staleSince !== since;
    state.staleSince = since;
    return isNews;
  }

  staleSinceOf({ clusterId, seen: { kind, namespace } }: StoredWorkload): number | null {
    const states = this.states.get(clusterId);
    const state =
      states?.get(scopeKey({ kind, namespace: null })) ?? states?.get(scopeKey({ kind, namespace }));
    return state?.staleSince ?? null;
  }

  /** Keeps what is known of `scopes` alone; returns those of which a position was known. */
  retain(clusterId: string, scopes: readonly WorkloadScope[]): WorkloadScope[] {
    const kept = new Set(scopes.map(scopeKey));
    const states = this.states.get(clusterId) ?? new Map<string, ScopeState>();
    const dropped = [...states].filter(([key]) => !kept.has(key));
    for (const [key] of dropped) states.delete(key);
    return dropped.flatMap(([, { scope, position }]) => (position ? [scope] : []));
  }

  private of(clusterId: string, { kind, namespace }: WorkloadScope): ScopeState {
    const states = this.states.get(clusterId) ?? new Map<string, ScopeState>();
    this.states.set(clusterId, states);
    const scope = { kind, namespace };
    const state = states.get(scopeKey(scope)) ?? { scope, position: null, staleSince: null };
    states.set(scopeKey(scope), state);
    return state;
  }
}
