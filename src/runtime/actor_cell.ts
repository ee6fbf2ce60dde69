// One actor at one address: its mailbox and the incarnations it goes through.
import { type ActorLimits, type Context, Failure } from './actor.ts';
import { deferred } from './deferred.ts';
import { type HandlerTable, type IncarnationNode, startIncarnation } from './incarnation.ts';
import type { Envelope } from './peer_link.ts';

/** The pause before `init` runs again; it doubles with every crash in the window. */
const BACKOFF = { firstMs: 10, maxMs: 1_000 };

/** An actor type with its configuration filled in. */
export interface ConfiguredActor {
  readonly limits: ActorLimits;
  init(context: Context): HandlerTable | Promise<HandlerTable>;
}

/** What a cell needs of its node. */
export interface CellNode extends IncarnationNode {
  /** Delivers a letter to whoever has its address now. */
  onEnvelope(envelope: Envelope): void;
  /** The cell of `address` is over. */
  onCellEnded(address: string): void;
}

export interface ActorCell {
  readonly address: string;
  /** Resolves after the first `init` that succeeds; rejects when the actor ended before that. */
  readonly ready: Promise<void>;
  deliver(envelope: Envelope): void;
  /** Handles what is queued, closes and ends. True when that was done in time. */
  stop(): Promise<boolean>;
}

/** Begins the actor of `role` at once. Never throws: crashes and what did not close in time are reported to `home`. */
export function startCell(address: string, type: ConfiguredActor, node: CellNode): ActorCell {
  const { mailbox, restarts, drainMs } = type.limits;
  const queue: Envelope[] = [];
  const crashes: number[] = [];
  const ready = deferred<void>();
  let stopping = false;
  let inTime = true;
  let dropping = false;
  let skipPause = () => {};
  let stopped: Promise<boolean> | undefined;

  const beginNext = () => startIncarnation(address, type.init, node, queue, drainMs, () => ready.resolve());

  const mayRestart = () => {
    const now = node.clock.monotonic();
    crashes.push(now);
    while ((crashes[0] ?? now) < now - restarts.withinMs) crashes.shift();
    return !stopping && crashes.length <= restarts.max;
  };

  const pause = async () => {
    const pause = deferred<void>();
    const ms = BACKOFF.firstMs * 2 ** (crashes.length - 1);
    const cancel = node.clock.after(Math.min(ms, BACKOFF.maxMs), pause.resolve);
    skipPause = pause.resolve;
    if (!stopping) await pause.promise;
    cancel();
  };

  // What is still queued gets `gone`; after an `end` of its own it is delivered anew, which starts a family's actor again.
  const leave = (refuse: boolean) => {
    ready.reject(new Failure('crashed', `${address} did not start`));
    node.onCellEnded(address);
    for (const letter of queue.splice(0)) {
      if (refuse) letter.link.refuse(letter.id, 'gone', address);
      else node.onEnvelope(letter);
    }
  };

  let incarnation = beginNext();
  const live = async () => {
    for (;;) {
      const crash = await incarnation.ended;
      const again = crash !== null && mayRestart();
      if (crash) node.report(address, crash.error, !again);
      if (!(await incarnation.close()))
        node.report(address, new Error('its scope did not close in time'), false);
      if (again) await pause();
      if (!again || stopping) return leave(crash !== null || stopping);
      incarnation = beginNext();
    }
  };
  const done = live();

  const drain = async () => {
    stopping = true;
    const cancel = node.clock.after(drainMs, () => {
      inTime = false;
      incarnation.finish(null);
    });
    skipPause();
    incarnation.drain();
    await done;
    cancel();
    return inTime;
  };

  const overloaded = (letter: Envelope) => {
    letter.link.refuse(letter.id, 'overloaded', address);
    // A tell has nobody to be told, so the first one that a full mailbox drops is reported.
    if (letter.id === 0 && !dropping) {
      dropping = true;
      node.report(address, new Failure('overloaded', `${letter.kind} was dropped`), false);
    }
  };

  return {
    address,
    ready: ready.promise,
    deliver(letter) {
      if (stopping) letter.link.refuse(letter.id, 'gone', address);
      else if (queue.length + incarnation.openReplies.size >= mailbox) overloaded(letter);
      else {
        if (queue.length === 0) dropping = false;
        queue.push(letter);
        incarnation.pump();
      }
    },
    stop() {
      stopped ??= drain();
      return stopped;
    },
  };
}
