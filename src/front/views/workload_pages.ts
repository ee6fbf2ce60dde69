// Lists of workloads, filtered and in pages: docs/reference.md "Lists of workloads". A list is processed in
// slices, so that the front answers other requests in between, however many workloads there are.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WorkloadSelection } from '../../protocol/cloud.ts';
import { fail } from '../../protocol/errors.ts';
import type { Principal } from '../../protocol/grants.ts';
import { selectorOfWorkloads } from '../../protocol/workload_selection.ts';
import { type CloudViews, type WorkloadEntry, workloadJson } from './cloud_views.ts';

/** The place of a workload in the list of all. */
export type WorkloadPlace = readonly [clusterId: string, key: string];

/** About 2 ms of filtering, or of copying JSON. */
const SLICE = 1_024;

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

function* slicesOf(
  views: CloudViews,
  clusterOnly: string | null,
  isSelected: (entry: WorkloadEntry) => boolean,
  after: WorkloadPlace | null,
): Generator<WorkloadEntry[]> {
  const [firstCluster, lastKey] = after ?? ['', ''];
  let found: WorkloadEntry[] = [];
  let seen = 0;
  for (const [clusterId, entries] of views.workloadsInOrder()) {
    if (clusterId < firstCluster || (clusterOnly ?? clusterId) !== clusterId) continue;
    let index = clusterId === firstCluster ? indexAfter(entries, lastKey) : 0;
    while (index < entries.length) {
      const part = entries.slice(index, index + SLICE - seen);
      for (const entry of part) if (isSelected(entry)) found.push(entry);
      index += part.length;
      seen += part.length;
      if (seen < SLICE) continue;
      yield found;
      found = [];
      seen = 0;
    }
  }
  yield found;
}

/**
 * The workloads after `after` (null: from the first on) selected by `selection`, by cluster and key, as one
 * array per slice of the list; arrays may be empty. Later additions and removals may or may not be included.
 * Throws invalid_spec for an invalid selector.
 */
export function workloadSlices(
  views: CloudViews,
  selection: WorkloadSelection,
  after: WorkloadPlace | null = null,
): Generator<WorkloadEntry[]> {
  return slicesOf(views, selection.clusterId, selectorOfWorkloads(selection), after);
}

/** The JSON of workloads with commas between them. */
const itemsJson = (entries: readonly WorkloadEntry[], viewer: Principal | null): string =>
  entries.map((entry) => workloadJson(entry, viewer)).join(',');

/** The JSON array of what `slices` has, in parts, for `viewer`. */
export function* arrayParts(
  slices: Iterable<readonly WorkloadEntry[]>,
  viewer: Principal | null,
): Generator<string> {
  let separator = '[';
  for (const slice of slices) {
    if (slice.length === 0) yield '';
    else yield separator + itemsJson(slice, viewer);
    if (slice.length > 0) separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}

/** The token of a page that begins after `place`: opaque to clients. */
const pageToken = (place: WorkloadPlace): string => Buffer.from(JSON.stringify(place)).toString('base64url');

/** Reads a token. Throws invalid_spec for a token that no page returned. */
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

/** One page of at most `limit` workloads for `viewer`, and the token of the next one; null: there is none. */
export async function workloadPage(
  views: CloudViews,
  selection: WorkloadSelection,
  limit: number,
  after: WorkloadPlace | null,
  viewer: Principal | null,
): Promise<{ json: string; next: string | null }> {
  const found: WorkloadEntry[] = [];
  let isFirst = true;
  for (const slice of workloadSlices(views, selection, after)) {
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
    json: `[${itemsJson(page, viewer)}]`,
    next: hasMore ? pageToken([last.clusterId, last.key]) : null,
  };
}
