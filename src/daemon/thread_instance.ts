// One run of a worker thread, seen from both sides: its assignment, and the few control calls to it. The only
// file that imports comlink; actor messages never go through it.
import { performance } from 'node:perf_hooks';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type Endpoint, expose, type Remote, transfer, wrap } from 'comlink';
import { messagePortPipe } from '../adapters/pipes.ts';
import { giveMemoryBackAtRest, trimMemory } from '../adapters/process/resting_memory.ts';
import { createNodeLookup, mayAsk, SERVICES_NODE } from '../protocol/address.ts';
import type { ErrorCode } from '../protocol/errors.ts';
import type { ThreadReading } from '../protocol/system.ts';
import { Failure, isFailure, type Node, type NodeOptions } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { deferred, withTimeout } from '../runtime/deferred.ts';
import { createNode } from '../runtime/node.ts';
import { THREADS } from '../settings/limits.ts';
import type { PoolSizes } from '../settings/pool_sizes.ts';
import { heartbeatMemory, startHeartbeat, WatchedHeartbeat } from './heartbeat.ts';
import { receiveAssignment, type StartedWorker } from './worker_thread.ts';

/**
 * How long a thread that has stopped its actors may take to release everything else before it is terminated.
 */
const EXIT_TIMEOUT_MS = 1_000;

/** Failures of a start that would recur at the next start. */
const FINAL_FAILURES: readonly string[] = ['storage_lost', 'storage_full'] satisfies ErrorCode[];

/** The Failure with which a thread refuses to start. */
type Refusal = Pick<Failure, 'code' | 'message' | 'detail'>;

/** What the main thread may call on a thread. */
interface ThreadControl {
  connect(peer: string, port: MessagePort): void;
  /** Resolves when `setup` is done, or has failed for good. */
  ready(): Promise<Refusal | null>;
  read(): ThreadReading;
  /** Stops the node. Resolves with the addresses that were late. */
  stop(): Promise<string[]>;
}

/** What a thread is told before it does anything. */
export interface ThreadTask {
  /** The name of its node. */
  name: string;
  pools: PoolSizes;
  /** The data for its `setup`. */
  data: unknown;
  /** The existing nodes, each with a port to it. */
  peers: [name: string, port: MessagePort][];
  /** Interval of its heartbeat. */
  beatMs: number;
}

/** The first message to a thread. */
interface Assignment extends ThreadTask {
  control: MessagePort;
  heartbeat: SharedArrayBuffer;
}

// Node's ports work as web ports, but the two types are unrelated.
const endpoint = (port: MessagePort): Endpoint => port as unknown as Endpoint;

/** The main thread's side of a thread, from its assignment to its end. */
export class ThreadInstance {
  /** Resolves with the reason when the thread has ended. */
  readonly ended: Promise<unknown>;
  readonly heartbeat: WatchedHeartbeat;
  private readonly worker: StartedWorker;
  private readonly control: Remote<ThreadControl>;
  /** Resolves when the thread has ended and its last answer has been read, so that nothing was late. */
  private readonly exited: Promise<string[]>;
  private failure: unknown;

  constructor(worker: StartedWorker, task: ThreadTask) {
    const { port1, port2 } = new MessageChannel();
    const heartbeat = heartbeatMemory();
    const assignment: Assignment = { ...task, control: port2, heartbeat };
    worker.assign(assignment, [port2, ...task.peers.map(([, port]) => port)]);
    this.worker = worker;
    this.heartbeat = new WatchedHeartbeat(heartbeat);
    this.ended = worker.ended.then((reason) => this.failure ?? reason);
    // The last answer may still be in the port when the thread has ended.
    const drained = deferred<void>();
    port1.once('close', drained.resolve);
    this.exited = Promise.all([worker.ended, drained.promise]).then(() => []);
    this.control = wrap<ThreadControl>(endpoint(port1));
  }

  /** Whether the thread's code has been loaded. */
  get isLoaded(): boolean {
    return this.worker.isLoaded;
  }

  /**
   * Resolves when the thread's `setup` is done, or with its Failure if another start would fail too. Never
   * settles if the thread dies first.
   */
  async ready(): Promise<Failure | null> {
    const refusal = await this.control.ready();
    return refusal && new Failure(refusal.code, refusal.message, refusal.detail);
  }

  /** What the thread is doing; null if it does not answer in time. */
  async read(): Promise<ThreadReading | null> {
    return withTimeout(
      THREADS.readTimeoutMs,
      Promise.race([this.control.read(), this.exited.then(() => null)]),
    );
  }

  /** Gives the thread a port to `peer`. Resolves when it has the port or has ended. */
  async connect(peer: string, port: MessagePort): Promise<void> {
    // A port sent to a dying thread is lost; its successor gets a new one.
    const connected = this.control.connect(peer, transfer(port, [port])).catch(() => {});
    await Promise.race([connected, this.exited]);
  }

  /** Terminates the thread. `failure`, if given, becomes the reason of its end. */
  terminate(failure?: unknown): void {
    this.failure ??= failure;
    void this.worker.terminate();
  }

  /**
   * Stops the actors within `stopMs`, then ends the thread. Resolves with the addresses that were late, or
   * with null when the thread did not answer.
   */
  async stop(stopMs: number): Promise<string[] | null> {
    // A busy thread never answers, and neither does a dead one.
    const answer = Promise.race([this.control.stop(), this.exited]);
    const late = await withTimeout(stopMs, answer).catch(() => null);
    if (late !== null) await withTimeout(EXIT_TIMEOUT_MS, this.exited);
    await this.worker.terminate();
    return late;
  }
}

/** What this thread is doing. `lagMs` comes from its heartbeat. */
export const readThread = (node: Node, lagMs: number): ThreadReading => ({
  ...node.read(),
  lagMs,
  busyMs: performance.eventLoopUtilization().active,
});

/**
 * Runs a worker thread, called by its entry: creates the node, connects the assigned peers and runs `setup`
 * with the assigned data. Rejects when `setup` has a defect, which ends the thread.
 */
export async function runThread(
  setup: (node: Node, data: unknown) => void | Promise<void>,
  onCrash: NonNullable<NodeOptions['onCrash']>,
): Promise<void> {
  const { name, pools, data, peers, control, heartbeat, beatMs } = await receiveAssignment<Assignment>();
  const { note, lagMs } = startHeartbeat(heartbeat, systemClock, beatMs);
  // Only the services thread trims libc's memory: it is the last to work, and the job threads whose memory
  // libc keeps worked for it.
  giveMemoryBackAtRest({ clock: systemClock, ...(name === SERVICES_NODE && { trim: trimMemory }) });
  const node = createNode({
    name,
    clock: systemClock,
    nodeOf: createNodeLookup(pools),
    mayAsk,
    onCrash,
    onHandle: note,
    defaultDeadlineMs: THREADS.askDeadlineMs,
  });
  for (const [peer, port] of peers) node.connect(peer, messagePortPipe(port));
  const ready = deferred<Refusal | null>();
  const calls: ThreadControl = {
    connect: (peer, port) => node.connect(peer, messagePortPipe(port)),
    ready: () => ready.promise,
    read: () => readThread(node, lagMs()),
    async stop() {
      const late = await node.stop();
      // In a later turn of the loop than the answer. Once the port is closed, nothing keeps the thread alive.
      setImmediate(() => control.close());
      return late;
    },
  };
  expose(calls, endpoint(control));
  try {
    await setup(node, data);
    ready.resolve(null);
  } catch (error) {
    if (!isFailure(error) || !FINAL_FAILURES.includes(error.code)) throw error;
    const { code, message, detail } = error;
    ready.resolve({ code, message, detail });
  }
}
