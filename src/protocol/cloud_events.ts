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

/** What a cloud event or operation is about; null where there is no such thing. */
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

/** Who acts where nobody has asked. */
const BERTH_ITSELF = 'berth';

/** A cloud event to append. What is left out is null, and `who` is `berth`. Holds no secret. */
export interface NewCloudEvent extends Partial<CloudSubject> {
  type: CloudEventType;
  who?: string;
  /** The address that the request came from. */
  from?: string | null;
  /** The API's name of what was asked for, such as `sleepWorkload`. */
  action?: string | null;
  operationId?: string | null;
  /** `ok`, or the code of the error. */
  result?: string;
  reason?: string | null;
}

/** An event that is committed with the change it tells of, and is on its way to the journal. */
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
  /** The whole event as clients see it, as JSON text: formatted once. */
  data: string;
}

/** Which events are wanted; null: all. Times are epoch milliseconds, `until` included. */
export interface CloudEventFilter {
  types: readonly string[] | null;
  clusterId: string | null;
  namespaces: readonly string[] | null;
  workloadId: string | null;
  who: string | null;
  operationId: string | null;
  since: number | null;
  until: number | null;
  /** What whoever asks may know of; absent: everything. */
  within?: readonly EventScope[];
}

/** Events that somebody may know of; null: all. */
export interface EventScope {
  readonly clusterId: string | null;
  readonly namespace: string | null;
  readonly workloadIds: readonly string[] | null;
}

/** What a scope looks at of an event in JSON. */
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
 * The event `id` of `at` (epoch milliseconds) as clients see it. The order of its fields belongs to the
 * format.
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

/** The time of the event `data`, as clients see it; '' for a damaged line. */
export const timeOfCloudEvent = (data: string): string => ID_AND_TIME.exec(data)?.[2] ?? '';

/** The event of a stored line; null for a damaged one. */
export function parseCloudEvent(line: string): (CloudEventRecord & { at: string }) | null {
  const [, id, at = '', type = ''] = ID_AND_TIME.exec(line) ?? [];
  const known = CLOUD_EVENT_TYPES.find((one) => one === type);
  return id === undefined || !known || !line.endsWith('}')
    ? null
    : { id: Number(id), type: known, at, data: line };
}

/** Whether one of `scopes` has the event `data`; false for a damaged line. */
function isWithin(data: string, scopes: readonly EventScope[]): boolean {
  try {
    const event: EventPlace = JSON.parse(data);
    return scopes.some((scope) => isInScope(scope, event));
  } catch {
    return false;
  }
}

/**
 * Whether `filter` has an event, given as its JSON. Without `within` no line is parsed: a quotation mark
 * within a value is escaped, so `"field":"value"` occurs as the field alone.
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
   * Replies once the events are on disk. `isStored` false: the disk is full; they wait in memory, a bounded
   * number of them, until there is room.
   */
  append(message: { events: NewCloudEvent[] }): { isStored: boolean };
  /**
   * As `append`, with events of the time at which they happened. `isRepeated`: an earlier attempt may have
   * stored some of them; those are not stored again.
   */
  appendCommitted(message: { events: readonly CommittedCloudEvent[]; isRepeated: boolean }): {
    isStored: boolean;
  };
  /** From clusters: their names by id, which events of them have from now on. */
  named(message: { names: Readonly<Record<string, string>> }): null;
  /**
   * The newest stored events that the filter has, newest first, with ids below `before` (null: all of them).
   * `next`: the `before` of the next page; null: there is none.
   */
  page(message: { filter: CloudEventFilter; before: number | null; limit: number }): {
    rows: string[];
    next: number | null;
  };
  /**
   * The stored events after `after` that the filter has, oldest first. `lookedTo`: the last id that was
   * looked at; below `after`: no such id was ever given.
   */
  replay(message: { filter: CloudEventFilter; after: number; limit: number }): {
    events: CloudEventRecord[];
    lookedTo: number;
    /** The oldest id that is stored; 0 without one. */
    oldest: number;
  };
  /** Whether one of the newest events tells that an operation has ended with `result`. */
  hasEnd(message: { operationId: string; result: string }): { hasEnd: boolean };
  /** Returns the newest events. From now on `cloudviews.events` gets every new one. */
  subscribe(message: Record<string, never>): {
    kept: CloudEventRecord[];
    /** The newest id; 0 when there is none. */
    lastId: number;
    /** The oldest id from which none is missing in `kept`. */
    completeFrom: number;
  };
}
