export interface StatsRow {
  name: string;
  run: string;
  /** Cores: 1.0 is one core busy. */
  cpu: number;
  rssMB: number;
}

/** Measures every running service's process tree in one pass over the process table every 2 seconds. */
export interface StatsProtocol {
  /** A process to measure from now on; statistics events only while `running`. */
  track(message: { name: string; run: string; pid: number; startTicks: number; running: boolean }): null;
  forget(message: { name: string; run: string }): null;
}
