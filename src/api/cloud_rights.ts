// The role that each operation of the cloud part needs: docs/reference.md "Roles and grants". An operation
// without a row is a compile error.
import type { Role } from '../protocol/grants.ts';
import type { Operation } from './operation.ts';
import { OPERATIONS } from './operations.ts';

/**
 * What the client must have the role for:
 * `part`: anything; the handler leaves out the rest;
 * `workload`, `tether`: the workload in the path, or the workload of the tether in the path;
 * `cluster`: anything in the cluster in the path; the handler leaves out the rest;
 * `whole cluster`: everything in the cluster in the path;
 * `everything`: all clusters.
 */
export type RightScope = 'part' | 'workload' | 'tether' | 'cluster' | 'whole cluster' | 'everything';

export interface CloudRight {
  readonly role: Role;
  readonly scope: RightScope;
}

/** The resources of the cloud part, except the public proof of the server. */
type CloudResource =
  | 'clusters'
  | 'workloads'
  | 'tethers'
  | 'relay'
  | 'policies'
  | 'savings'
  | 'cloudEvents'
  | 'principals';

type Rights = {
  readonly [R in CloudResource]: { readonly [N in keyof (typeof OPERATIONS)[R]]: CloudRight };
};

const right = (role: Role, scope: RightScope): CloudRight => ({ role, scope });

const RIGHTS: Rights = {
  clusters: {
    list: right('viewer', 'part'),
    register: right('admin', 'everything'),
    read: right('viewer', 'cluster'),
    rights: right('operator', 'whole cluster'),
    change: right('admin', 'whole cluster'),
    remove: right('admin', 'whole cluster'),
    sync: right('operator', 'whole cluster'),
  },
  workloads: {
    list: right('viewer', 'part'),
    read: right('viewer', 'workload'),
    sleepMany: right('sleeper', 'part'),
    wakeMany: right('waker', 'part'),
    sleep: right('sleeper', 'workload'),
    wake: right('waker', 'workload'),
    autoSleep: right('viewer', 'workload'),
    setAutoSleep: right('operator', 'workload'),
    metrics: right('viewer', 'part'),
  },
  tethers: {
    create: right('waker', 'workload'),
    list: right('viewer', 'part'),
    activate: right('waker', 'tether'),
    deactivate: right('waker', 'tether'),
    remove: right('waker', 'tether'),
  },
  relay: {
    admit: right('waker', 'part'),
  },
  policies: {
    list: right('viewer', 'part'),
    read: right('viewer', 'part'),
    put: right('operator', 'everything'),
    remove: right('operator', 'everything'),
    preview: right('viewer', 'part'),
  },
  savings: {
    list: right('viewer', 'part'),
  },
  cloudEvents: {
    follow: right('viewer', 'part'),
    history: right('viewer', 'part'),
    operation: right('viewer', 'part'),
  },
  principals: {
    listTokens: right('admin', 'everything'),
    createToken: right('admin', 'everything'),
    revokeToken: right('admin', 'everything'),
    listGrants: right('admin', 'everything'),
    createGrant: right('admin', 'everything'),
    removeGrant: right('admin', 'everything'),
  },
};

const byId = new Map<string, CloudRight>(
  Object.entries(RIGHTS).flatMap(([resource, rights]) => {
    const operations: Readonly<Record<string, Operation>> = OPERATIONS[resource as CloudResource];
    return Object.entries(rights).map(([name, needed]): [string, CloudRight] => [
      operations[name]?.id ?? '',
      needed,
    ]);
  }),
);

/** The right that an operation needs; undefined: it is public, or not part of the cloud API. */
export const cloudRightOf = ({ id }: Pick<Operation, 'id'>): CloudRight | undefined => byId.get(id);
