// The events of the cloud part, which are its audit log: docs/reference.md "Cloud events".
import type { WorkloadKind } from './workload_kinds.ts';

export const CLOUD_EVENT_TYPES = [
  'operation.done',
  'operation.failed',
  'operation.interrupted',
  'workload.sleeping',
  'workload.asleep',
  'workload.waking',
  'workload.awake',
  'workload.auto_slept',
  'workload.failed',
  'workload.conflict',
  'workload.left',
  'cluster.reachable',
  'cluster.unreachable',
  'cluster.refused',
  'cluster.accepted',
  'cluster.expiring',
  'tether.opened',
  'tether.closed',
  'token.created',
  'token.revoked',
  'grant.created',
  'grant.removed',
  'events.lost',
] as const;
export type CloudEventType = (typeof CLOUD_EVENT_TYPES)[number];

/** The subject of a cloud event or operation; null where it does not apply. */
export interface CloudSubject {
  clusterId: string | null;
  /** The name of the cluster. */
  cluster: string | null;
  namespace: string | null;
  kind: WorkloadKind | null;
  /** The name of the workload. */
  workload: string | null;
  workloadId: string | null;
  tetherId: string | null;
}

export const NO_SUBJECT: CloudSubject = {
  clusterId: null,
  cluster: null,
  namespace: null,
  kind: null,
  workload: null,
  workloadId: null,
  tetherId: null,
};

/** `who` of events that nobody requested. */
const BERTH_ITSELF = 'berth';

/** A cloud event to append. Omitted fields are null, and `who` is `berth`. Must not contain a secret. */
export interface NewCloudEvent extends Partial<CloudSubject> {
  type: CloudEventType;
  who?: string;
  /** The address that the request came from. */
  from?: string | null;
  /** The operation's name in the API, such as `sleepWorkload`. */
  action?: string | null;
  operationId?: string | null;
  /** `ok`, or an error code. */
  result?: string;
  reason?: string | null;
}

/** An event committed together with the change it reports, not yet in the journal. */
export interface CommittedCloudEvent {
  /** A ULID: events of one thread sort in the order in which they happened. */
  key: string;
  /** Epoch milliseconds. */
  at: number;
  event: NewCloudEvent;
}

/** A cloud event as it is stored, streamed and listed. */
export interface CloudEventRecord {
  id: number;
  type: CloudEventType;
  /** The whole event as clients see it, as JSON text, formatted only once. */
  data: string;
}

/** Selects events; null: all. Times are epoch milliseconds; `until` is inclusive. */
export interface CloudEventFilter {
  types: readonly string[] | null;
  clusterId: string | null;
  namespaces: readonly string[] | null;
  workloadId: string | null;
  who: string | null;
  operationId: string | null;
  since: number | null;
  until: number | null;
  /** What the caller may see; absent: everything. */
  within?: readonly EventScope[];
}

/** A set of events that someone may see; null: all. */
export interface EventScope {
  readonly clusterId: string | null;
  readonly namespace: string | null;
  readonly workloadIds: readonly string[] | null;
}

/** The fields of an event in JSON that a scope depends on. */
export interface EventPlace {
  cluster_id: string | null;
  namespace: string | null;
  workload_id: string | null;
}

function isInScope(scope: EventScope, event: EventPlace): boolean {
  const { clusterId, namespace, workloadIds } = scope;
  return (
    (clusterId === null || clusterId === event.cluster_id) &&
    (namespace === null || namespace === event.namespace) &&
    (workloadIds === null || workloadIds.includes(event.workload_id ?? ''))
  );
}

/**
 * Formats the event `id` of `at` (epoch milliseconds) as clients see it. The order of its fields is part of
 * the format.
 */
export const cloudEventJson = (id: number, at: number, event: NewCloudEvent): string =>
  JSON.stringify({
    id,
    at: new Date(at).toISOString(),
    type: event.type,
    who: event.who ?? BERTH_ITSELF,
    from: event.from ?? null,
    action: event.action ?? null,
    operation_id: event.operationId ?? null,
    result: event.result ?? 'ok',
    cluster_id: event.clusterId ?? null,
    cluster: event.cluster ?? null,
    namespace: event.namespace ?? null,
    kind: event.kind ?? null,
    workload: event.workload ?? null,
    workload_id: event.workloadId ?? null,
    tether_id: event.tetherId ?? null,
    reason: event.reason ?? null,
  });

const ID_AND_TIME = /^\{"id":([1-9]\d{0,15}),"at":"([^"]{24})","type":"([^"]+)"/;

/** The time of the event `data` as clients see it; '' for a damaged line. */
export const timeOfCloudEvent = (data: string): string => ID_AND_TIME.exec(data)?.[2] ?? '';

/** Parses a stored line; null for a damaged one. */
export function parseCloudEvent(line: string): (CloudEventRecord & { at: string }) | null {
  const [, id, at = '', type = ''] = ID_AND_TIME.exec(line) ?? [];
  const known = CLOUD_EVENT_TYPES.find((one) => one === type);
  return id === undefined || !known || !line.endsWith('}')
    ? null
    : { id: Number(id), type: known, at, data: line };
}

/** Whether one of `scopes` covers the event `data`; false for a damaged line. */
function isWithin(data: string, scopes: readonly EventScope[]): boolean {
  try {
    const event: EventPlace = JSON.parse(data);
    return scopes.some((scope) => isInScope(scope, event));
  } catch {
    return false;
  }
}

/**
 * Returns whether `filter` selects an event, given as JSON. Without `within` no line is parsed: quotation
 * marks within values are escaped, so `"field":"value"` can only match the field itself.
 */
export function cloudEventMatcher(filter: CloudEventFilter): (data: string) => boolean {
  const fields: [field: string, values: readonly string[] | null][] = [
    ['type', filter.types],
    ['cluster_id', filter.clusterId === null ? null : [filter.clusterId]],
    ['namespace', filter.namespaces],
    ['workload_id', filter.workloadId === null ? null : [filter.workloadId]],
    ['who', filter.who === null ? null : [filter.who]],
    ['operation_id', filter.operationId === null ? null : [filter.operationId]],
  ];
  const wanted = fields.flatMap(([field, values]) =>
    values === null ? [] : [values.map((value) => `"${field}":${JSON.stringify(value)}`)],
  );
  const { within } = filter;
  const since = filter.since === null ? '' : new Date(filter.since).toISOString();
  const until = filter.until === null ? '~' : new Date(filter.until).toISOString();
  const isTimed = filter.since !== null || filter.until !== null;
  return (data) => {
    if (!wanted.every((texts) => texts.some((text) => data.includes(text)))) return false;
    const at = isTimed ? timeOfCloudEvent(data) : '';
    if (isTimed && !(since <= at && at <= until)) return false;
    return within === undefined || isWithin(data, within);
  };
}

/** Owns the journal of cloud events. Asks nobody. */
export interface CloudEventsProtocol {
  /**
   * Replies once the events are on disk. `isStored` false: the disk is full, and a bounded number of events
   * wait in memory until there is room.
   */
  append(message: { events: NewCloudEvent[] }): { isStored: boolean };
  /**
   * Like `append`, for events that carry their own time. `isRepeated`: an earlier attempt may have stored
   * some of them; those are not stored again.
   */
  appendCommitted(message: { events: readonly CommittedCloudEvent[]; isRepeated: boolean }): {
    isStored: boolean;
  };
  /** From clusters: their names by id, for use in events from now on. */
  named(message: { names: Readonly<Record<string, string>> }): null;
  /**
   * The newest stored events selected by the filter, newest first, with ids below `before` (null: no bound).
   * `next`: the `before` of the next page; null: this is the last one.
   */
  page(message: { filter: CloudEventFilter; before: number | null; limit: number }): {
    rows: string[];
    next: number | null;
  };
  /**
   * The stored events after `after` selected by the filter, oldest first. `lookedTo`: the last id that was
   * examined; if below `after`, no such id was ever assigned.
   */
  replay(message: { filter: CloudEventFilter; after: number; limit: number }): {
    events: CloudEventRecord[];
    lookedTo: number;
    /** The oldest stored id; 0 if none. */
    oldest: number;
  };
  /** Returns the newest events. From now on `cloudviews.events` gets every new one. */
  subscribe(message: Record<string, never>): {
    kept: CloudEventRecord[];
    /** The newest id; 0 when there is none. */
    lastId: number;
    /** The oldest id from which none is missing in `kept`. */
    completeFrom: number;
  };
}
