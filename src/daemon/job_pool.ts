// The pool of job threads: pure functions on heavy or untrusted input, never an actor. The only file that
// imports piscina, and only at the first job.
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
import { reportCrash } from './daemon_log.ts';

/** Every job: one plain object in, one plain object out. `workers/jobs.ts` holds the functions. */
export interface JobTable {
  parseKubeconfig(task: { upload: string; now: number }): ClusterAccess;
  hashInputs(task: InputHashTask): string;
  drawScreen(task: ScreenTask): Promise<DrawnScreen>;
  readScreen(task: ReadScreenTask): Promise<ScreenReading | null>;
  loadRules(task: { folders: [user: string, own?: string] }): Promise<LoadedRules>;
  readState(task: ReadStateTask): Promise<StateReading>;
  searchLogs(task: LogSearchTask): Promise<LogSearchAnswer>;
  startMergedLogs(task: LogStartTask): Promise<LogStart[]>;
  readMergedLogs(task: LogReadTask): Promise<LogReadAnswer>;
}
type JobName = keyof JobTable;

/** Errors lose their class and fields between threads, so a Failure is passed as data. */
type JobOutcome = { value: unknown } | { failure: { code: string; message: string; detail: unknown } };

interface JobCall {
  name: JobName;
  task: unknown;
}

export interface JobPool {
  /**
   * Fails with the Failure of the function; `overloaded` when the queue is full; `deadline` when it took too
   * long, which ends its thread; `crashed` for anything else; `gone` once the pool is closed.
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
}: JobPoolOptions) {
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
  let pool: Promise<Piscina<JobCall, JobOutcome>> | undefined;
  let closed = false;
  return {
    async run<K extends JobName>(
      name: K,
      task: Parameters<JobTable[K]>[0],
    ): Promise<Awaited<ReturnType<JobTable[K]>>> {
      if (closed) throw new Failure('gone', 'the pool is closed');
      pool ??= openPool(options);
      const open = await pool;
      if (turns.queued >= queue) throw new Failure('overloaded', `${name}: too many jobs`);
      const signal = AbortSignal.timeout(deadlineMs);
      let outcome: JobOutcome;
      try {
        await turns.take(signal);
        try {
          outcome = await open.run({ name, task }, { signal });
        } finally {
          turns.give();
        }
      } catch (error) {
        if (signal.aborted) throw new Failure('deadline', `${name}: not done within ${deadlineMs} ms`);
        if (!closed) reportCrash(`the job ${name}`, error, false);
        throw new Failure('crashed', `${name}: ${error instanceof Error ? error.message : String(error)}`);
      }
      if ('failure' in outcome) {
        const { code, message, detail } = outcome.failure;
        throw new Failure(code, message, detail);
      }
      // Types do not cross threads: the table defines the type of this job's result.
      return outcome.value as Awaited<ReturnType<JobTable[K]>>;
    },
    async close() {
      closed = true;
      await (await pool)?.destroy();
    },
  };
}

/** The export of a job thread's entry: runs the functions of `table` by name. */
export function serveJobs(table: JobTable): (call: JobCall) => Promise<JobOutcome> {
  return async ({ name, task }) => {
    try {
      return { value: await table[name](task as never) };
    } catch (error) {
      if (!isFailure(error)) throw error;
      return { failure: { code: error.code, message: error.message, detail: error.detail } };
    }
  };
}
