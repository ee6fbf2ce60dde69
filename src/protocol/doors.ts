// Doors: the listeners of services that may sleep. docs/reference.md "Sleep of services".

/** The process that connections are carried to. */
export interface DoorTarget {
  /** The run, so that a new process on the same port counts as another target. */
  run: string;
  port: number;
  /** The first process of the run. */
  pid: number;
}

/** The state a door should be in. */
export interface DoorSettings {
  /** The port that it listens on. */
  port: number;
  /** null: hold connections. */
  target: DoorTarget | null;
  /** Milliseconds without a connection or a byte after which it tells its service; null: never. */
  idleMs: number | null;
}

/** The listener of one service and the connections through it. Tells `service:<name>`. */
export interface DoorProtocol {
  /**
   * Listens, and carries held connections if there is a target. Harmless when repeated. Fails port_in_use,
   * and is then closed.
   */
  set(message: DoorSettings): null;
  /** If the door has been idle for its time, holds connections from now on. `held` false: it was not idle. */
  rest(message: Record<string, never>): { held: boolean };
  /** The service cannot be woken: resets held connections. */
  refuse(message: Record<string, never>): null;
  /** Closes the listener, resets held connections and ends the actor. Connections already carried go on. */
  close(message: Record<string, never>): null;
}

/** Stored while a service has an open door, across restarts of the daemon. */
export interface StoredDoor {
  /** The service has been asleep since this run ended; null: it never had a run. Absent: it is not asleep. */
  asleepAfter?: string | null;
  /** Identifies a sleep that has ended no run and whose event may be missing from the journal. */
  untold?: string;
  /** Its processes are not put to sleep when idle, until it is stopped or put to sleep. */
  awake?: true;
}
