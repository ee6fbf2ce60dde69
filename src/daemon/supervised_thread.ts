// The kinds of threads, and what the supervisor knows of each thread.
import type { NodeKind } from '../protocol/address.ts';
import type { Failure } from '../runtime/actor.ts';
import { type Deferred, deferred } from '../runtime/deferred.ts';
import type { RestartWindow } from '../runtime/restart_window.ts';
import type { StallDetector } from './stall_detector.ts';
import type { ThreadInstance } from './thread_instance.ts';

export type ThreadKind = Exclude<NodeKind, 'front' | 'host'>;

/** Every kind of thread in the order of starting; they stop in the reverse order. */
export const THREAD_KINDS: readonly ThreadKind[] = [
  'services',
  'clusters',
  'cloud',
  'tethers',
  'doors',
  'gateway',
  'watcher',
  'mcp',
];

/** The kinds of node that have a connection, in either direction. */
const CONNECTED_KINDS: readonly (readonly [NodeKind, NodeKind])[] = [
  ['front', 'services'],
  ['front', 'cloud'],
  ['front', 'tethers'],
  ['cloud', 'tethers'],
  ['front', 'clusters'],
  ['cloud', 'clusters'],
  ['front', 'gateway'],
  ['services', 'gateway'],
  ['front', 'doors'],
  ['services', 'doors'],
  ['services', 'cloud'],
  ['front', 'watcher'],
  ['services', 'watcher'],
  ['front', 'mcp'],
];

export const areConnected = (one: NodeKind, other: NodeKind): boolean =>
  CONNECTED_KINDS.some(([a, b]) => (a === one && b === other) || (a === other && b === one));

/** `up` settles when the thread is up, across as many deaths as are allowed. */
export type ThreadState =
  | { is: 'idle' }
  | StartingState
  | { is: 'up'; instance: ThreadInstance }
  /** The connection is lost, so the thread is useless and is being terminated. */
  | { is: 'lost'; instance: ThreadInstance; up: Deferred<void> }
  /** Its files do not load. */
  | { is: 'absent'; up: Deferred<void> }
  /** The thread stays down, for good or for a while. */
  | { is: 'ended'; failure: Failure };

export interface StartingState {
  is: 'starting';
  instance: ThreadInstance;
  up: Deferred<void>;
}

export interface Thread {
  readonly name: string;
  readonly kind: ThreadKind;
  readonly deaths: RestartWindow;
  state: ThreadState;
  /** Whether it has ever been up. */
  wasUp: boolean;
  /** When its files were first found not to load, in monotonic milliseconds; null: they load. */
  absentSince: number | null;
  /** For the thread's current run; null once that is known to hang. */
  detector: StallDetector | null;
  /** Resolves when the peers that existed before its last start are connected to it. */
  peersConnected: Promise<unknown>;
}

/** The `up` of a state that follows `state`, so that existing waiters keep waiting. */
export const pendingUp = (state: ThreadState): Deferred<void> => ('up' in state ? state.up : deferred());
