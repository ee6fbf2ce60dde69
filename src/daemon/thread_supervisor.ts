// The worker threads of the daemon: their start, their connections, their restart after a death, and their
// stop.
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { gatedPipe, messagePortPipe } from '../adapters/pipes.ts';
import { createNodeLookup, nodesOf } from '../protocol/address.ts';
import type { ThreadStatus } from '../protocol/system.ts';
import { Failure, type Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { deferred, withTimeout } from '../runtime/deferred.ts';
import { type RestartLimit, RestartWindow } from '../runtime/restart_window.ts';
import { entryUrl } from '../settings/build_paths.ts';
import { THREADS } from '../settings/limits.ts';
import { isLoadError, LOAD_PATIENCE_MS, LOAD_RETRY_MS } from '../settings/load_part.ts';
import type { PoolSizes } from '../settings/pool_sizes.ts';
import { hasCode } from './end_thread.ts';
import { hangError, isDebugged } from './hanging_thread.ts';
import { type Stall, StallDetector } from './stall_detector.ts';
import {
  areConnected,
  pendingUp,
  type StartingState,
  THREAD_KINDS,
  type Thread,
  type ThreadKind,
  type ThreadState,
} from './supervised_thread.ts';
import { ThreadInstance, type ThreadTask } from './thread_instance.ts';
import { workerStack } from './thread_stack.ts';
import { type StartedWorker, startWorker } from './worker_thread.ts';

/**
 * What follows a thread's death: it starts again at once or after a pause, unless it refused to start. If its
 * files do not load, it starts once they do.
 */
export type DeathSequel = 'restarts' | 'pauses' | 'refused' | 'awaits-files';

export interface ThreadSupervisorOptions {
  /** The node of this thread, `front` to the others. */
  node: Node;
  pools: PoolSizes;
  /**
   * The data for a thread's `setup`, at its first start and after each death. Must survive structured clone.
   */
  dataFor: (kind: ThreadKind, isRestart: boolean) => unknown;
  /** Messages from the threads to this one wait until this resolves. */
  receiveAfter?: Promise<void>;
  /**
   * Called for every death of a thread, but only once while its files do not load. If it refused to start,
   * the error is its Failure.
   */
  onDeath: (name: string, error: unknown, sequel: DeathSequel) => void;
  restarts?: RestartLimit;
  /** How long a thread that has died too often stays down, in milliseconds. */
  pauseMs?: number;
  /** How long a thread may take to stop its actors before it is terminated, in milliseconds. */
  stopMs?: number;
  entryOf?: (kind: ThreadKind) => URL;
  hang?: { readonly [K in keyof typeof THREADS.hang]: number };
  /** Called for a hanging thread that cannot be ended. */
  onUnendable: (diagnosis: Error) => void;
  /** Threads that are already running without an assignment, by name. */
  startedWorkers?: ReadonlyMap<string, StartedWorker>;
}

export interface ThreadSupervisor {
  /**
   * Resolves when every thread of `kind` is up; starts those that are not. Fails `gone` for one that stays
   * down.
   */
  ensure(kind: ThreadKind): Promise<void>;
  /** Like `ensure`, for the thread that holds `address`. Also waits until its peers are connected to it. */
  ensureFor(address: string): Promise<void>;
  /**
   * `onRestarted` runs each time a thread is back after a death: its `setup` is done, its peers are
   * connected, and `ensure` waits for the callback. A rejection counts as another death.
   */
  onRestarted(onRestarted: RestartListener): void;
  /** Why the threads of `kind` do not currently answer; null: they do, or have not been started. */
  silenceOf(kind: ThreadKind): string | null;
  /** Every thread that has been started. */
  read(): Promise<ThreadStatus[]>;
  /**
   * Stops all threads, the last kind first. Resolves with the addresses, or names of whole threads, that were
   * late.
   */
  stop(): Promise<string[]>;
}

type RestartListener = (name: string) => void | Promise<void>;

const ALREADY_RESOLVED = Promise.resolve();

/** The code of the error that names a native package which does not load: src/build/natives.mjs. */
const PACKAGE_MISSING = 'ERR_PACKAGE_MISSING';

const goneFailure = (message: string): Failure => new Failure('gone', message);
const STOPPING = 'the daemon stops';

class Supervisor implements ThreadSupervisor {
  private readonly options: ThreadSupervisorOptions;
  private readonly nodeOf: (address: string) => string | undefined;
  /** Every thread by name, in the order of THREAD_KINDS. */
  private readonly threads = new Map<string, Thread>();
  /** Those of `startedWorkers` that have no assignment yet. */
  private readonly unassigned: Map<string, StartedWorker>;
  private readonly restartListeners: RestartListener[] = [];
  private stopped: Promise<string[]> | undefined;
  private readonly hang: NonNullable<ThreadSupervisorOptions['hang']>;
  private readonly stopWatching: () => void;

  constructor(options: ThreadSupervisorOptions) {
    const { node, pools, restarts = THREADS.restarts, hang = THREADS.hang, startedWorkers } = options;
    this.options = options;
    this.nodeOf = createNodeLookup(pools);
    this.unassigned = new Map(startedWorkers);
    for (const kind of THREAD_KINDS)
      for (const name of nodesOf(kind, pools))
        this.threads.set(name, {
          name,
          kind,
          deaths: new RestartWindow(restarts),
          state: { is: 'idle' },
          wasUp: false,
          absentSince: null,
          detector: null,
          peersConnected: ALREADY_RESOLVED,
        });
    node.onPeerLost((name) => this.onConnectionLost(name));
    this.hang = hang;
    this.stopWatching = systemClock.every(hang.beatMs, () => this.checkThreads());
  }

  async ensure(kind: ThreadKind): Promise<void> {
    await Promise.all(this.ofKind(kind).map((thread) => this.whenUp(thread)));
  }

  async ensureFor(address: string): Promise<void> {
    const thread = this.threads.get(this.nodeOf(address) ?? '');
    if (!thread) throw new TypeError(`no thread holds ${address}`);
    await this.whenUp(thread);
    await thread.peersConnected;
  }

  onRestarted(onRestarted: RestartListener): void {
    this.restartListeners.push(onRestarted);
  }

  stop(): Promise<string[]> {
    this.stopped ??= this.stopAll().finally(this.stopWatching);
    return this.stopped;
  }

  silenceOf(kind: ThreadKind): string | null {
    for (const { name, state, detector } of this.ofKind(kind)) {
      if (state.is === 'idle') continue;
      if (state.is !== 'up') return `the thread ${name} is being started again`;
      if (!detector) return `the thread ${name} hangs, and is being ended`;
      // The first beat may be missed because of the order of two timers.
      if (detector.missed > 1) return `the thread ${name} has missed ${detector.missed} heartbeats`;
    }
    return null;
  }

  async read(): Promise<ThreadStatus[]> {
    const started = [...this.threads.values()].filter(({ state }) => state.is !== 'idle');
    return Promise.all(
      started.map(async ({ name, deaths, state }) => {
        const reading = state.is === 'up' ? await state.instance.read() : null;
        return { name, restarts: deaths.total, reading };
      }),
    );
  }

  private ofKind(kind: ThreadKind): Thread[] {
    return [...this.threads.values()].filter((thread) => thread.kind === kind);
  }

  private async whenUp(thread: Thread): Promise<void> {
    if (this.stopped) throw goneFailure(STOPPING);
    const state = thread.state.is === 'idle' ? this.launch(thread) : thread.state;
    if (state.is === 'ended') throw state.failure;
    if (state.is !== 'up') await state.up.promise;
  }

  private launch(thread: Thread): StartingState {
    const { dataFor, entryOf = entryUrl, pools } = this.options;
    const { name, kind, deaths } = thread;
    const peers = this.introduce(thread);
    const data = dataFor(kind, deaths.count > 0);
    const worker = this.unassigned.get(name) ?? startWorker(entryOf(kind), name);
    this.unassigned.delete(name);
    const { beatMs } = this.hang;
    const instance = new ThreadInstance(worker, { name, pools, data, peers, beatMs });
    thread.detector = new StallDetector(instance.heartbeat, this.hang);
    const state: StartingState = { is: 'starting', instance, up: pendingUp(thread.state) };
    thread.state = state;
    void instance.ended.then((reason) => this.onDied(thread, reason));
    this.awaitReady(thread, state).catch((error: unknown) => instance.terminate(error));
    return state;
  }

  /** Creates a port to each node that `thread` is connected to, and hands out the other ends at once. */
  private introduce(thread: Thread): ThreadTask['peers'] {
    const { node, receiveAfter = ALREADY_RESOLVED } = this.options;
    const peers: ThreadTask['peers'] = [];
    const connected: Promise<void>[] = [];
    const portTo = (name: string): MessagePort => {
      const { port1, port2 } = new MessageChannel();
      peers.push([name, port2]);
      return port1;
    };
    if (areConnected('front', thread.kind))
      node.connect(thread.name, gatedPipe(messagePortPipe(portTo(node.name)), receiveAfter));
    for (const { name, kind, state } of this.threads.values()) {
      if (!('instance' in state) || name === thread.name || !areConnected(kind, thread.kind)) continue;
      connected.push(state.instance.connect(thread.name, portTo(name)));
    }
    thread.peersConnected = Promise.all(connected);
    return peers;
  }

  private async awaitReady(thread: Thread, state: StartingState): Promise<void> {
    const refusal = await state.instance.ready();
    if (refusal) {
      this.refuse(thread, state, refusal);
      return;
    }
    if (thread.wasUp) for (const onRestarted of this.restartListeners) await onRestarted(thread.name);
    if (thread.state !== state) return;
    thread.state = { is: 'up', instance: state.instance };
    thread.wasUp = true;
    thread.absentSince = null;
    state.up.resolve();
  }

  /** The thread cannot start, and could not the next time either. */
  private refuse(thread: Thread, state: StartingState, failure: Failure): void {
    if (thread.state !== state) return;
    state.up.reject(failure);
    thread.state = { is: 'ended', failure };
    state.instance.terminate(failure);
  }

  /** The loss of a connection is noticed before the death of its thread. From here on `ensure` waits. */
  private onConnectionLost(name: string): void {
    const thread = this.threads.get(name);
    if (!thread || this.stopped || !('instance' in thread.state)) return;
    const { instance } = thread.state;
    thread.state = { is: 'lost', instance, up: pendingUp(thread.state) };
    instance.terminate();
  }

  private onDied(thread: Thread, reason: unknown): void {
    const { node, onDeath } = this.options;
    node.disconnect(thread.name);
    if (this.stopped) {
      this.giveUp(thread, goneFailure(STOPPING));
      return;
    }
    const { state } = thread;
    if (state.is === 'ended') {
      onDeath(thread.name, reason, 'refused');
      // There may be disk space by the time it is needed again.
      if (state.failure.code === 'storage_full') this.returnFrom(thread, state, thread.wasUp);
      return;
    }
    if (this.isAbsent(state, reason)) {
      this.awaitFiles(thread, reason);
      return;
    }
    if (hasCode(reason, PACKAGE_MISSING)) {
      const failure = new Failure('internal', reason.message);
      this.giveUp(thread, failure);
      onDeath(thread.name, failure, 'refused');
      return;
    }
    const restarts = thread.deaths.add(systemClock.monotonic());
    onDeath(thread.name, reason, restarts ? 'restarts' : 'pauses');
    if (restarts) this.launch(thread);
    else this.pause(thread);
  }

  /**
   * Whether the files of a thread do not load. Before any thread has been up, the program is starting and
   * fails.
   */
  private isAbsent(state: ThreadState, reason: unknown): boolean {
    if (!('instance' in state) || ![...this.threads.values()].some(({ wasUp }) => wasUp)) return false;
    return !state.instance.isLoaded || isLoadError(reason);
  }

  /** Tries the thread again until its files load. An update takes them away, which is no crash. */
  private awaitFiles(thread: Thread, reason: unknown): void {
    const now = systemClock.monotonic();
    if (thread.absentSince === null) this.options.onDeath(thread.name, reason, 'awaits-files');
    thread.absentSince ??= now;
    const up = pendingUp(thread.state);
    const isLate = now - thread.absentSince > LOAD_PATIENCE_MS;
    if (isLate) up.reject(new Failure('internal', `${thread.name} does not load: ${reason}`));
    const state: ThreadState = { is: 'absent', up: isLate ? deferred() : up };
    thread.state = state;
    systemClock.after(LOAD_RETRY_MS, () => {
      if (thread.state === state) this.launch(thread);
    });
  }

  /**
   * Restarts the thread after a pause: the cause of its deaths may go away, and nothing else does its work.
   */
  private pause(thread: Thread): void {
    this.returnFrom(thread, this.giveUp(thread, goneFailure(`${thread.name} died too often`)), true);
  }

  /** Leaves the state `away`, after a pause or at once. */
  private returnFrom(thread: Thread, away: ThreadState, pauses: boolean): void {
    const { pauseMs = THREADS.pauseMs } = this.options;
    const back = (): void => {
      if (this.stopped || thread.state !== away) return;
      thread.state = { is: 'idle' };
      // A thread that was never up is started when it is needed.
      if (thread.wasUp) this.launch(thread);
    };
    if (pauses) systemClock.after(pauseMs, back);
    else back();
  }

  private checkThreads(): void {
    for (const thread of this.threads.values()) {
      const { state, detector } = thread;
      const stall = detector?.check() ?? null;
      if (stall === null || isDebugged() || !('instance' in state)) continue;
      thread.detector = null;
      void this.endHanging(thread.name, state.instance, stall);
    }
  }

  private async endHanging(name: string, instance: ThreadInstance, stall: Stall): Promise<void> {
    const stack = await workerStack(name);
    const diagnosis = hangError(name, stall, instance.heartbeat.note, stack);
    instance.terminate(diagnosis);
    const ended = await withTimeout(
      this.hang.endMs,
      instance.ended.then(() => true),
    );
    if (ended === null) this.options.onUnendable(diagnosis);
  }

  private giveUp(thread: Thread, failure: Failure): ThreadState {
    pendingUp(thread.state).reject(failure);
    thread.state = { is: 'ended', failure };
    return thread.state;
  }

  private async stopAll(): Promise<string[]> {
    const late: string[] = [];
    for (const kind of THREAD_KINDS.toReversed())
      late.push(...(await Promise.all(this.ofKind(kind).map((thread) => this.stopOne(thread)))).flat());
    return late;
  }

  private async stopOne(thread: Thread): Promise<string[]> {
    const { name, state } = thread;
    if (state.is === 'absent') this.giveUp(thread, goneFailure(STOPPING));
    if (!('instance' in state)) return [];
    const { stopMs = THREADS.stopTimeoutMs } = this.options;
    return (await state.instance.stop(stopMs)) ?? [name];
  }
}

/** Starts no threads: `ensure` does. */
export const createThreadSupervisor = (options: ThreadSupervisorOptions): ThreadSupervisor =>
  new Supervisor(options);
