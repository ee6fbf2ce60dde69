// Commands run in the context of a run: probes of its checks, and the command that stops it. They run in its
// working directory and environment, in a session of their own. Their processes carry a mark of their own, so
// that they are never taken for the service's, and can be found whatever happens to this host.
import { type ChildProcess, spawn } from 'node:child_process';
import { unansweredReason } from '../adapters/answering_path.ts';
import { processRow } from '../adapters/process/process_table.ts';
import type { RunRoot } from '../adapters/process/process_tree.ts';
import { fail } from '../protocol/errors.ts';
import type { ExecReport, SpawnRequest } from '../protocol/host.ts';
import type { Clock } from '../runtime/actor.ts';
import { deferred } from '../runtime/deferred.ts';
import { CHECK } from '../settings/limits.ts';
import { environmentOf, SHELL, shellStart, startFailed, withUmask } from './child.ts';
import type { TreeStops } from './tree_stops.ts';

/** What the process of a run was started with. */
export type RunSetting = Pick<SpawnRequest, 'cwd' | 'env' | 'umask'>;

/** How long to wait for output after the end of a command, from processes that it left behind. */
const DRAIN_MS = 50;

const markOf = (run: string): string => `${run}.command`;

interface RunningCommand {
  root: RunRoot;
  child: ChildProcess;
  done: Promise<ExecReport>;
}

export interface RunCommandRequest {
  service: string;
  run: string;
  setting: RunSetting;
  cmd: string;
  timeoutMs: number;
}

/** The commands under way, at most one for each run. */
export class RunCommands {
  private readonly clock: Clock;
  private readonly stops: TreeStops;
  private readonly running = new Map<string, RunningCommand>();
  private readonly killing = new Map<string, Promise<void>>();
  /** What has been requested and has not begun: a killed daemon's command may still be under way. */
  private readonly waiting = new Set<RunCommandRequest>();
  /** Runs for which a command has run, which may have left processes. */
  private readonly used = new Set<string>();

  constructor(clock: Clock, stops: TreeStops) {
    this.clock = clock;
    this.stops = stops;
  }

  /** The children that libuv will reap. */
  childPids(): number[] {
    return [...this.running.values()].flatMap(({ child: { pid } }) => (pid === undefined ? [] : [pid]));
  }

  /** Runs a command, after any one under way. Fails start_failed; not_running if `end` comes first. */
  async run(request: RunCommandRequest): Promise<ExecReport> {
    const { run, service, setting } = request;
    this.waiting.add(request);
    try {
      const unanswered = await unansweredReason(setting.cwd);
      if (unanswered !== null) throw startFailed(service, `its working directory ${unanswered}`);
      // Nothing is awaited between the last look and the start.
      const before = () => this.running.get(run)?.done ?? this.killing.get(run);
      for (let other = before(); other; other = before()) await other.catch(() => undefined);
      if (!this.waiting.has(request)) throw fail('not_running', `${service} is being stopped`);
      this.used.add(run);
      return this.start(request);
    } finally {
      this.waiting.delete(request);
    }
  }

  /** Ends the command under way, those that wait for it, and all processes that commands have left. */
  async end(run: string): Promise<void> {
    for (const request of this.waiting) if (request.run === run) this.waiting.delete(request);
    if (!this.used.delete(run)) return;
    await this.kill(run);
  }

  /** Ends processes left by commands of an earlier host. */
  async endLeftovers(run: string): Promise<void> {
    await this.kill(run);
  }

  /** Ends everything with the mark of a run's commands. No command begins meanwhile. */
  private kill(run: string): Promise<void> {
    const killing = this.killing.get(run) ?? this.killNow(run).finally(() => this.killing.delete(run));
    this.killing.set(run, killing);
    return killing;
  }

  private async killNow(run: string): Promise<void> {
    const command = this.running.get(run);
    const root = command?.root ?? { run: markOf(run), pid: 0, startTicks: 0, grouped: false };
    const end = { exitCode: null, signal: null, exitUnknown: true };
    const target = { root, hasTerminal: false, end: () => end, onGone: () => {} };
    await this.stops.stop(target, { signal: 'SIGKILL', graceMs: 0, port: 0, isSent: false });
  }

  private start({ service, run, setting, cmd, timeoutMs }: RunCommandRequest): Promise<ExecReport> {
    const env = environmentOf([...setting.env, ['BERTH_RUN', markOf(run)]]);
    const { args, cwd } = shellStart({ cmd, cwd: setting.cwd, cgroup: null });
    let child: ChildProcess;
    try {
      child = withUmask(setting.umask, () =>
        spawn(SHELL, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] }),
      );
    } catch (error) {
      throw startFailed(service, error instanceof Error ? error.message : String(error));
    }
    const { pid = 0 } = child;
    const startTicks = processRow(pid)?.startTicks ?? 0;
    const root: RunRoot = { run: markOf(run), pid, startTicks, grouped: pid > 0 };
    const done = this.watch(service, run, child, timeoutMs);
    this.running.set(run, { root, child, done });
    return done;
  }

  /** Reads the output of a command to its end, and ends the command when its time is up. */
  private async watch(
    service: string,
    run: string,
    child: ChildProcess,
    timeoutMs: number,
  ): Promise<ExecReport> {
    const output: Buffer[] = [];
    let kept = 0;
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (bytes: Buffer) => {
        const part = bytes.subarray(0, CHECK.keptOutputBytes - kept);
        kept += part.length;
        if (part.length > 0) output.push(Buffer.from(part));
      });
    const ended = deferred<Pick<ExecReport, 'exitCode' | 'signal'>>();
    const closed = deferred<void>();
    let timedOut = false;
    const cancel = this.clock.after(timeoutMs, () => {
      timedOut = true;
      void this.kill(run);
    });
    child.once('error', (error) => ended.reject(startFailed(service, error.message)));
    child.once('exit', (exitCode, signal) => ended.resolve({ exitCode, signal }));
    child.once('close', () => closed.resolve());
    try {
      const { exitCode, signal } = await ended.promise;
      await this.killing.get(run);
      const isOver = await Promise.race([
        closed.promise.then(() => true),
        new Promise<false>((resolve) => this.clock.after(DRAIN_MS, () => resolve(false))),
      ]);
      // It left processes behind that hold its output.
      if (!isOver) await this.kill(run);
      return {
        exitCode: timedOut ? null : exitCode,
        signal: timedOut ? null : signal,
        timedOut,
        output: Buffer.concat(output).toString('utf8'),
      };
    } finally {
      cancel();
      this.running.delete(run);
      child.stdout?.destroy();
      child.stderr?.destroy();
    }
  }
}
