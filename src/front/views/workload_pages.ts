// Lists of workloads by filter and in pages: docs/reference.md "Lists of workloads". A list is looked through
// a slice at a time: the front answers other requests in between, however many workloads there are.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WorkloadState } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { LabelMatch } from '../../protocol/labels.ts';
import type { CloudViews, WorkloadEntry } from './cloud_views.ts';

/** What a list is to contain; null: anything. */
export interface WorkloadFilter {
  clusterId: string | null;
  namespaces: readonly string[] | null;
  states: readonly WorkloadState[] | null;
  isSelected: LabelMatch | null;
}

export const ALL_WORKLOADS: WorkloadFilter = {
  clusterId: null,
  namespaces: null,
  states: null,
  isSelected: null,
};

/** The place of a workload in the list of all. */
export type WorkloadPlace = readonly [clusterId: string, key: string];

/** Some 2 ms of looking, or of copying their JSON. */
const SLICE = 2_048;

const passes = ({ namespaces, states, isSelected }: WorkloadFilter, entry: WorkloadEntry): boolean =>
  (namespaces === null || namespaces.includes(entry.namespace)) &&
  (states === null || states.includes(entry.state)) &&
  (isSelected === null || isSelected(entry.labels));

/** The index of the first entry after `key`. */
function indexAfter(entries: readonly WorkloadEntry[], key: string): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle]?.key ?? '') <= key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The workloads after `after` (null: from the first on) that pass `filter`, by cluster and key; one array for
 * each slice of the list, which may be empty. What is added or removed later may be missing or still there.
 */
export function* workloadSlices(
  views: CloudViews,
  filter: WorkloadFilter,
  after: WorkloadPlace | null = null,
): Generator<WorkloadEntry[]> {
  const [firstCluster, lastKey] = after ?? ['', ''];
  for (const [clusterId, entries] of views.workloadsInOrder()) {
    if (clusterId < firstCluster || (filter.clusterId !== null && filter.clusterId !== clusterId)) continue;
    const first = clusterId === firstCluster ? indexAfter(entries, lastKey) : 0;
    for (let index = first; index < entries.length; index += SLICE)
      yield entries.slice(index, index + SLICE).filter((entry) => passes(filter, entry));
  }
}

/** The JSON array of what `slices` has, in parts. */
export function* arrayParts(slices: Iterable<readonly WorkloadEntry[]>): Generator<string> {
  let separator = '[';
  for (const slice of slices) {
    if (slice.length === 0) yield '';
    else yield separator + slice.map(({ json }) => json).join(',');
    if (slice.length > 0) separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

/** The token of a page that begins after `place`: opaque to clients. */
const pageToken = (place: WorkloadPlace): string => Buffer.from(JSON.stringify(place)).toString('base64url');

/** Reads a token. Throws invalid_spec for one that no page had. */
export function readPageToken(token: string): WorkloadPlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (Array.isArray(place) && place.length === 2) {
      const [clusterId, key]: unknown[] = place;
      if (typeof clusterId === 'string' && typeof key === 'string') return [clusterId, key];
    }
  } catch {
    // Not ours either.
  }
  const message = 'continue must be the value from the Link of the page before';
  throw fail('invalid_spec', message, { details: [{ path: 'continue', message }] });
}

/** One page of at most `limit` workloads, and the token of the next one; null: there is none. */
export async function workloadPage(
  views: CloudViews,
  filter: WorkloadFilter,
  limit: number,
  after: WorkloadPlace | null,
): Promise<{ json: string; next: string | null }> {
  const found: WorkloadEntry[] = [];
  let isFirst = true;
  for (const slice of workloadSlices(views, filter, after)) {
    if (!isFirst) await nextTurn();
    isFirst = false;
    // Not `push(...slice)`, which puts each argument on the stack.
    for (const entry of slice) found.push(entry);
    if (found.length > limit) break;
  }
  const page = found.slice(0, limit);
  const last = page.at(-1);
  const hasMore = found.length > limit && last !== undefined;
  return {
    json: `[${page.map(({ json }) => json).join(',')}]`,
    next: hasMore ? pageToken([last.clusterId, last.key]) : null,
  };
}
