// The operations that remove something, and how the store shows whether they have done so.
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { StoredOperation } from '../../protocol/cloud_operations.ts';
import type { ErrorCode } from '../../protocol/errors.ts';

interface Removal {
  /** What it removes, for the audit log. */
  readonly noun: string;
  /** The error when there is nothing to remove. */
  readonly missing: ErrorCode;
  isThere(store: CloudStore, target: string): Promise<boolean>;
  /** The response of a removal that was carried out. */
  answer(target: string): object;
}

const byId = (id: string): object => ({ removed: true, id });
const byName = (name: string): object => ({ removed: true, name });

/** By the operation's name in the API. */
const REMOVALS: Readonly<Record<string, Removal>> = {
  removeCluster: {
    noun: 'cluster',
    missing: 'unknown_cluster',
    isThere: async (store, id) => (await store.cluster(id)) !== null,
    answer: byId,
  },
  removeTether: {
    noun: 'tether',
    missing: 'unknown_tether',
    isThere: async (store, id) => (await store.tethers()).some((row) => row.id === id),
    answer: byId,
  },
  removePolicy: {
    noun: 'policy',
    missing: 'unknown_policy',
    isThere: async (store, name) => (await store.policies()).some((row) => row.name === name),
    answer: byName,
  },
  revokeToken: {
    noun: 'token',
    missing: 'unknown_token',
    isThere: async (store, name) => (await store.tokens()).some((row) => row.name === name),
    answer: byName,
  },
  removeGrant: {
    noun: 'grant',
    missing: 'unknown_grant',
    isThere: async (store, id) => (await store.grants()).some((row) => row.id === id),
    answer: byId,
  },
};

type Removing = Pick<StoredOperation, 'action' | 'target'>;

/**
 * The target of a request if the request is to remove it and it exists; null: there is nothing to remove;
 * undefined: the request is no removal.
 */
export async function presentTarget(
  store: CloudStore,
  { action, target }: Removing,
): Promise<string | null | undefined> {
  const removal = REMOVALS[action];
  if (!removal) return undefined;
  return target && (await removal.isThere(store, target)) ? target : null;
}

/** The answer of an operation that has removed its target; null: there was none. */
export function removedAnswer({ action, target }: Removing): object | null {
  return (target && REMOVALS[action]?.answer(target)) || null;
}

/** `reason`, with what the operation is to remove. */
export function namedReason({ action, target }: Removing, reason: string): string {
  const removal = target ? REMOVALS[action] : undefined;
  return removal ? `${removal.noun} ${target}; ${reason}` : reason;
}

/** Whether an operation failed with `code` because its target does not exist. */
export const isMissing = ({ action }: Removing, code: ErrorCode | undefined): boolean =>
  code !== undefined && REMOVALS[action]?.missing === code;
