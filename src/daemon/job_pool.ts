// The pool of job threads: pure functions on heavy or untrusted input, never an actor. The only file that
// imports piscina, and only at the first job.
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Piscina } from 'piscina';
import type { InputHashTask } from '../adapters/input_hash.ts';
import type { ClusterAccess } from '../protocol/clusters.ts';
import type {
  LogReadAnswer,
  LogReadTask,
  LogSearchAnswer,
  LogSearchTask,
  LogStart,
  LogStartTask,
} from '../protocol/logs.ts';
import type { LoadedRules, ReadStateTask, StateReading } from '../protocol/screen_rules.ts';
import type { DrawnScreen, ReadScreenTask, ScreenReading, ScreenTask } from '../protocol/terminal.ts';
import { Failure, isFailure } from '../runtime/actor.ts';
import { deferred } from '../runtime/deferred.ts';
import { entryUrl } from '../settings/build_paths.ts';
import { JOBS } from '../settings/limits.ts';
import { isLoadError, LOAD_RETRY_MS } from '../settings/load_part.ts';
import { reportCrash, reportUnloaded } from './daemon_log.ts';

/** Every job: one plain object in, one plain object out. `workers/jobs.ts` holds the functions. */
export interface JobTable {
  parseKubeconfig(task: { upload: string; now: number }): ClusterAccess;
  hashInputs(task: InputHashTask): string;
  drawScreen(task: ScreenTask): Promise<DrawnScreen | null>;
  readScreen(task: ReadScreenTask): Promise<ScreenReading | null>;
  loadRules(task: { folders: [user: string, own?: string] }): Promise<LoadedRules>;
  readState(task: ReadStateTask): Promise<StateReading>;
  searchLogs(task: LogSearchTask): Promise<LogSearchAnswer>;
  startMergedLogs(task: LogStartTask): Promise<LogStart[]>;
  readMergedLogs(task: LogReadTask): Promise<LogReadAnswer>;
}
type JobName = keyof JobTable;

/** Errors lose their class and fields between threads, so these are passed as data. */
type JobOutcome =
  | { value: unknown }
  | { failure: { code: string; message: string; detail: unknown } }
  /** A file of the program does not load. */
  | { unloaded: string };

interface JobCall {
  name: JobName;
  task: unknown;
}

type Threads = Piscina<JobCall, JobOutcome>;

export interface JobPool {
  /**
   * Fails with the Failure of the function; `overloaded` when the queue is full; `deadline` when it took too
   * long, which ends its thread; `crashed` for anything else; `gone` once the pool is closed. While the files
   * of the program do not load, it waits for them, and no time counts.
   */
  run<K extends JobName>(
    name: K,
    task: Parameters<JobTable[K]>[0],
  ): Promise<Awaited<ReturnType<JobTable[K]>>>;
  /** Ends the threads; running jobs fail `crashed`. */
  close(): Promise<void>;
}

export interface JobPoolOptions {
  file?: URL;
  threads?: number;
  queue?: number;
  deadlineMs?: number;
  /** The memory for short-lived objects, in MiB; default: V8's. */
  youngMB?: number;
}

async function openPool({
  file = entryUrl('jobs'),
  threads = JOBS.maxThreads,
  queue = JOBS.maxQueued,
  youngMB,
}: JobPoolOptions): Promise<Threads> {
  const { FixedQueue, Piscina } = await import('piscina');
  // All options are explicit, because some defaults are traps: an endless queue, and workers that sleep in
  // Atomics.wait.
  return new Piscina<JobCall, JobOutcome>({
    filename: fileURLToPath(file),
    name: 'default',
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: JOBS.idleTimeoutMs,
    maxQueue: queue,
    taskQueue: new FixedQueue(),
    concurrentTasksPerWorker: 1,
    atomics: 'disabled',
    resourceLimits: {
      maxOldGenerationSizeMb: JOBS.maxHeapMB,
      ...(youngMB === undefined ? {} : { maxYoungGenerationSizeMb: youngMB }),
    },
    argv: [],
    execArgv: [],
    env: process.env,
    workerData: null,
    niceIncrement: 0,
    trackUnmanagedFds: true,
    closeTimeout: JOBS.deadlineMs,
    recordTiming: false,
    stricterFIFO: false,
    workerHistogram: false,
  });
}

/** The message of piscina for an entry that is incomplete. */
const NO_HANDLER = 'No handler function exported';

/** The threads of a pool, opened at the first job, and again whenever they did not load. */
class JobThreads {
  /** Whether they did not load when they were last needed. */
  isUnloaded = false;
  private readonly options: JobPoolOptions;
  private opened: Promise<Threads> | undefined;
  /** What has been reported since the last job that was done. */
  private reported = '';

  constructor(options: JobPoolOptions) {
    this.options = options;
  }

  async run(call: JobCall, signal: AbortSignal): Promise<JobOutcome> {
    const opened = this.opened ?? this.open();
    try {
      const outcome = await (await opened).run(call, { signal });
      if ('unloaded' in outcome) this.reopen(opened, outcome.unloaded);
      else this.reported = '';
      return outcome;
    } catch (error) {
      if (String(error).includes(NO_HANDLER)) this.reopen(opened, String(error));
      if (this.opened === opened) throw error;
      return { unloaded: this.reported };
    }
  }

  async close(): Promise<void> {
    await (await this.opened?.catch(() => undefined))?.destroy();
  }

  private open(): Promise<Threads> {
    const opened = openPool(this.options);
    this.opened = opened;
    const onFailed = (error: Error): void => this.reopen(opened, error.message);
    opened.then((threads) => {
      // Of a thread without a job. The jobs for which one that does not load was started would wait for ever.
      threads.on('error', onFailed);
      threads.on('workerCreate', () => {
        this.isUnloaded = false;
      });
    }, onFailed);
    return opened;
  }

  /** Ends the threads of `opened`, because they do not load. The next job opens others. */
  private reopen(opened: Promise<Threads>, reason: string): void {
    if (this.opened !== opened) return;
    this.opened = undefined;
    this.isUnloaded = true;
    if (this.reported !== reason) reportUnloaded('a job thread', reason);
    this.reported = reason;
    opened.then((threads) => threads.destroy()).catch(() => {});
  }
}

/**
 * Lets as many jobs as there are threads begin, in the order of the calls. Piscina's own queue lets jobs with
 * a signal overtake each other, without limit.
 */
class Turns {
  private free: number;
  private readonly waiting = new Set<() => void>();

  constructor(threads: number) {
    this.free = threads;
  }

  get queued(): number {
    return this.waiting.size;
  }

  /** Resolves when it is the caller's turn, which then calls `give`. Rejects once `signal` aborts. */
  async take(signal: AbortSignal): Promise<void> {
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    const turn = deferred<void>();
    const begin = (): void => turn.resolve();
    const leave = (): void => {
      this.waiting.delete(begin);
      turn.reject(signal.reason);
    };
    this.waiting.add(begin);
    signal.addEventListener('abort', leave);
    await turn.promise.finally(() => signal.removeEventListener('abort', leave));
  }

  give(): void {
    const [next] = this.waiting;
    if (!next) {
      this.free += 1;
      return;
    }
    this.waiting.delete(next);
    next();
  }
}

/** Creates the pool, which costs nothing before the first job. */
export function createJobPool(options: JobPoolOptions = {}): JobPool {
  const { deadlineMs = JOBS.deadlineMs, queue = JOBS.maxQueued, threads = JOBS.maxThreads } = options;
  const turns = new Turns(threads);
  const jobThreads = new JobThreads(options);
  let closed = false;

  /** Runs a job within `deadlineMs`. */
  const runOnce = async ({ name, task }: JobCall): Promise<JobOutcome> => {
    const signal = AbortSignal.timeout(deadlineMs);
    try {
      await turns.take(signal);
      return await jobThreads.run({ name, task }, signal).finally(() => turns.give());
    } catch (error) {
      if (signal.aborted && jobThreads.isUnloaded) return { unloaded: 'the job waited for its thread' };
      if (signal.aborted) throw new Failure('deadline', `${name}: not done within ${deadlineMs} ms`);
      if (!closed) reportCrash(`the job ${name}`, error, false);
      throw new Failure('crashed', `${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  return {
    async run<K extends JobName>(
      name: K,
      task: Parameters<JobTable[K]>[0],
    ): Promise<Awaited<ReturnType<JobTable[K]>>> {
      if (turns.queued >= queue) throw new Failure('overloaded', `${name}: too many jobs`);
      for (;;) {
        if (closed) throw new Failure('gone', 'the pool is closed');
        const outcome = await runOnce({ name, task });
        // Types do not cross threads: the table defines the type of this job's result.
        if ('value' in outcome) return outcome.value as Awaited<ReturnType<JobTable[K]>>;
        if ('failure' in outcome) {
          const { code, message, detail } = outcome.failure;
          throw new Failure(code, message, detail);
        }
        await pause(LOAD_RETRY_MS);
      }
    },
    async close() {
      closed = true;
      await jobThreads.close();
    },
  };
}

/** The export of a job thread's entry: runs the functions of `table` by name. */
export function serveJobs(table: JobTable): (call: JobCall) => Promise<JobOutcome> {
  return async ({ name, task }) => {
    try {
      return { value: await table[name](task as never) };
    } catch (error) {
      if (isLoadError(error)) return { unloaded: error.message };
      if (!isFailure(error)) throw error;
      return { failure: { code: error.code, message: error.message, detail: error.detail } };
    }
  };
}
