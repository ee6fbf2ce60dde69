// Frames between two nodes over a pipe, with all frames of one turn in one post, and the open asks over it.
import { type Clock, Failure, type Pipe, type RuntimeCode } from './actor.ts';
import { decodeAllMsgpack, encodeMsgpack } from './msgpack.ts';

const ASK = 0;
const TELL = 1;
const REPLY = 2;
const FAIL = 3;
const WATCH = 4;
const ENDED = 5;

/** The messages between two nodes. */
type Frame =
  | [type: typeof ASK, id: number, to: string, kind: string, message: unknown, millisecondsLeft: number]
  | [type: typeof TELL, to: string, kind: string, message: unknown]
  | [type: typeof REPLY, id: number, value: unknown]
  | [type: typeof FAIL, id: number, code: string, message: string, detail: unknown]
  | [type: typeof WATCH, address: string]
  | [type: typeof ENDED, address: string];

function isFrame(value: unknown): value is Frame {
  if (!Array.isArray(value)) return false;
  const [type, first, second, third, , fifth]: unknown[] = value;
  switch (type) {
    case ASK:
      return (
        typeof first === 'number' &&
        typeof second === 'string' &&
        typeof third === 'string' &&
        typeof fifth === 'number'
      );
    case TELL:
      return typeof first === 'string' && typeof second === 'string';
    case REPLY:
      return typeof first === 'number';
    case FAIL:
      return typeof first === 'number' && typeof second === 'string' && typeof third === 'string';
    case WATCH:
    case ENDED:
      return typeof first === 'string';
    default:
      return false;
  }
}

/** A larger turn is posted in parts, so that no pipe has to accept a frame of arbitrary size. */
const MAX_POST_BYTES = 1024 * 1024;
/** Shortest interval between checks for overdue asks: many deadlines cost one pass, not one each. */
const SWEEP_MS = 5;

const ignore = () => {};

/**
 * A class, not a literal: asks are the hot path, and giving all of them one shape saves a third of the time.
 */
class PendingAsk {
  readonly promise: Promise<unknown>;
  readonly expires: number;
  readonly to: string;
  resolve: (value: unknown) => void = ignore;
  reject: (error: Failure) => void = ignore;
  constructor(to: string, expires: number) {
    this.to = to;
    this.expires = expires;
    this.promise = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }
}

/** A message on its way to an actor of this node. Its reply goes back over `link`. */
export interface Envelope {
  readonly link: PeerLink;
  /** 0: a tell, which gets no reply. */
  readonly id: number;
  readonly to: string;
  readonly kind: string;
  readonly message: unknown;
  /** Monotonic milliseconds of this side. */
  readonly expires: number;
}

/** The owner of a link, called for everything that the link does not settle itself. No method may throw. */
export interface LinkListener {
  /** An ask got no answer in time. */
  onMissed(): void;
  onEnvelope(envelope: Envelope): void;
  onWatch(link: PeerLink, address: string): void;
  onEnded(address: string): void;
  onLost(link: PeerLink, reason: string): void;
}

export class PeerLink {
  readonly peer: string;
  private readonly pipe: Pipe;
  private readonly clock: Clock;
  private readonly listener: LinkListener;
  private parts: Uint8Array[] = [];
  private size = 0;
  private readonly asks = new Map<number, PendingAsk>();
  private lastId = 0;
  private sweepAt = Number.POSITIVE_INFINITY;
  private cancelSweep = ignore;
  private open = true;

  constructor(peer: string, pipe: Pipe, clock: Clock, listener: LinkListener) {
    this.peer = peer;
    this.pipe = pipe;
    this.clock = clock;
    this.listener = listener;
    pipe.receive(
      (bytes) => this.receive(bytes),
      (reason) => this.close(reason),
    );
  }

  /** Asks without an answer so far. */
  get openAsks(): number {
    return this.asks.size;
  }

  /** Settles exactly once: with the reply, or a Failure. Throws when `message` is not plain data. */
  ask(to: string, kind: string, message: unknown, deadlineMs: number): Promise<unknown> {
    if (!this.open) return Promise.reject(goneFailure(to));
    // NaN counts as 0: a mistake must not make anything wait for ever.
    const ms = Math.max(deadlineMs || 0, 0);
    this.lastId += 1;
    this.send([ASK, this.lastId, to, kind, message, ms]);
    const expires = this.clock.monotonic() + ms;
    const ask = new PendingAsk(to, expires);
    this.asks.set(this.lastId, ask);
    if (expires < this.sweepAt) this.scheduleSweep(ms, expires);
    return ask.promise;
  }

  /** Throws when `message` is not plain data. */
  tell(to: string, kind: string, message: unknown): void {
    this.send([TELL, to, kind, message]);
  }

  /** Throws, and sends nothing, when `value` is not plain data. */
  reply(id: number, value: unknown): void {
    if (id !== 0) this.send([REPLY, id, value]);
  }

  fail(id: number, code: string, message: string, detail?: unknown): void {
    if (id !== 0) this.send([FAIL, id, code, message, detail ?? null]);
  }

  refuse(id: number, code: RuntimeCode, to: string): void {
    if (id !== 0) this.send([FAIL, id, code, `${to}: ${RUNTIME_CODE_TEXT[code]}`, null]);
  }

  watch(address: string): void {
    this.send([WATCH, address]);
  }

  ended(address: string): void {
    this.send([ENDED, address]);
  }

  /** Posts the remaining frames, closes the pipe and fails every open ask with `gone`. */
  close(reason: string): void {
    if (!this.open) return;
    this.flush();
    this.open = false;
    this.cancelSweep();
    for (const ask of this.asks.values()) rejectAsk(ask, new Failure('gone', `${this.peer}: ${reason}`));
    this.asks.clear();
    this.pipe.close();
    this.listener.onLost(this, reason);
  }

  // Encoded at once: later changes to the object are not part of the message.
  private send(frame: Frame): void {
    if (!this.open) return;
    const part = encodeMsgpack(frame);
    // Runs at the end of the turn, after its promises: within a promise job, process.nextTick waits for the
    // others.
    if (this.size === 0) process.nextTick(() => this.flush());
    this.parts.push(part);
    this.size += part.length;
    if (this.size >= MAX_POST_BYTES) this.flush();
  }

  private flush(): void {
    if (this.size === 0 || !this.open) return;
    // The parts are views into a pool that must not be transferred, so they are copied to one array of their
    // exact size.
    const bytes = new Uint8Array(this.size);
    let offset = 0;
    for (const part of this.parts) {
      bytes.set(part, offset);
      offset += part.length;
    }
    this.parts = [];
    this.size = 0;
    this.pipe.send(bytes);
  }

  private receive(bytes: Uint8Array): void {
    if (!this.open) return;
    let frames: unknown[];
    try {
      frames = decodeAllMsgpack(bytes);
    } catch (error) {
      this.close(`garbled bytes: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    const now = this.clock.monotonic();
    for (const frame of frames) {
      // An earlier frame may have ended the link.
      if (!this.open) return;
      if (isFrame(frame)) this.dispatch(frame, now);
      else this.close('garbled bytes: not a frame');
    }
  }

  private dispatch(frame: Frame, now: number): void {
    switch (frame[0]) {
      case ASK: {
        const [, id, to, kind, message, left] = frame;
        // Without time left, the sender has already failed the ask with `deadline`.
        if (left > 0) this.listener.onEnvelope({ link: this, id, to, kind, message, expires: now + left });
        return;
      }
      case TELL: {
        const [, to, kind, message] = frame;
        this.listener.onEnvelope({ link: this, id: 0, to, kind, message, expires: Number.POSITIVE_INFINITY });
        return;
      }
      case REPLY:
        this.take(frame[1])?.resolve(frame[2]);
        return;
      case FAIL: {
        const [, id, code, message, detail] = frame;
        const ask = this.take(id);
        if (ask) rejectAsk(ask, new Failure(code, message, detail ?? undefined));
        return;
      }
      case WATCH:
        this.listener.onWatch(this, frame[1]);
        return;
      case ENDED:
        this.listener.onEnded(frame[1]);
    }
  }

  /** Removes an open ask, so that it is settled only once. */
  private take(id: number): PendingAsk | undefined {
    const ask = this.asks.get(id);
    if (ask) this.asks.delete(id);
    return ask;
  }

  // One timer for all deadlines, set for the earliest one known at that time: an ask costs a comparison, not
  // a timer.
  private scheduleSweep(ms: number, at: number): void {
    this.cancelSweep();
    this.sweepAt = at;
    this.cancelSweep = this.clock.after(ms, () => this.sweep());
  }

  private sweep(): void {
    const now = this.clock.monotonic();
    let next = Number.POSITIVE_INFINITY;
    for (const [id, ask] of this.asks) {
      if (ask.expires <= now) {
        this.asks.delete(id);
        this.listener.onMissed();
        rejectAsk(ask, new Failure('deadline', `${this.peer}: ${RUNTIME_CODE_TEXT.deadline}`));
      } else if (ask.expires < next) next = ask.expires;
    }
    this.sweepAt = Number.POSITIVE_INFINITY;
    if (next < Number.POSITIVE_INFINITY) this.scheduleSweep(Math.max(next - now, SWEEP_MS), next);
  }
}

const RUNTIME_CODE_TEXT: Record<RuntimeCode, string> = {
  overloaded: 'its mailbox is full',
  deadline: 'no answer in time',
  crashed: 'it crashed at this message',
  gone: 'nobody is there',
};

export const goneFailure = (to: string): Failure => new Failure('gone', `${to}: ${RUNTIME_CODE_TEXT.gone}`);

// If a handler fails between two asks, the second one has no listener. Its rejection must not end the process
// as an unhandled one.
function rejectAsk(ask: PendingAsk, failure: Failure): void {
  ask.promise.catch(ignore);
  ask.reject(failure);
}
