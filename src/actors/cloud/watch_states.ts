// The watches of all clusters by scope: how far each has come, and since when it may have missed changes.
import type { StoredWorkload } from '../../protocol/cloud.ts';
import { scopeKey, type WatchPosition, type WorkloadScope } from '../../protocol/cloud_watches.ts';
import { SAVINGS } from '../../settings/cloud_limits.ts';

interface ScopeState {
  readonly scope: WorkloadScope;
  position: WatchPosition | null;
  /** Since when changes may have been missed; null: it is up to date. */
  staleSince: number | null;
  /** Since when it has been current (monotonic milliseconds), and since when changes were missed before. */
  current: { since: number; missedFrom: number } | null;
}

export class WatchStates {
  /** By cluster, then by `scopeKey`. */
  private readonly states = new Map<string, Map<string, ScopeState>>();

  /** Where to resume the watch of a scope, if that is a version of the API server `origin`. */
  position(clusterId: string, scope: WorkloadScope, origin: string): WatchPosition | null {
    const position = this.states.get(clusterId)?.get(scopeKey(scope))?.position;
    return position?.origin === origin ? position : null;
  }

  setPosition(position: WatchPosition): void {
    this.of(position.clusterId, position).position = position;
  }

  /** Returns whether that is a change. `now`: monotonic milliseconds. */
  setStaleSince(clusterId: string, scope: WorkloadScope, since: number | null, now: number): boolean {
    const state = this.of(clusterId, scope);
    const isNews = state.staleSince !== since;
    if (since !== null) state.current = null;
    else if (state.staleSince !== null) state.current = { since: now, missedFrom: state.staleSince };
    state.staleSince = since;
    return isNews;
  }

  staleSinceOf(row: StoredWorkload): number | null {
    return this.stateOf(row)?.staleSince ?? null;
  }

  /**
   * Since when the reported changes of `row` may have been missed (`now`: monotonic milliseconds). A resumed
   * watch reports those first. null: they are current. Minus infinity: nothing was seen before.
   */
  missedFrom(row: StoredWorkload, now: number): number | null {
    const { staleSince = null, current = null, position = null } = this.stateOf(row) ?? {};
    if (staleSince === null && position === null) return Number.NEGATIVE_INFINITY;
    const isCatchingUp = current !== null && now - current.since < SAVINGS.catchUpMs;
    return staleSince ?? (isCatchingUp ? current.missedFrom : null);
  }

  /** Keeps only the states of `scopes`. Returns the dropped ones that had a position. */
  retain(clusterId: string, scopes: readonly WorkloadScope[]): WorkloadScope[] {
    const kept = new Set(scopes.map(scopeKey));
    const states = this.states.get(clusterId) ?? new Map<string, ScopeState>();
    const dropped = [...states].filter(([key]) => !kept.has(key));
    for (const [key] of dropped) states.delete(key);
    return dropped.flatMap(([, { scope, position }]) => (position ? [scope] : []));
  }

  private stateOf({ clusterId, seen: { kind, namespace } }: StoredWorkload): ScopeState | undefined {
    const states = this.states.get(clusterId);
    return states?.get(scopeKey({ kind, namespace: null })) ?? states?.get(scopeKey({ kind, namespace }));
  }

  private of(clusterId: string, { kind, namespace }: WorkloadScope): ScopeState {
    const states = this.states.get(clusterId) ?? new Map<string, ScopeState>();
    this.states.set(clusterId, states);
    const scope = { kind, namespace };
    const state = states.get(scopeKey(scope)) ?? { scope, position: null, staleSince: null, current: null };
    states.set(scopeKey(scope), state);
    return state;
  }
}
