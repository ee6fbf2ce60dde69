// Shared by the tests of actors: virtual time, a node checked for leaks, scripted peers, pipes and temporary
// folders.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { mayAsk } from '../../src/protocol/address.ts';
import {
  type ActorType,
  actor,
  type Clock,
  type Handlers,
  type MessageKind,
  type MessageOf,
  type Node,
  type NodeOptions,
  type Pipe,
  type Protocol,
  type Ref,
} from '../../src/runtime/actor.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { type UntypedNode, untypedNode } from './untyped_node.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  const errors: unknown[] = [];
  for (const close of closers.splice(0).reverse()) {
    try {
      await close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors);
});

/** Runs `close` after this test, last registered first. An error from it fails the test. */
export function afterThisTest(close: () => void | Promise<void>): void {
  closers.push(close);
}

/** Closes what `make` opens after everything else: what was opened before it uses it until its own end. */
export function closedLast<T>(make: () => T): T {
  const count = closers.length;
  const made = make();
  closers.unshift(...closers.splice(count));
  return made;
}

/** A folder that is removed after the test. */
export function tempDir(): string {
  const path = mkdtempSync(join(tmpdir(), 'berth-test-'));
  afterThisTest(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs everything that is ready: promise jobs, ticks, posted frames. Not I/O. */
export const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Time in a test. */
export interface TestClock extends Clock {
  /** Advances time by `ms`: virtual time at once and timer by timer, real time by waiting. */
  advance(ms: number): Promise<void>;
}

/** Virtual time. */
export interface VirtualClock extends TestClock {
  /** Lets `ms` pass in which nothing runs, as while the process is stopped: timers fire late, at the next advance. */
  standStill(ms: number): void;
}

interface Timer {
  at: number;
  every: number | null;
  callback: () => void;
}

/** Time that stands still until it is advanced. Starts at `startMs` of the epoch. */
export function virtualClock(startMs = Date.UTC(2030, 0, 1)): VirtualClock {
  let elapsed = 0;
  let stoodMs = 0;
  const timers = new Set<Timer>();
  const add = (ms: number, every: number | null, callback: () => void) => {
    const timer = { at: elapsed + Math.max(ms, 0), every, callback };
    timers.add(timer);
    return () => {
      timers.delete(timer);
    };
  };
  const due = (until: number): Timer | undefined => {
    let first: Timer | undefined;
    for (const timer of timers) {
      if (timer.at <= until && (!first || timer.at < first.at)) first = timer;
    }
    return first;
  };
  return {
    // Whole milliseconds, as of a system clock, though a timer may be due between two.
    now: () => Math.floor(startMs + elapsed),
    monotonic: () => elapsed,
    running: () => elapsed - stoodMs,
    after: (ms, callback) => add(ms, null, callback),
    every: (ms, callback) => add(ms, ms, callback),
    standStill(ms) {
      elapsed += ms;
      stoodMs += ms;
    },
    async advance(ms) {
      const until = elapsed + ms;
      await settle();
      for (let timer = due(until); timer; timer = due(until)) {
        elapsed = Math.max(elapsed, timer.at);
        if (timer.every === null) timers.delete(timer);
        else timer.at = elapsed + timer.every;
        timer.callback();
        await settle();
      }
      elapsed = until;
    },
  };
}

/** The machine's clock, for actors that do real I/O. */
export const realTime: TestClock = {
  ...systemClock,
  advance: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
};

/** Wraps `clock` and counts the timers set through it. */
function counted(clock: Clock): Clock & { readonly timers: number } {
  const timers = new Set<() => void>();
  const keep = (cancel: () => void) => {
    const done = () => {
      if (timers.delete(done)) cancel();
    };
    timers.add(done);
    return done;
  };
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    running: () => clock.running(),
    after(ms, callback) {
      const done = keep(
        clock.after(ms, () => {
          done();
          callback();
        }),
      );
      return done;
    },
    every: (ms, callback) => keep(clock.every(ms, callback)),
    get timers() {
      return timers.size;
    },
  };
}

export interface Crash {
  address: string;
  error: unknown;
  ended: boolean;
}

/** A stand-in at an address: it answers as scripted and keeps the messages it received. */
export interface Stand<P extends Protocol<P>> {
  /** Every message in order of arrival. */
  readonly received: { kind: MessageKind<P>; message: unknown }[];
  /** The messages of one kind. */
  of<K extends MessageKind<P>>(kind: K): MessageOf<P, K>[];
  /** The first message of `kind` that `next` has not returned yet; waits for it. */
  next<K extends MessageKind<P>>(kind: K): Promise<MessageOf<P, K>>;
  /** Replaces some answers from now on. */
  answer(handlers: Partial<Handlers<P>>): void;
}

export interface World {
  readonly node: UntypedNode;
  readonly clock: TestClock;
  /** Crashes so far. A crash left here at the end fails the test: assert it, then empty the list. */
  readonly crashes: Crash[];
  /** Addresses that the test lets miss their drain time when the node stops. */
  readonly late: string[];
  start<P extends Protocol<P>, C>(address: string, type: ActorType<P, C>, config: C): Promise<Ref<P>>;
  /** Registers a stand-in at `address`. Kinds without a handler are answered with null. */
  stand<P extends Protocol<P>>(address: string, handlers?: Partial<Handlers<P>>): Promise<Stand<P>>;
  ref<P extends Protocol<P>>(address: string): Ref<P>;
}

/**
 * One node that holds every address, in virtual time unless `clock` says otherwise; messages go through the
 * real encoding. After the test the node is stopped. The test fails on a late actor, a leftover timer or an
 * unexpected crash.
 */
export function world(options: Partial<Omit<NodeOptions, 'clock'>> & { clock?: TestClock } = {}): World {
  const clock = options.clock ?? virtualClock();
  const timers = counted(clock);
  const crashes: Crash[] = [];
  const expectedLate: string[] = [];
  const node = untypedNode({
    name: 'test',
    nodeOf: () => options.name ?? 'test',
    mayAsk,
    onCrash: (address, error, ended) => crashes.push({ address, error, ended }),
    ...options,
    clock: timers,
  });
  afterThisTest(async () => {
    const late = (await stopInTime(node, clock)).filter((address) => !expectedLate.includes(address));
    const first = crashes[0];
    if (first) throw new Error(`${crashes.length} crashes; ${first.address}:`, { cause: first.error });
    if (late.length > 0) throw new Error(`stopped late: ${late.join(', ')}`);
    if (timers.timers > 0) throw new Error(`${timers.timers} timers left`);
  });
  return {
    node,
    clock,
    crashes,
    late: expectedLate,
    start: (address, type, config) => node.start(address, type, config),
    ref: (address) => node.ref(address),
    stand: (address, handlers) => stand(node, address, handlers ?? {}),
  };
}

/** Stops `node`. Time advances meanwhile, slowly enough for real I/O to keep pace. */
export async function stopInTime(node: Pick<Node, 'stop'>, clock: TestClock): Promise<string[]> {
  let late: string[] | undefined;
  const stopped = node.stop().then((addresses) => {
    late = addresses;
  });
  for (;;) {
    await settle();
    if (late) return late;
    await Promise.race([stopped, realTime.advance(10)]);
    await clock.advance(100);
  }
}

/**
 * Two nodes in one virtual time, joined by a pipe: addresses that begin with the second node's name live
 * there, all others on the first. `cut` loses the connection.
 */
export function twoWorlds(carry?: Carry): { near: World; far: World; cut(reason: string): void } {
  const clock = virtualClock();
  const place = (address: string) => (address.startsWith('far') ? 'far' : 'near');
  const near = world({ name: 'near', nodeOf: place, clock });
  const far = world({ name: 'far', nodeOf: place, clock });
  const { ends, cut } = pipePair(carry);
  near.node.connect('far', ends[0]);
  far.node.connect('near', ends[1]);
  return { near, far, cut };
}

async function stand<P extends Protocol<P>>(
  node: UntypedNode,
  address: string,
  handlers: Partial<Handlers<P>>,
): Promise<Stand<P>> {
  const received: { kind: MessageKind<P>; message: unknown }[] = [];
  const taken = new Map<string, number>();
  let script = handlers;
  let arrived: (() => void)[] = [];
  const handle = (kind: MessageKind<P>) => (message: never) => {
    received.push({ kind, message });
    for (const wake of arrived.splice(0)) wake();
    return script[kind]?.(message) ?? null;
  };
  // A stand-in has no list of kinds: it has a handler for every kind except `then`, which would make it a
  // promise.
  const anything = new Proxy({} as Handlers<P>, {
    get: (_, kind) => (kind === 'then' ? undefined : handle(kind as MessageKind<P>)),
    getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true, value: null }),
  });
  await node.start(
    address,
    actor<P, null>('stand', () => anything),
    null,
  );
  const of = <K extends MessageKind<P>>(kind: K) =>
    received.filter((entry) => entry.kind === kind).map((entry) => entry.message as MessageOf<P, K>);
  return {
    received,
    of,
    answer(handlers) {
      script = { ...script, ...handlers };
    },
    async next(kind) {
      const index = taken.get(kind) ?? 0;
      taken.set(kind, index + 1);
      for (;;) {
        const message = of(kind)[index];
        if (message !== undefined) return message;
        await new Promise<void>((resolve) => {
          arrived = [...arrived, resolve];
        });
      }
    },
  };
}

/** Delivery of a frame: call `deliver` now, later or never; `from` is the sending end. */
export type Carry = (deliver: () => void, from: 0 | 1) => void;

/** Two ends that pass real bytes, and `cut`, which closes both with a reason. */
export function pipePair(carry: Carry = (deliver) => queueMicrotask(deliver)): {
  ends: [Pipe, Pipe];
  cut(reason: string): void;
} {
  const receivers: [Receiver, Receiver] = [NOBODY, NOBODY];
  let open = true;
  const cut = (reason: string) => {
    if (!open) return;
    open = false;
    for (const receiver of receivers) receiver.onClose(reason);
  };
  const end = (side: 0 | 1): Pipe => ({
    // Transferred, as a port does it: a sender that uses the bytes afterwards finds them detached.
    send: (bytes) => {
      const arrived = structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] });
      carry(() => {
        if (open) receivers[side === 0 ? 1 : 0].onBytes(arrived);
      }, side);
    },
    receive(onBytes, onClose) {
      receivers[side] = { onBytes, onClose };
    },
    close: () => carry(() => cut('closed'), side),
  });
  return { ends: [end(0), end(1)], cut };
}

interface Receiver {
  onBytes(bytes: Uint8Array): void;
  onClose(reason: string): void;
}
const NOBODY: Receiver = { onBytes: () => {}, onClose: () => {} };
