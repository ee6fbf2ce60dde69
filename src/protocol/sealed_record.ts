// Records of services whose environment cannot be unsealed: docs/reference.md "Environment of a process".
import type { Failure } from '../runtime/actor.ts';
import { fail } from './errors.ts';
import type { StoredService } from './service.ts';

/** Whether the environment in `stored`, as read from the store, could not be unsealed. */
export const isSealed = ({ sealedEnv, baseEnv }: StoredService): boolean =>
  sealedEnv !== undefined || baseEnv?.sealed !== undefined;

/** The failure key_unusable of a start of `stored`, if its environment could not be unsealed; or null. */
export const sealedFailure = (stored: StoredService): Failure | null =>
  isSealed(stored)
    ? fail(
        'key_unusable',
        `${stored.spec.name} cannot be started: its env is sealed with a key that is not in the state directory`,
        { hint: 'Put the file env.key back that sealed it, or register the service with its env again.' },
      )
    : null;

/** Throws the failure of `sealedFailure`, if there is one. */
export function refuseSealed(stored: StoredService): void {
  const failure = sealedFailure(stored);
  if (failure) throw failure;
}
