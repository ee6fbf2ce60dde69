// One actor at one address: its mailbox and the incarnations it goes through.
import { type Context, Failure, type Limits } from './actor.ts';
import { deferred } from './deferred.ts';
import { beginIncarnation, type HandlerTable, type Home } from './incarnation.ts';
import type { Letter } from './link.ts';

/** The pause before `init` runs again; it doubles with every crash in the window. */
const BACKOFF = { firstMs: 10, longestMs: 1_000 };

/** An actor type with its configuration filled in. */
export interface Role {
  readonly limits: Limits;
  init(context: Context): HandlerTable | Promise<HandlerTable>;
}

/** What a cell needs of its node. */
export interface CellHome extends Home {
  /** Delivers a letter to whoever has its address now. */
  onLetter(letter: Letter): void;
  /** The cell of `address` is over. */
  over(address: string): void;
}

export interface Cell {
  readonly address: string;
  /** Resolves after the first `init` that succeeds; rejects when the actor ended before that. */
  readonly ready: Promise<void>;
  deliver(letter: Letter): void;
  /** Handles what is queued, closes and ends. True when that was done in time. */
  stop(): Promise<boolean>;
}

/** Begins the actor of `role` at once. Never throws: crashes and what did not close in time are reported to `home`. */
export function openCell(address: string, role: Role, home: CellHome): Cell {
  const { mailbox, restarts, drainMs } = role.limits;
  const queue: Letter[] = [];
  const crashes: number[] = [];
  const ready = deferred<void>();
  let stopping = false;
  let inTime = true;
  let dropping = false;
  let skipPause = () => {};
  let stopped: Promise<boolean> | undefined;

  const beginNext = () => beginIncarnation(address, role.init, home, queue, drainMs, () => ready.resolve());

  const mayRestart = () => {
    const now = home.clock.monotonic();
    crashes.push(now);
    while ((crashes[0] ?? now) < now - restarts.withinMs) crashes.shift();
    return !stopping && crashes.length <= restarts.max;
  };

  const pause = async () => {
    const pause = deferred<void>();
    const ms = BACKOFF.firstMs * 2 ** (crashes.length - 1);
    const cancel = home.clock.after(Math.min(ms, BACKOFF.longestMs), pause.resolve);
    skipPause = pause.resolve;
    if (!stopping) await pause.promise;
    cancel();
  };

  // What is still queued gets `gone`; after an `end` of its own it is delivered anew, which starts a family's actor again.
  const leave = (refuse: boolean) => {
    ready.reject(new Failure('crashed', `${address} did not start`));
    home.over(address);
    for (const letter of queue.splice(0)) {
      if (refuse) letter.link.refuse(letter.id, 'gone', address);
      else home.onLetter(letter);
    }
  };

  let incarnation = beginNext();
  const live = async () => {
    for (;;) {
      const crash = await incarnation.over;
      const again = crash !== null && mayRestart();
      if (crash) home.report(address, crash.error, !again);
      if (!(await incarnation.close()))
        home.report(address, new Error('its scope did not close in time'), false);
      if (again) await pause();
      if (!again || stopping) return leave(crash !== null || stopping);
      incarnation = beginNext();
    }
  };
  const done = live();

  const drain = async () => {
    stopping = true;
    const cancel = home.clock.after(drainMs, () => {
      inTime = false;
      incarnation.finish(null);
    });
    skipPause();
    incarnation.drain();
    await done;
    cancel();
    return inTime;
  };

  const overloaded = (letter: Letter) => {
    letter.link.refuse(letter.id, 'overloaded', address);
    // A tell has nobody to be told, so the first one that a full mailbox drops is reported.
    if (letter.id === 0 && !dropping) {
      dropping = true;
      home.report(address, new Failure('overloaded', `${letter.kind} was dropped`), false);
    }
  };

  return {
    address,
    ready: ready.promise,
    deliver(letter) {
      if (stopping) letter.link.refuse(letter.id, 'gone', address);
      else if (queue.length + incarnation.laters.size >= mailbox) overloaded(letter);
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
