// The heartbeat of a thread's event loop, in memory shared with the thread that watches it: a counter that
// increases with each beat, and the latest message being handled. Nothing is sent.
import { ownTaskId } from '../adapters/process/task_state.ts';
import type { Clock } from '../runtime/actor.ts';
import { THREADS } from '../settings/limits.ts';

/** Positions in the memory: three numbers, then the bytes of the note. */
const BEATS = 0;
const TASK = 1;
const NOTE_LENGTH = 2;
const NOTE_AT = 3 * Int32Array.BYTES_PER_ELEMENT;
const MAX_NOTE_LENGTH = 116;

/** The number of beats over which the lag is measured: about a minute. */
const LAG_BEATS = 60;

/** Memory for one thread's heartbeat. It can be passed to other threads. */
export const heartbeatMemory = (): SharedArrayBuffer => new SharedArrayBuffer(NOTE_AT + MAX_NOTE_LENGTH);

/**
 * Starts the heartbeat of this thread. `note` records the message being handled. It is called for each
 * message, so it writes only characters that differ from the last, one by one, which is faster than any
 * encoder. `lagMs` is the longest delay of a beat in the last minute, in milliseconds.
 */
export function startHeartbeat(
  memory: SharedArrayBuffer,
  clock: Clock,
  beatMs: number = THREADS.hang.beatMs,
): { note: (address: string, kind: string) => void; lagMs: () => number; stop: () => void } {
  const numbers = new Int32Array(memory, 0, 3);
  const bytes = new Uint8Array(memory, NOTE_AT);
  const delays: number[] = [];
  let due = clock.monotonic();
  const beat = (): void => {
    Atomics.add(numbers, BEATS, 1);
    const now = clock.monotonic();
    delays.push(Math.max(0, now - due));
    if (delays.length > LAG_BEATS) delays.shift();
    due = now + beatMs;
  };
  Atomics.store(numbers, TASK, ownTaskId());
  beat();
  const write = (text: string, from: number): number => {
    const end = Math.min(from + text.length, MAX_NOTE_LENGTH);
    for (let at = from; at < end; at += 1) bytes[at] = text.charCodeAt(at - from);
    return end;
  };
  let lastAddress = '';
  let lastKind = '';
  const note = (address: string, kind: string): void => {
    if (address === lastAddress && kind === lastKind) return;
    lastAddress = address;
    lastKind = kind;
    numbers[NOTE_LENGTH] = write(kind, write(' ', write(address, 0)));
  };
  return { note, lagMs: () => Math.max(...delays), stop: clock.every(beatMs, beat) };
}

/** The heartbeat of another thread. */
export class WatchedHeartbeat {
  private readonly numbers: Int32Array;
  private readonly memory: SharedArrayBuffer;

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.numbers = new Int32Array(memory, 0, 3);
  }

  /** 0 before the first beat. */
  get beats(): number {
    return Atomics.load(this.numbers, BEATS);
  }

  /** The system's id of the thread; 0 if unknown. */
  get taskId(): number {
    return Atomics.load(this.numbers, TASK);
  }

  /** The address and kind of the latest message; empty before the first. */
  get note(): string {
    const length = Atomics.load(this.numbers, NOTE_LENGTH);
    return Buffer.from(new Uint8Array(this.memory, NOTE_AT, length)).toString('latin1');
  }
}
