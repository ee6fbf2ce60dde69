// The worker threads: how they start, meet each other, come back after a death and stop. The only file that
// imports comlink, for the few control calls of a thread; messages never go through it.
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { type Endpoint, expose, type Remote, transfer, wrap } from 'comlink';
import { gatedPipe, messagePortPipe } from '../adapters/pipes.ts';
import { createNodeLookup, mayAsk, type NodeName } from '../protocol/address.ts';
import { Failure, type Node, type NodeOptions } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { type Deferred, deferred, withTimeout } from '../runtime/deferred.ts';
import { createNode } from '../runtime/node.ts';
import { type RestartLimit, RestartWindow } from '../runtime/restart_window.ts';
import { entryUrl } from '../settings/build_paths.ts';
import { THREADS } from '../settings/limits.ts';
import { receiveAssignment, type StartedWorker, startWorker } from './worker_thread.ts';

type ThreadKind = Exclude<NodeName, 'front' | 'host'>;
export type PoolSizes = Parameters<typeof createNodeLookup>[0];

/** Every kind of thread in the order of starting; they stop in the reverse order. */
const THREAD_KINDS: readonly ThreadKind[] = ['services', 'cloud', 'tethers', 'gateway'];

/** Who talks to whom, in either direction. */
const CONNECTED_KINDS: readonly (readonly [NodeName, NodeName])[] = [
  ['front', 'services'],
  ['services', 'services'],
  ['front', 'cloud'],
  ['front', 'tethers'],
  ['cloud', 'tethers'],
  ['front', 'gateway'],
  ['services', 'gateway'],
];

const areConnected = (one: NodeName, other: NodeName): boolean =>
  CONNECTED_KINDS.some(([a, b]) => (a === one && b === other) || (a === other && b === one));

/**
 * A thread that has stopped its actors may take this long to let go of what else it holds; then it is ended.
 */
const EXIT_TIMEOUT_MS = 1_000;

export interface ThreadSupervisorOptions {
  /** The node of this thread, `front` to the others. */
  node: Node;
  sizes: PoolSizes;
  /**
   * What the `setup` of a thread gets, at its first start and after each death; must survive structured
   * clone.
   */
  dataFor: (kind: ThreadKind, isRestart: boolean) => unknown;
  /** Messages of the threads to this one wait until then. */
  receiveAfter?: Promise<void>;
  /** Gets every death of a thread; `ended`: it was one too many, and the thread stays away. */
  onDeath: (name: string, error: unknown, ended: boolean) => void;
  restarts?: RestartLimit;
  /** How long a thread may take to stop its actors before it is ended, in milliseconds. */
  stopMs?: number;
  entryOf?: (kind: ThreadKind) => URL;
  /** Threads that were started before, by name, and have no assignment yet. */
  startedWorkers?: ReadonlyMap<string, StartedWorker>;
}

export interface ThreadSupervisor {
  /**
   * Resolves when every thread of `kind` is up, and starts those that are not. Fails `gone` for one that was
   * given up.
   */
  ensure(kind: ThreadKind): Promise<void>;
  /** The same for the one thread that holds `address`; resolves when its peers are connected to it, too. */
  ensureFor(address: string): Promise<void>;
  /**
   * `onRestarted` runs each time a thread is back after a death: its `setup` is done, its peers are
   * connected, and `ensure` waits for the callback. A rejection counts as another death.
   */
  onRestarted(onRestarted: (name: string) => void | Promise<void>): void;
  /** Stops all, last kind first. Resolves with the addresses, or names of whole threads, that were late. */
  stop(): Promise<string[]>;
}

/** What main may call on a thread. */
interface ThreadControl {
  connect(peer: string, port: MessagePort): void;
  /** Resolves when its `setup` is done. */
  ready(): Promise<void>;
  stop(): Promise<string[]>;
}

/** The first message to a thread. */
interface Assignment {
  name: string;
  sizes: PoolSizes;
  data: unknown;
  peers: [name: string, port: MessagePort][];
  control: MessagePort;
}

interface ThreadInstance {
  worker: StartedWorker;
  control: Remote<ThreadControl>;
  /** Resolves when it is over, with what such a thread has left running: nothing. */
  exited: Promise<string[]>;
}

interface Thread {
  readonly name: string;
  readonly kind: ThreadKind;
  readonly deaths: RestartWindow;
  /** Settles when it is up, over as many deaths on the way as are allowed. */
  whenUp: Deferred<void>;
  isUp: boolean;
  wasUp: boolean;
  instance: ThreadInstance | undefined;
  /** Resolves when those it talks to that were there before it know of it. */
  peersConnected: Promise<unknown>;
}

// Node's ports are web ports; only the types of the two worlds do not know of each other.
const endpoint = (port: MessagePort): Endpoint => port as unknown as Endpoint;

const ALREADY_RESOLVED = Promise.resolve();

/** Starts no thread yet: `ensure` does. */
export function createThreadSupervisor(options: ThreadSupervisorOptions): ThreadSupervisor {
  const { node, sizes, dataFor, onDeath, entryOf = entryUrl, receiveAfter = ALREADY_RESOLVED } = options;
  const { restarts = THREADS.restarts, stopMs = THREADS.stopTimeoutMs } = options;
  const place = createNodeLookup(sizes);
  const early = new Map(options.startedWorkers);
  const threads = new Map<string, Thread>();
  const listeners: ((name: string) => void | Promise<void>)[] = [];
  let stopped: Promise<string[]> | undefined;

  /** A port to everybody `thread` talks to; the other ends are handed out. */
  const introduce = (thread: Thread): Assignment['peers'] => {
    const peers: Assignment['peers'] = [];
    const taken: Promise<unknown>[] = [];
    const portTo = (name: string): MessagePort => {
      const { port1, port2 } = new MessageChannel();
      peers.push([name, port2]);
      return port1;
    };
    if (areConnected('front', thread.kind))
      node.connect(thread.name, gatedPipe(messagePortPipe(portTo(node.name)), receiveAfter));
    for (const { name, kind, instance } of threads.values()) {
      if (!instance || name === thread.name || !areConnected(kind, thread.kind)) continue;
      const port = portTo(name);
      const connected = instance.control.connect(thread.name, transfer(port, [port])).catch(() => {});
      // Never settles when that thread dies meanwhile: its successor is introduced anew.
      taken.push(Promise.race([connected, instance.exited]));
    }
    thread.peersConnected = Promise.all(taken);
    return peers;
  };

  const launch = (thread: Thread): void => {
    const peers = introduce(thread);
    const { port1, port2 } = new MessageChannel();
    const data = dataFor(thread.kind, thread.deaths.count > 0);
    const assignment: Assignment = { name: thread.name, sizes, data, peers, control: port2 };
    const worker = early.get(thread.name) ?? startWorker(entryOf(thread.kind), thread.name);
    early.delete(thread.name);
    worker.assign(assignment, [port2, ...peers.map(([, port]) => port)]);
    const unread = deferred<void>();
    // Its last answer may still lie in the port when the thread is gone: both have to be over.
    port1.once('close', unread.resolve);
    const exited = Promise.all([worker.ended, unread.promise]).then(() => []);
    const incarnation: ThreadInstance = { worker, control: wrap<ThreadControl>(endpoint(port1)), exited };
    thread.instance = incarnation;
    let cause: unknown;
    void worker.ended.then((reason) => died(thread, cause ?? reason));
    whenReady(thread, incarnation).catch((error: unknown) => {
      cause ??= error;
      void worker.terminate();
    });
  };

  const whenReady = async (thread: Thread, incarnation: ThreadInstance): Promise<void> => {
    await incarnation.control.ready();
    if (thread.wasUp) for (const onRestarted of listeners) await onRestarted(thread.name);
    if (thread.instance !== incarnation) return;
    thread.isUp = true;
    thread.wasUp = true;
    thread.whenUp.resolve();
  };

  const down = (thread: Thread): void => {
    if (thread.isUp) thread.whenUp = deferred();
    thread.isUp = false;
  };

  const died = (thread: Thread, error: unknown): void => {
    thread.instance = undefined;
    down(thread);
    node.disconnect(thread.name);
    if (stopped) {
      thread.whenUp.reject(new Failure('gone', 'the daemon stops'));
      return;
    }
    const ended = !thread.deaths.add(systemClock.monotonic());
    onDeath(thread.name, error, ended);
    if (ended) thread.whenUp.reject(new Failure('gone', `${thread.name} died too often`));
    else launch(thread);
  };

  // A connection is lost before the death of its thread is seen, so `ensure` waits from here on. A thread
  // that lost only its connection is of no use: it is terminated, too.
  node.onPeerLost((name) => {
    const thread = threads.get(name);
    if (!thread?.instance || stopped) return;
    down(thread);
    void thread.instance.worker.terminate();
  });

  const ensureOne = async (name: string, kind: ThreadKind): Promise<Thread> => {
    if (stopped) throw new Failure('gone', 'the daemon stops');
    let thread = threads.get(name);
    if (!thread) {
      thread = {
        name,
        kind,
        deaths: new RestartWindow(restarts),
        whenUp: deferred(),
        isUp: false,
        wasUp: false,
        instance: undefined,
        peersConnected: ALREADY_RESOLVED,
      };
      threads.set(name, thread);
      launch(thread);
    }
    await thread.whenUp.promise;
    return thread;
  };

  const stopOne = async ({ name, instance }: Thread): Promise<string[]> => {
    if (!instance) return [];
    const { control, exited, worker } = instance;
    // Whatever comes first: its answer, its death, or the end of our patience. A busy or dead thread never
    // answers.
    const late = await withTimeout(stopMs, Promise.race([control.stop(), exited])).catch(() => null);
    if (late !== null) await withTimeout(EXIT_TIMEOUT_MS, exited);
    await worker.terminate();
    return late ?? [name];
  };

  const stopAll = async (): Promise<string[]> => {
    const late: string[] = [];
    for (const kind of THREAD_KINDS.toReversed()) {
      const ofKind = [...threads.values()].filter((thread) => thread.kind === kind);
      late.push(...(await Promise.all(ofKind.map(stopOne))).flat());
    }
    return late;
  };

  return {
    async ensure(kind) {
      const names =
        kind === 'services' || kind === 'tethers'
          ? Array.from({ length: sizes[kind] }, (_, index) => `${kind}-${index}`)
          : [kind];
      await Promise.all(names.map((name) => ensureOne(name, kind)));
    },
    async ensureFor(address) {
      const name = place(address);
      const kind = THREAD_KINDS.find((one) => name?.startsWith(one));
      if (!name || !kind) throw new TypeError(`no thread holds ${address}`);
      const { peersConnected } = await ensureOne(name, kind);
      await peersConnected;
    },
    onRestarted: (listener) => void listeners.push(listener),
    stop() {
      stopped ??= stopAll();
      return stopped;
    },
  };
}

/**
 * What the entry of a thread calls: makes its node, connects the peers it is assigned and runs `setup` with
 * what main gave as `data`. Rejects when `setup` does, which ends the thread.
 */
export async function runThread(
  setup: (node: Node, data: unknown) => void | Promise<void>,
  onCrash: NonNullable<NodeOptions['onCrash']>,
): Promise<void> {
  const { name, sizes, data, peers, control } = await receiveAssignment<Assignment>();
  const node = createNode({
    name,
    clock: systemClock,
    nodeOf: createNodeLookup(sizes),
    mayAsk,
    onCrash,
    defaultDeadlineMs: THREADS.askDeadlineMs,
  });
  for (const [peer, port] of peers) node.connect(peer, messagePortPipe(port));
  const ready = deferred<void>();
  const calls: ThreadControl = {
    connect: (peer, port) => node.connect(peer, messagePortPipe(port)),
    ready: () => ready.promise,
    async stop() {
      const late = await node.stop();
      // After the answer, which goes out with the jobs of this turn. Then nothing of ours holds the thread.
      setImmediate(() => control.close());
      return late;
    },
  };
  expose(calls, endpoint(control));
  await setup(node, data);
  ready.resolve();
}
