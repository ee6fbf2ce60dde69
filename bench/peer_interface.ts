// What every compared supervisor can do, so that all get the same work.

export interface Supervisor {
  readonly name: string;
  /** Starts the supervisor; resolves when it answers. */
  start(): Promise<void>;
  /** Registers `one` and all the others, once. */
  define(): Promise<void>;
  /** The pids of the supervisor itself. */
  pids(): number[];
  /** Starts the service `one`; resolves when its process runs. */
  startOne(): Promise<unknown>;
  /** Resolves with the pid of `one`. */
  pidOfOne(): Promise<number>;
  stopOne(): Promise<unknown>;
  /** Resolves when the supervisor notices, from now on, that `one` has ended. */
  noticesEnd(): Promise<void>;
  /** Starts `SERVICES` services at once. */
  startAll(): Promise<unknown>;
  /** Starts `TALKERS` services, which print all the time. */
  startTalkers(): Promise<unknown>;
  /** Reads the state of all services once. */
  status(): Promise<unknown>;
  /** The processes reported as running, besides `one`. */
  running(): Promise<number[]>;
  /** Kills the supervisor without warning. */
  kill(): Promise<void>;
  /** Ends the supervisor and everything it supervises. */
  end(): Promise<void>;
}

/** Makes a supervisor that keeps all its files in `folder`; null where it is not available. */
export type Install = (folder: string) => Promise<Supervisor | null>;

export const SERVICES = 100;
export const NAMES: readonly string[] = Array.from({ length: SERVICES }, (_, index) => `svc-${index + 1}`);
export const TALKERS: readonly string[] = Array.from({ length: 10 }, (_, index) => `talk-${index + 1}`);
export const TALK = 'while :; do echo hello; sleep 0.2; done';
