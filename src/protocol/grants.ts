// Roles, and the scopes they are granted for: docs/reference.md "Roles and grants". Pure.
import type { LabelText } from './labels.ts';
import { SelectorIndex } from './selector_index.ts';

export const ROLES = ['viewer', 'waker', 'sleeper', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

/** The roles that each role includes. */
const INCLUDED: Readonly<Record<Role, readonly Role[]>> = {
  viewer: ['viewer'],
  waker: ['viewer', 'waker'],
  sleeper: ['viewer', 'sleeper'],
  operator: ['viewer', 'waker', 'sleeper', 'operator'],
  admin: ROLES,
};

/** What a role is granted for; null: all clusters, all namespaces, any labels. */
export interface GrantScope {
  readonly clusterId: string | null;
  readonly namespace: string | null;
  /** A label selector. */
  readonly labels: string | null;
}

/**
 * A role for `subject`: `token:` and the id of a token, or `user:` or `group:` and a name from the issuer.
 */
export interface StoredGrant extends GrantScope {
  readonly id: string;
  readonly subject: string;
  readonly role: Role;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** As `who` in the audit log. */
  readonly createdBy: string;
}

/** Grants by subject. Searching thousands of grants for each subject would block the thread. */
export function grantsBySubject(grants: Iterable<StoredGrant>): ReadonlyMap<string, readonly StoredGrant[]> {
  const found = new Map<string, StoredGrant[]>();
  for (const grant of grants) {
    const known = found.get(grant.subject);
    if (known) known.push(grant);
    else found.set(grant.subject, [grant]);
  }
  return found;
}

/** The attributes of a workload that scopes depend on. */
export interface PlacedWorkload {
  readonly clusterId: string;
  readonly namespace: string;
  readonly labels: LabelText;
}

/** Restricts a selection of workloads to scopes; absent: no restriction. */
export interface Within {
  readonly within?: readonly GrantScope[];
}

/** The part of `workloads` that locates a workload. */
export interface PlacedWorkloadsProtocol {
  /** null: there is no such workload, or it is no longer in the cluster. */
  placeOf(message: { id: string }): PlacedWorkload | null;
}

/** A cluster and a namespace in it, as one text; null: all of them. Neither name has a slash. */
const areaOf = (clusterId: string | null, namespace: string | null): string =>
  `${clusterId ?? ''}/${namespace ?? ''}`;

/**
 * Returns whether one of `scopes` covers a workload. Hundreds of scopes with large selectors cost a workload
 * little more than one: see SelectorIndex.
 */
export function scopeMatcher(scopes: readonly GrantScope[]): (place: PlacedWorkload) => boolean {
  const selectors = new Map<string, Set<string>>();
  const whole = new Set<string>();
  for (const { clusterId, namespace, labels } of scopes) {
    const area = areaOf(clusterId, namespace);
    if (labels === null) whole.add(area);
    else selectors.set(area, (selectors.get(area) ?? new Set()).add(labels));
  }
  const indexes = new Map([...selectors].map(([area, some]) => [area, new SelectorIndex(some)]));
  return ({ clusterId, namespace, labels }) => {
    const areas = [
      ...[areaOf(null, null), areaOf(clusterId, null)],
      ...[areaOf(null, namespace), areaOf(clusterId, namespace)],
    ];
    return areas.some((area) => whole.has(area)) || areas.some((area) => indexes.get(area)?.matches(labels));
  };
}

let versions = 0;

/** Someone with rights, as they were at one time. */
export class Principal {
  /** Unique to each object. */
  readonly version: number;
  /** Grants to any of these apply. */
  readonly subjects: readonly string[];
  /** As shown in the audit log, such as `token:ci`. */
  readonly who: string;
  /** Epoch milliseconds. Earlier requests under the same name were somebody else's. */
  readonly since: number;
  /** When it expires (epoch milliseconds); null: its owner decides. */
  readonly until: number | null;
  private readonly grants: readonly StoredGrant[];
  private readonly matchers = new Map<Role, (place: PlacedWorkload) => boolean>();

  /** `grants`: those for its subjects. */
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

  /** The scopes in which it has the rights of `role`. */
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

  /** Whether it has the rights of `role` for every workload of a namespace. */
  mayInNamespace(role: Role, clusterId: string, namespace: string): boolean {
    return this.scopes(role).some(
      (scope) =>
        (scope.clusterId ?? clusterId) === clusterId &&
        (scope.namespace ?? namespace) === namespace &&
        scope.labels === null,
    );
  }

  /** Whether it has the rights of `role` for a cluster and every workload in it. */
  mayInCluster(role: Role, id: string): boolean {
    return this.scopes(role).some(
      ({ clusterId, namespace, labels }) => (clusterId ?? id) === id && namespace === null && labels === null,
    );
  }

  /** Whether it has the rights of `role` for all clusters. */
  mayEverywhere(role: Role): boolean {
    return this.scopes(role).some(
      ({ clusterId, namespace, labels }) => clusterId === null && namespace === null && labels === null,
    );
  }

  /** Whether it has the rights of `role` for anything. */
  maySomewhere(role: Role): boolean {
    return this.scopes(role).length > 0;
  }

  /** Whether it may have rights for anything in a cluster. */
  knowsCluster(id: string): boolean {
    return this.grants.some(({ clusterId }) => (clusterId ?? id) === id);
  }
}

/** `principal` if its view is restricted; null if it sees everything. */
export const narrowed = (principal: Principal | null): Principal | null =>
  principal?.mayEverywhere('viewer') ? null : principal;
