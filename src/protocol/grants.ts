// Roles, and what of the clusters each is granted for: docs/reference.md "Roles and grants". Pure.
import { type LabelText, parseSelector } from './labels.ts';

export const ROLES = ['viewer', 'waker', 'sleeper', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** The roles whose rights each role has. */
const INCLUDED: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer'],
  waker: ['viewer', 'waker'],
  sleeper: ['viewer', 'sleeper'],
  operator: ['viewer', 'waker', 'sleeper', 'operator'],
  admin: ROLES,
};

/** What a role is granted for; null: all clusters, all namespaces, whatever the labels. */
export interface GrantScope {
  readonly clusterId: string | null;
  readonly namespace: string | null;
  /** A label selector. */
  readonly labels: string | null;
}

/**
 * A role for whoever is `subject`: `token:` and the id of a token, or `user:` or `group:` and the name that
 * the issuer gives.
 */
export interface StoredGrant extends GrantScope {
  readonly id: string;
  readonly subject: string;
  readonly role: Role;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** As `who` of the audit log. */
  readonly createdBy: string;
}

/** What scopes look at of a workload. */
export interface PlacedWorkload {
  readonly clusterId: string;
  readonly namespace: string;
  readonly labels: LabelText;
}

/** Restricts a selection of workloads; absent: everything. */
export interface Within {
  readonly within?: readonly GrantScope[];
}

/** What `workloads` knows of places. */
export interface PlacedWorkloadsProtocol {
  /** null: there is no such workload, or the cluster no longer has it. */
  placeOf(message: { id: string }): PlacedWorkload | null;
}

function matcherOf({ clusterId, namespace, labels }: GrantScope): (place: PlacedWorkload) => boolean {
  const hasLabels = labels === null ? null : parseSelector(labels);
  return (place) =>
    (clusterId === null || clusterId === place.clusterId) &&
    (namespace === null || namespace === place.namespace) &&
    (hasLabels === null || hasLabels(place.labels));
}

/** Whether one of `scopes` has a workload. */
export function scopeMatcher(scopes: readonly GrantScope[]): (place: PlacedWorkload) => boolean {
  const matchers = scopes.map(matcherOf);
  return (place) => matchers.some((isIn) => isIn(place));
}

let versions = 0;

/** Somebody with some rights, as they are at one time. */
export class Principal {
  /** No two have the same. */
  readonly version: number;
  /** Grants to any of these count. */
  readonly subjects: readonly string[];
  /** In the audit log, such as `token:ci`. */
  readonly who: string;
  /** What was asked for before under the same name was somebody else's (epoch milliseconds). */
  readonly since: number;
  /** From then on it is nobody (epoch milliseconds); null: its owner says when. */
  readonly until: number | null;
  private readonly grants: readonly StoredGrant[];
  private readonly matchers = new Map<Role, (place: PlacedWorkload) => boolean>();

  /** `grants`: those to its subjects. */
  constructor(
    { subjects, who, since, until }: Pick<Principal, 'subjects' | 'who' | 'since' | 'until'>,
    grants: readonly StoredGrant[],
  ) {
    versions += 1;
    this.version = versions;
    this.subjects = subjects;
    this.who = who;
    this.since = since;
    this.until = until;
    this.grants = grants;
  }

  /** Where it has the rights of `role`. */
  scopes(role: Role): readonly GrantScope[] {
    return this.grants.filter((grant) => INCLUDED[grant.role].includes(role));
  }

  /** Whether it has the rights of `role` for a workload. */
  may(role: Role, place: PlacedWorkload): boolean {
    let matcher = this.matchers.get(role);
    if (!matcher) {
      matcher = scopeMatcher(this.scopes(role));
      this.matchers.set(role, matcher);
    }
    return matcher(place);
  }

  /** For every workload of a namespace. */
  mayInNamespace(role: Role, clusterId: string, namespace: string): boolean {
    return this.scopes(role).some(
      (scope) =>
        (scope.clusterId ?? clusterId) === clusterId &&
        (scope.namespace ?? namespace) === namespace &&
        scope.labels === null,
    );
  }

  /** For every workload of a cluster, and the cluster itself. */
  mayInCluster(role: Role, id: string): boolean {
    return this.scopes(role).some(
      ({ clusterId, namespace, labels }) => (clusterId ?? id) === id && namespace === null && labels === null,
    );
  }

  /** For all clusters. */
  mayEverywhere(role: Role): boolean {
    return this.scopes(role).some(
      ({ clusterId, namespace, labels }) => clusterId === null && namespace === null && labels === null,
    );
  }

  /** For something. */
  maySomewhere(role: Role): boolean {
    return this.scopes(role).length > 0;
  }

  /** Whether it may have rights for something of a cluster. */
  knowsCluster(id: string): boolean {
    return this.grants.some(({ clusterId }) => (clusterId ?? id) === id);
  }
}

/** `principal`, if there is something that it may not see; null: it sees everything. */
export const narrowed = (principal: Principal | null): Principal | null =>
  principal?.mayEverywhere('viewer') ? null : principal;
