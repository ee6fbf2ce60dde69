// Doors: the listeners of services that may sleep. docs/reference.md "Sleep of services".

/** A process that connections are carried to. */
export interface DoorTarget {
  /** The run, so that a new process on the same port is another target. */
  run: string;
  port: number;
  /** The first process of the run. */
  pid: number;
}

/** What a door does. */
export interface DoorSettings {
  /** The port that it listens on. */
  port: number;
  /** null: connections are held. */
  target: DoorTarget | null;
  /** Time without a connection and without a byte after which it tells its service; null: it never does. */
  idleMs: number | null;
}

/** The listener of one service, and the connections through it. Tells `service:<name>`. */
export interface DoorProtocol {
  /**
   * Listens, and carries what is held if there is a target. Harmless when repeated. Fails port_in_use; it is
   * closed then.
   */
  set(message: DoorSettings): null;
  /** Holds connections from now on if the door has been idle for its time. `held` false: it has not. */
  rest(message: Record<string, never>): { held: boolean };
  /** The service cannot be woken: resets what is held. */
  refuse(message: Record<string, never>): null;
  /** Closes the listener, resets what is held, and ends the actor. Other connections go on. */
  close(message: Record<string, never>): null;
}

/** In the store while the door of a service is open, now and after a restart of the daemon. */
export interface StoredDoor {
  /** The service sleeps since the end of this run; null: it had none. Absent: it was not put to sleep. */
  asleepAfter?: string | null;
}
