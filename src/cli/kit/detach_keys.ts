// The keys that leave an attached terminal: docs/reference.md "Attach on the command line".
import { UsageError } from './exit_codes.ts';

interface DetachKey {
  /** The byte that a terminal sends for the key. */
  byte: string;
  /** The key's code in the keyboard protocols that a program may turn on. */
  code: number;
  isControl: boolean;
}

export interface DetachKeys {
  /** The keys to press, one after the other. */
  keys: readonly DetachKey[];
  /** The keys as messages show them: `Ctrl-]`. */
  text: string;
}

const ESCAPE_SEQUENCE = '\x1b[';
/** The rest of a key's sequence in the protocols of kitty and xterm. */
const SEQUENCE_END = /[\d:;]*[u~]/y;
/** kitty's protocol: the key's codes, its modifiers and the type of event, which is 3 for a release. */
const KITTY_KEY = /^([\d:]+)(?:;(\d*)(?::(\d))?)?(?:;[\d:]*)?u$/;
/** xterm's `modifyOtherKeys`: the modifiers and the key's code. */
const XTERM_KEY = /^27;(\d+);(\d+)~$/;
/** The protocols send a bit mask of modifiers plus 1. Caps lock and num lock are ignored. */
const LOCKS = 64 | 128;
const CONTROL = 4;
const KEY_NAME = /^(?:ctrl-([a-z@[\\\]^_])|([!-+\--~]))$/i;
/** The bits of a character that Control keeps. */
const CONTROL_MASK = 0x1f;

/**
 * Parses keys in the syntax of `docker attach`: `ctrl-q`, or several such as `ctrl-p,q`. Throws a UsageError.
 */
export function parseDetachKeys(text: string): DetachKeys {
  const keys = text.split(',').map((name): DetachKey => {
    const [, letter, character] = KEY_NAME.exec(name) ?? [];
    const typed = letter?.toLowerCase() ?? character;
    if (typed === undefined)
      throw new UsageError('must be a key such as ctrl-q, or several in a row such as ctrl-p,ctrl-q');
    const code = typed.charCodeAt(0);
    const isControl = letter !== undefined;
    return { byte: isControl ? String.fromCharCode(code & CONTROL_MASK) : typed, code, isControl };
  });
  const names = keys.map(({ code, isControl, byte }) =>
    isControl ? `Ctrl-${String.fromCharCode(code).toUpperCase()}` : byte,
  );
  return { keys, text: names.join(' ') };
}

/** Ctrl-], as in telnet: hardly any program uses it. */
export const DEFAULT_DETACH_KEYS = parseDetachKeys('ctrl-]');

/** Whether `part`, the input from one key, is a press of `key`; null if it is the release of any key. */
function isPressOf(part: string, key: DetachKey): boolean | null {
  if (part === key.byte) return true;
  if (!part.startsWith(ESCAPE_SEQUENCE)) return false;
  const rest = part.slice(ESCAPE_SEQUENCE.length);
  const isKey = (codes: string, modifiers: number): boolean =>
    codes.split(':').includes(String(key.code)) &&
    ((modifiers - 1) & ~LOCKS) === (key.isControl ? CONTROL : 0);
  const [, codes, modifiers, event] = KITTY_KEY.exec(rest) ?? [];
  if (event === '3') return null;
  if (codes !== undefined) return isKey(codes, Number(modifiers || 1));
  const [, held, code] = XTERM_KEY.exec(rest) ?? [];
  return code !== undefined && isKey(code, Number(held));
}

/** Splits input into keys, each a sequence of a keyboard protocol or one byte. */
function* partsOf(typed: string): Generator<string> {
  let at = 0;
  while (at < typed.length) {
    SEQUENCE_END.lastIndex = at + ESCAPE_SEQUENCE.length;
    const end = typed.startsWith(ESCAPE_SEQUENCE, at) ? SEQUENCE_END.exec(typed)?.[0].length : undefined;
    const length = end === undefined ? 1 : ESCAPE_SEQUENCE.length + end;
    yield typed.slice(at, at + length);
    at += length;
  }
}

/**
 * Finds the detach keys in the input. Holds back a first part of them until the next key decides.
 */
export class DetachMatcher {
  private readonly keys: readonly DetachKey[];
  private held: string[] = [];
  private pressed = 0;

  constructor({ keys }: DetachKeys) {
    this.keys = keys;
  }

  /** The part of the input that is for the program, and whether `chunk` completes the detach keys. */
  take(chunk: Buffer): { typed: Buffer; isLeaving: boolean } {
    let typed = '';
    const parts = [...partsOf(chunk.toString('latin1'))];
    for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
      const key = this.keys[this.pressed];
      const isPress = key === undefined ? false : isPressOf(part, key);
      const isRelease = isPress === null && this.pressed > 0;
      if (isPress) this.pressed += 1;
      if (isPress && this.pressed === this.keys.length) {
        this.forget();
        return { typed: Buffer.from(typed, 'latin1'), isLeaving: true };
      }
      if (isPress || isRelease) this.held.push(part);
      else if (this.held.length === 0) typed += part;
      else {
        // The first held key does not begin the detach keys; a later one may.
        const [first = '', ...others] = this.held;
        typed += first;
        parts.unshift(...others, part);
        this.forget();
      }
    }
    return { typed: Buffer.from(typed, 'latin1'), isLeaving: false };
  }

  private forget(): void {
    this.held = [];
    this.pressed = 0;
  }
}
