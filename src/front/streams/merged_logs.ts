// Streams of many logs: docs/reference.md "Logs of many services". Job threads read and format new output.
// Each follower continues from its own positions when its client has taken the bytes sent so far; followers
// at the same positions share the reads.
import { placeOf, placesCursor, type RunPlace, runAt } from '../../logs/log_places.ts';
import { fail } from '../../protocol/errors.ts';
import type { LogFilterSpec, LogJobs, LogReadAnswer, LogReadTask } from '../../protocol/logs.ts';
import type { Clock } from '../../runtime/actor.ts';
import { isFailure } from '../../runtime/actor.ts';
import { LOGS } from '../../settings/limits.ts';
import type { ResponseStream } from '../server/http_server.ts';
import { FairQueue } from './fair_queue.ts';
import { streamHead } from './stream_head.ts';

const END_FRAME = Buffer.from('event: end\ndata: {}\n\n');

export interface MergedLogsOptions {
  jobs: LogJobs;
  clock: Clock;
  /** The folder of all logs. */
  folder: string;
  isRunning: (name: string) => boolean;
  /** Starts or stops notifications that the log of a service has grown. */
  notify: (name: string, on: boolean) => void;
  onDefect: (error: unknown) => void;
}

/** A request to follow many logs. */
export interface FollowLogsRequest {
  /** The names of the services; called again when services were added or removed. */
  select: () => string[];
  filter: LogFilterSpec;
  run: string | null;
  ansi: boolean;
  /** Whether the stream ends when none of its services is left. */
  endsWithServices: boolean;
  /** The number of last lines of each log to begin with; null: all since `filter.since`. */
  lines: number | null;
  /** Where to continue; null: `lines` decides. */
  cursor: ((name: string) => number | undefined) | null;
  /** false: the stream ends at the current end of the logs. */
  follow: boolean;
  /** null: the client has disconnected. */
  open: () => ResponseStream | null;
}

/** One client. */
class MergedFollower {
  readonly logs: Map<string, RunPlace>;
  readonly request: FollowLogsRequest;
  private readonly owner: MergedLogs;
  private readonly stream: ResponseStream;
  private readonly grown: Set<string>;
  private state: 'idle' | 'queued' | 'reading' | 'pausing' | 'closed' = 'idle';
  private cancelRest = (): void => {};

  constructor(
    owner: MergedLogs,
    request: FollowLogsRequest,
    logs: Map<string, RunPlace>,
    stream: ResponseStream,
  ) {
    this.owner = owner;
    this.request = request;
    this.logs = logs;
    this.stream = stream;
    this.grown = new Set(logs.keys());
    stream.write(streamHead(request.cursor ? null : placesCursor(logs)));
    stream.onDrain = () => this.read();
  }

  /** Adds new services and drops removed ones. Ends when none are left. */
  reselect(): void {
    const names = new Set(this.request.select());
    for (const name of this.logs.keys()) if (!names.has(name)) this.logs.delete(name);
    for (const name of names) {
      if (this.logs.has(name)) continue;
      this.logs.set(name, {
        place: { offset: 0, marks: 0, open: [null, null], around: 0 },
        run: this.request.run,
      });
      this.wake(name);
    }
    if (names.size === 0 && this.request.endsWithServices) this.end();
  }

  wake(name: string): void {
    if (!this.logs.has(name)) return;
    this.grown.add(name);
    this.read();
  }

  keepAlive(): void {
    this.stream.keepAlive();
    // A restarted service has lost its followers, so it will not report growth.
    for (const name of this.logs.keys()) if (this.owner.options.isRunning(name)) this.wake(name);
  }

  end(): void {
    this.stream.end();
  }

  cut(): void {
    this.stream.destroy();
  }

  /** The stream is closed. */
  close(): void {
    this.state = 'closed';
    this.cancelRest();
  }

  /** Continues reading if something has grown and the client has taken the bytes sent so far. */
  read(): void {
    if (this.state !== 'idle' || this.stream.bufferedBytes > 0 || this.grown.size === 0) return;
    this.state = 'queued';
    this.owner.queue.add(() => {
      if (this.state === 'queued') this.readNow();
    });
  }

  private readNow(): void {
    const grown = [...this.grown].filter((name) => this.logs.has(name));
    this.grown.clear();
    this.state = grown.length === 0 ? 'idle' : 'reading';
    if (this.state === 'idle') return;
    this.owner.read(this.request, this.logs, grown).then(
      (answer) => this.owner.queue.add(() => this.take(answer)),
      (error: unknown) => {
        // The client reconnects with its positions.
        this.end();
        if (!isFailure(error)) this.owner.options.onDefect(error);
      },
    );
  }

  private take({ frames, moved, unfinished }: LogReadAnswer): void {
    if (this.state === 'closed') return;
    for (const { name, place } of moved) {
      const log = this.logs.get(name);
      if (log) this.logs.set(name, { ...log, place });
    }
    for (const name of unfinished) this.grown.add(name);
    if (frames.length > 0) this.stream.write(frames);
    if (!this.request.follow && this.grown.size === 0) {
      this.stream.write(END_FRAME);
      this.end();
      return;
    }
    if (unfinished.length > 0) this.rest(0);
    else this.rest(LOGS.followIntervalMs);
  }

  /** Reads again after a pause, to collect more output for a single read. */
  private rest(ms: number): void {
    this.state = 'pausing';
    const go = (): void => {
      if (this.state !== 'pausing') return;
      this.state = 'idle';
      this.read();
    };
    if (ms === 0) go();
    else this.cancelRest = this.owner.options.clock.after(ms, go);
  }
}

/** All streams of many logs. */
export class MergedLogs {
  readonly options: MergedLogsOptions;
  /** The queue of work for individual clients. */
  readonly queue = new FairQueue();
  private readonly followers = new Set<MergedFollower>();
  /** The services that send notifications. */
  private readonly noticed = new Set<string>();
  /** The reads under way, keyed by what they read. */
  private readonly readings = new Map<string, Promise<LogReadAnswer>>();
  /** The number of times all streams were cut. */
  private cuts = 0;

  constructor(options: MergedLogsOptions) {
    this.options = options;
  }

  /** Follows many logs. Rejects with invalid_spec; `open` is called after everything that can fail. */
  async follow(request: FollowLogsRequest): Promise<void> {
    const { cuts } = this;
    const { filter, run, lines, cursor } = request;
    const { folder, jobs } = this.options;
    const names = request.select();
    const started = await jobs.start({ folder, names, filter, run, lines: cursor ? 0 : lines });
    if (cuts !== this.cuts) throw fail('unauthorized', 'the token has changed');
    const stream = request.open();
    if (!stream) return;
    const logs = new Map(
      started.map(({ name, place, run: only }) => [
        name,
        cursor ? { place: placeOf(cursor, name), run: runAt(cursor, name) ?? only } : { place, run: only },
      ]),
    );
    const follower = new MergedFollower(this, request, logs, stream);
    this.followers.add(follower);
    stream.onClose = () => {
      follower.close();
      this.followers.delete(follower);
      this.updateNotices();
    };
    this.updateNotices();
    follower.read();
  }

  /** Reads on for a follower. */
  read(
    { filter, ansi }: FollowLogsRequest,
    logs: ReadonlyMap<string, RunPlace>,
    grown: string[],
  ): Promise<LogReadAnswer> {
    const { folder, jobs, isRunning } = this.options;
    const rows = [...logs].map(([name, log]) => ({ name, ...log, isRunning: isRunning(name) }));
    const key = JSON.stringify([filter, ansi, placesCursor(logs), rows.map(({ run }) => run), grown]);
    const known = this.readings.get(key);
    if (known) return known;
    const { maxReadBytes: maxBytes, readMs: budgetMs } = LOGS;
    const task: LogReadTask = { folder, logs: rows, filter, ansi, grown, maxBytes, budgetMs };
    const reading = jobs.read(task).finally(() => this.readings.delete(key));
    this.readings.set(key, reading);
    return reading;
  }

  /** The log of `name` may have grown, or its process has ended. */
  wake(name: string): void {
    for (const follower of this.followers) follower.wake(name);
  }

  /** Services were added, removed, started or ended. */
  onServicesChanged(): void {
    if (this.followers.size === 0) return;
    for (const follower of [...this.followers]) follower.reselect();
    this.updateNotices();
  }

  /** The services have restarted and lost their notification settings. */
  onServicesLost(): void {
    this.noticed.clear();
  }

  keepAlive(): void {
    for (const follower of this.followers) follower.keepAlive();
    this.updateNotices();
  }

  cut(): void {
    this.cuts += 1;
    for (const follower of [...this.followers]) follower.cut();
  }

  end(): void {
    for (const follower of [...this.followers]) follower.end();
  }

  /** Only services with a process need to notify: the others print nothing. */
  private updateNotices(): void {
    const { isRunning, notify } = this.options;
    const wanted = new Set<string>();
    for (const { logs, request } of this.followers)
      if (request.follow) for (const name of logs.keys()) if (isRunning(name)) wanted.add(name);
    for (const name of [...this.noticed]) {
      if (wanted.has(name)) continue;
      this.noticed.delete(name);
      notify(name, false);
    }
    for (const name of wanted) {
      if (this.noticed.has(name)) continue;
      this.noticed.add(name);
      notify(name, true);
    }
  }
}
