// The signals a program sends its terminal besides the screen: title, progress, notifications, status. They
// are read from the output as it passes. Bounded: overlong sequences are ignored, and so are those after too
// many in one piece of output.
import type { ReportedState, TerminalProgress, TerminalSignals } from '../protocol/agent_state.ts';
import { UNSAFE_CHARACTERS } from '../protocol/unsafe_characters.ts';
import { AGENT_STATE } from '../settings/agent_limits.ts';

const ESC = 0x1b;
const BELL = 0x07;
const BRACKET = 0x5d;
const BACKSLASH = 0x5c;
/** Bytes that cancel a sequence. */
const CANCELS: ReadonlySet<number> = new Set([0x18, 0x1a]);
/** Longer sequences are ignored. */
const MAX_SEQUENCE_BYTES = 2_048;
/** Texts are cut to this length. */
const MAX_TEXT_LENGTH = 256;
/** The most sequences to examine in one piece of output. */
const MAX_SEQUENCES = 256;

/** `text` on one line, without characters that a terminal would interpret. */
const plainText = (text: string): string =>
  text.replace(/\s+/g, ' ').replace(UNSAFE_CHARACTERS, '').trim().slice(0, MAX_TEXT_LENGTH);

const SHOWN_PROGRESS = [1, 2, 3, 4] as const;

/** The parameters after `9;4;`; null: progress is no longer shown. */
function progressOf(text: string): TerminalProgress | null {
  const [shown, percent = 0] = text.split(';').map(Number);
  const state = SHOWN_PROGRESS.find((known) => known === shown);
  return state ? { state, percent: percent >= 0 && percent <= 100 ? Math.round(percent) : 0 } : null;
}

/** The states of OSC 7501, by which programs report their status; null: they withdraw it. */
const PROGRAM_STATES: Readonly<Record<string, ReportedState | null>> = {
  working: 'working',
  blocked: 'blocked',
  idle: 'idle',
  done: 'idle',
  error: 'idle',
  clear: null,
};

/** The state among the fields after `7501;`; undefined: unknown, or that of only a part of the program. */
function statusOf(text: string): ReportedState | null | undefined {
  const fields = text.split(':');
  if (fields.some((field) => field.startsWith('id='))) return undefined;
  const state = fields.find((field) => field.startsWith('state='))?.slice('state='.length) ?? '';
  return Object.hasOwn(PROGRAM_STATES, state) ? PROGRAM_STATES[state] : undefined;
}

/** The signals of one terminal. */
export class OscScanner {
  title = '';
  /** When the title last changed, in epoch milliseconds. */
  private titleAt = Number.NEGATIVE_INFINITY;
  titleMovedAt: number | null = null;
  progress: TerminalProgress | null = null;
  notification: TerminalSignals['notification'] = null;
  status: NonNullable<TerminalSignals['status']> | null = null;
  /** The start of a sequence whose end has not arrived yet. */
  private begun: Buffer | null = null;
  /** Whether the last byte may be the first of two that begin or end a sequence. */
  private isAfterEscape = false;

  /** Examines the next piece of output. `now`: epoch milliseconds. Returns whether a signal has changed. */
  take(bytes: Buffer, now: number): boolean {
    let hasChanged = false;
    let from = 0;
    for (let count = 0; count < MAX_SEQUENCES; count += 1) {
      const start = this.begun ? 0 : this.startFrom(bytes, from);
      if (start === null) return hasChanged;
      const piece = bytes.subarray(this.begun ? from : start);
      const end = this.endOf(piece);
      if (end === null) {
        this.keep(piece);
        return hasChanged;
      }
      if (end.isWhole && this.apply(this.joined(piece.subarray(0, end.at)), now)) hasChanged = true;
      this.begun = null;
      from = bytes.length - piece.length + end.next;
    }
    this.isAfterEscape = false;
    return hasChanged;
  }

  signals(): TerminalSignals {
    const { notification, progress, status, title, titleMovedAt } = this;
    return { title, titleMovedAt, progress, notification, status };
  }

  /** Where the content of the next sequence begins; null: there is none. */
  private startFrom(bytes: Buffer, from: number): number | null {
    if (from === 0 && this.isAfterEscape) {
      this.isAfterEscape = false;
      if (bytes[0] === BRACKET) return 1;
    }
    for (let at = bytes.indexOf(ESC, from); at >= 0; at = bytes.indexOf(ESC, at + 1)) {
      if (bytes[at + 1] === BRACKET) return at + 2;
    }
    this.isAfterEscape = bytes.at(-1) === ESC;
    return null;
  }

  /**
   * Where the content of the sequence ends within `piece`, and where the rest begins; null: the end is not in
   * it.
   */
  private endOf(piece: Buffer): { at: number; next: number; isWhole: boolean } | null {
    if (this.isAfterEscape) {
      this.isAfterEscape = false;
      // Any other byte would begin another sequence.
      return { at: 0, next: piece[0] === BACKSLASH ? 1 : 0, isWhole: piece[0] === BACKSLASH };
    }
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (byte === BELL) return { at, next: at + 1, isWhole: true };
      if (CANCELS.has(byte)) return { at, next: at + 1, isWhole: false };
      if (byte !== ESC) continue;
      const isWhole = piece[at + 1] === BACKSLASH;
      // The other half has not arrived yet.
      if (at + 1 === piece.length) return null;
      return { at, next: at + (isWhole ? 2 : 0), isWhole };
    }
    return null;
  }

  private keep(piece: Buffer): void {
    this.isAfterEscape = piece.at(-1) === ESC;
    const content = this.isAfterEscape ? piece.subarray(0, -1) : piece;
    const room = MAX_SEQUENCE_BYTES + 1 - (this.begun?.length ?? 0);
    // A copy, because the buffer belongs to the caller.
    this.begun = Buffer.concat([this.begun ?? Buffer.alloc(0), content.subarray(0, room)]);
  }

  private joined(piece: Buffer): Buffer {
    return this.begun ? Buffer.concat([this.begun, piece]) : piece;
  }

  private apply(content: Buffer, now: number): boolean {
    if (content.length > MAX_SEQUENCE_BYTES) return false;
    const [, code = '', text = ''] = /^(\d{1,4});([\s\S]*)$/.exec(content.toString()) ?? [];
    if (code === '0' || code === '2') return this.setTitle(plainText(text), now);
    if (code === '9' && text.startsWith('4;')) {
      this.progress = progressOf(text.slice(2));
      return true;
    }
    if (code === '9') return this.notify(text, now);
    if (code === '777' && text.startsWith('notify;')) return this.notify(text.slice(7), now);
    // kitty's form: metadata, then the payload.
    if (code === '99') return this.notify(text.slice(text.indexOf(';') + 1), now);
    if (code === '7501') return this.setStatus(statusOf(text), now);
    return false;
  }

  private setTitle(title: string, now: number): boolean {
    if (title === this.title) return false;
    const sinceMs = now - this.titleAt;
    if (sinceMs >= 0 && sinceMs <= AGENT_STATE.outputMs) this.titleMovedAt = now;
    this.title = title;
    this.titleAt = now;
    return true;
  }

  private setStatus(state: ReportedState | null | undefined, now: number): boolean {
    if (state === undefined || (state ?? undefined) === this.status?.state) return false;
    this.status = state && { state, at: now };
    return true;
  }

  private notify(given: string, now: number): boolean {
    const text = plainText(given);
    if (text === '') return false;
    this.notification = { text, at: now };
    return true;
  }
}
