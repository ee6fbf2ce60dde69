// Events: the journal's record and the messages of the `events` actor. docs/reference.md "Events".

export const EVENT_TYPES = [
  'service.registered',
  'service.started',
  'service.stopped',
  'service.crashed',
  'service.completed',
  'service.unhealthy',
  'service.stats',
  'service.removed',
  'service.changed',
  'service.slept',
  'service.woke',
  'service.wake_failed',
  'agent.forced',
  'agent.state',
  'agent.slept',
  'agent.woke',
  'port.conflict',
  'cluster.refused',
  'cluster.accepted',
  'cluster.expiring',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** All types except statistics, which come every two seconds and would crowd out everything else. */
export const LIFECYCLE_EVENT_TYPES: readonly EventType[] = EVENT_TYPES.filter(
  (type) => type !== 'service.stats',
);

/** The events that end a run. Each run has exactly one of them, once. */
export const RUN_END_TYPES = [
  'service.stopped',
  'service.slept',
  'agent.slept',
  'service.crashed',
  'service.completed',
] as const satisfies readonly EventType[];

export interface NewEvent {
  type: EventType;
  /** The name of the service or cluster, which `?names=` filters by. */
  name: string;
  run: string | null;
  /**
   * The fields of docs/reference.md "Event types" in that order, as JSON text: formatted once, sent unchanged
   * to every subscriber.
   */
  data: string;
  /**
   * The run has at most one event of this type, and at most one of RUN_END_TYPES. A repeated append, as after
   * a kill between two steps, is ignored.
   */
  once?: true;
}

/** Two services want the same port. `run` null: according to their registrations. */
export const portConflictEvent = (
  port: number,
  { name, run }: { name: string; run: string | null },
  holder: string,
): NewEvent => ({
  type: 'port.conflict',
  name,
  run,
  data: JSON.stringify({ port, claimedBy: name, holder }),
  ...(run === null ? {} : { once: true }),
});

export interface EventRecord {
  id: number;
  type: EventType;
  name: string;
  run: string | null;
  /** Epoch milliseconds. */
  at: number;
  data: string;
}

/** What the journal must know about earlier daemons, kept in the store. */
export interface EventCheckpoint {
  /** No higher id has been assigned. */
  ahead: number;
  /** The boot id of the machine when it was stored. */
  boot: string;
  /** The oldest id from which no lifecycle event was missing when it was stored. */
  completeFrom: number;
}

export interface EventsProtocol {
  /**
   * Replies once the events are in the journal file (written, not synced). Subscribers see them only then.
   * `earlier`: the type of the event that a run already has in place of one of these.
   */
  append(message: { events: NewEvent[] }): { lastId: number; earlier?: EventType };
  history(message: { types: string[] | null; names: string[] | null; since: number | null; limit: number }): {
    events: EventRecord[];
  };
  /**
   * Returns the events after `after`, without statistics; null: none, only the journal's position. From now
   * on `notices.events` gets every new one.
   */
  watch(message: { after: number | null }): {
    events: EventRecord[];
    lastId: number;
    /** Whether no event after `after` is missing. */
    isComplete: boolean;
  };
  /**
   * Returns what a front needs to serve replays by itself. From now on it gets every new event
   * (`views.events`).
   */
  subscribe(message: Record<string, never>): {
    /**
     * The last 1024 events of any type and the last 1024 lifecycle events, each once, in the order of ids.
     */
    kept: EventRecord[];
    /** The newest assigned id; 0 when there is none. */
    lastId: number;
    /** The oldest id from which no lifecycle event is missing. */
    completeFrom: number;
  };
}
