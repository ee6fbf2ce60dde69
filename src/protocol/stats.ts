export interface StatsRow {
  name: string;
  run: string;
  /** In cores: 1.0 is one busy core. */
  cpu: number;
  rssMB: number;
  /** Processor time since the row before, in seconds. */
  usedSeconds: number;
}

/** Measures every running service's process tree in one pass over the process table every 2 seconds. */
export interface StatsProtocol {
  /**
   * Measures a process from now on. Statistics events are emitted only while `running`. Above `limitMB` of
   * memory its service is told.
   */
  track(message: {
    name: string;
    run: string;
    pid: number;
    startTicks: number;
    running: boolean;
    limitMB?: number;
  }): null;
  forget(message: { name: string; run: string }): null;
}
