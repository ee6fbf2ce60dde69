// What a tether's `last_error` says, by the names that users know. Pure.
import type { StoredTether } from '../../protocol/tethers.ts';

/** `error` (null: none) without the ids of the tether and of its workload. */
export function readableError(
  error: string | null,
  { id, workloadId, workload }: StoredTether,
): string | null {
  if (error === null) return null;
  const text = error.replaceAll(`tether:${id}`, 'its part of the daemon');
  if (!workload) return text;
  return text.replaceAll(workloadId, `${workload.kind} ${workload.namespace}/${workload.name}`);
}
