// What every supervisor of the comparison can do, so that the same work is asked of all.

export interface Supervisor {
  readonly name: string;
  /** Starts it; resolves when it answers. */
  start(): Promise<void>;
  /** Makes it know `one` and all the others, once. */
  define(): Promise<void>;
  /** Its own processes. */
  pids(): number[];
  /** Starts the service `one`; resolves when its process is there. */
  startOne(): Promise<unknown>;
  /** Resolves with the pid of `one`. */
  pidOfOne(): Promise<number>;
  stopOne(): Promise<unknown>;
  /** Resolves when it has noticed that `one` has ended, from now on. */
  noticesEnd(): Promise<void>;
  /** Starts `SERVICES` at once. */
  startAll(): Promise<unknown>;
  /** Starts `TALKERS`, which print all the time. */
  startTalkers(): Promise<unknown>;
  /** One read of the state of all services. */
  status(): Promise<unknown>;
  /** The processes it says are running, besides `one`. */
  running(): Promise<number[]>;
  /** Kills it without warning. */
  kill(): Promise<void>;
  /** Ends it and all it supervises. */
  end(): Promise<void>;
}

/** Makes a supervisor that keeps everything in `folder`; null where it is not to be had. */
export type Install = (folder: string) => Promise<Supervisor | null>;

export const SERVICES = 100;
export const NAMES: readonly string[] = Array.from({ length: SERVICES }, (_, index) => `svc-${index + 1}`);
export const TALKERS: readonly string[] = Array.from({ length: 10 }, (_, index) => `talk-${index + 1}`);
export const TALK = 'while :; do echo hello; sleep 0.2; done';
