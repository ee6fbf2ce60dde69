// Events: the journal's record and the messages of the `events` actor. docs/reference.md "Events".

export const EVENT_TYPES = [
  'service.registered',
  'service.started',
  'service.stopped',
  'service.crashed',
  'service.stats',
  'service.removed',
  'port.conflict',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

export interface NewEvent {
  type: EventType;
  /** What `?names=` filters by: the service's name. */
  name: string;
  run: string | null;
  /**
   * The fields of docs/reference.md "Event types" in that order, as JSON text: made once, sent as it is to
   * every subscriber.
   */
  data: string;
  /** The run has one event of this type: it is not appended again (a daemon was killed between two steps). */
  once?: true;
}

export interface EventRecord {
  id: number;
  type: EventType;
  name: string;
  run: string | null;
  /** Epoch milliseconds. */
  at: number;
  data: string;
}

/** What the journal must know of earlier lives, in the store. */
export interface EventCheckpoint {
  /** No id above it has been given. */
  ahead: number;
  /** The boot of the machine in which it was stored. */
  boot: string;
  /** The oldest id from which nothing but statistics was missing when it was stored. */
  completeFrom: number;
}

export interface EventsProtocol {
  /** In the journal file (written, not synced) before the reply and before any subscriber sees it. */
  append(message: { events: NewEvent[] }): { lastId: number };
  history(message: { types: string[] | null; names: string[] | null; since: number | null; limit: number }): {
    events: EventRecord[];
  };
  /**
   * What a front needs to serve replays by itself, and from now on it is told of every new event
   * (`views.events`).
   */
  subscribe(message: Record<string, never>): {
    /** The union of the last 1024 of any type and the last 1024 that are not statistics, in id order. */
    kept: EventRecord[];
    /** The newest id ever given; 0 when there is none. */
    lastId: number;
    /** The oldest id from which nothing but statistics is missing. */
    completeFrom: number;
  };
}
