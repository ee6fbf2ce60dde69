// Decodes keys and pasted text from the bytes of a terminal.

/**
 * One input. `key`: the character itself, or a name such as `Up`, `Enter` or `C-c`. `paste`: text that was
 * pasted, or that arrives faster than a person types; `isCut`: its end was dropped.
 */
export type TypedInput = { kind: 'key'; key: string } | { kind: 'paste'; text: string; isCut: boolean };

const NAMED_SEQUENCES: Readonly<Record<string, string>> = {
  '[A': 'Up',
  '[B': 'Down',
  '[C': 'Right',
  '[D': 'Left',
  OA: 'Up',
  OB: 'Down',
  OC: 'Right',
  OD: 'Left',
  '[H': 'Home',
  '[F': 'End',
  OH: 'Home',
  OF: 'End',
  '[1~': 'Home',
  '[7~': 'Home',
  '[4~': 'End',
  '[8~': 'End',
  '[3~': 'Delete',
  '[5~': 'PageUp',
  '[6~': 'PageDown',
};
const NAMED_CONTROLS: Readonly<Record<string, string>> = {
  '\r': 'Enter',
  '\n': 'Enter',
  '\t': 'Tab',
  '\x7f': 'Backspace',
  '\b': 'Backspace',
};

const ESCAPE = '\x1b';
const PASTE_BEGIN = '\x1b[200~';
const PASTE_END = '\x1b[201~';
/**
 * A sequence: of a key, or a string such as the late answer to a program that was attached before. An escape
 * before any other character is the Alt key.
 */
const SEQUENCE =
  /\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|O[ -~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[^[O\]PX^_\x1b])/suy;
/** The beginning of a sequence. */
const UNFINISHED = /^\x1b(?:\[[0-?]{0,64}[ -/]{0,8}|O|[\]PX^_][^\x07\x1b]{0,4096}\x1b?)?$/su;
/** More characters than this between two reads are a paste, unless all are the same, as from a held key. */
const MAX_TYPED_AT_ONCE = 64;
/** The longest paste, in UTF-16 units. */
export const MAX_PASTE = 256 * 1024;

const isTooFast = (text: string): boolean =>
  text.length > MAX_TYPED_AT_ONCE && !text.includes(ESCAPE) && new Set(text).size > 1;

function keyOf(character: string): string {
  const named = NAMED_CONTROLS[character];
  if (named !== undefined) return named;
  const code = character.charCodeAt(0);
  return code < 0x20 ? `C-${String.fromCharCode(code + 0x60)}` : character;
}

/** Decodes input in chunks; a sequence or a paste may span several chunks. */
export class KeyReader {
  private readonly decoder = new TextDecoder();
  /** Input that is not decoded yet. */
  private rest = '';
  /** The text of the current paste; null: none. */
  private paste: string | null = null;
  private isCut = false;

  /** Whether an incomplete sequence waits for more input. If none follows, call `flush`. */
  get isWaiting(): boolean {
    return this.rest !== '' && this.paste === null;
  }

  /** The inputs that `bytes` complete. */
  read(bytes: Uint8Array): TypedInput[] {
    const text = this.decoder.decode(bytes, { stream: true });
    if (this.paste === null && this.rest === '' && isTooFast(text)) {
      const isLong = text.length > MAX_PASTE;
      return [{ kind: 'paste', text: text.slice(0, MAX_PASTE), isCut: isLong }];
    }
    this.rest += text;
    const typed: TypedInput[] = [];
    while (this.rest !== '') {
      const next = this.paste === null ? this.takeKey() : this.takePaste();
      if (next === null) break;
      if (next !== 'nothing') typed.push(next);
    }
    return typed;
  }

  /** Returns the Escape key if an escape waits; drops the beginning of any other sequence. */
  flush(): TypedInput[] {
    const { rest } = this;
    this.rest = '';
    return rest === ESCAPE ? [{ kind: 'key', key: 'Escape' }] : [];
  }

  /** The next input; null if it needs more bytes. */
  private takeKey(): TypedInput | 'nothing' | null {
    if (this.rest.startsWith(PASTE_BEGIN)) {
      this.rest = this.rest.slice(PASTE_BEGIN.length);
      this.paste = '';
      this.isCut = false;
      return 'nothing';
    }
    if (!this.rest.startsWith(ESCAPE)) {
      const character = String.fromCodePoint(this.rest.codePointAt(0) ?? 0);
      this.rest = this.rest.slice(character.length);
      return { kind: 'key', key: keyOf(character) };
    }
    SEQUENCE.lastIndex = 0;
    const found = SEQUENCE.exec(this.rest)?.[0];
    if (found === undefined) {
      if (UNFINISHED.test(this.rest)) return null;
      this.rest = this.rest.slice(1);
      return { kind: 'key', key: 'Escape' };
    }
    this.rest = this.rest.slice(found.length);
    const key = NAMED_SEQUENCES[found.slice(1)];
    return key === undefined ? 'nothing' : { kind: 'key', key };
  }

  private takePaste(): TypedInput | null {
    const end = this.rest.indexOf(PASTE_END);
    // The end marker itself may span two reads.
    const held = end < 0 ? Math.min(this.rest.length, PASTE_END.length - 1) : 0;
    const come = this.rest.slice(0, end < 0 ? this.rest.length - held : end);
    const whole = (this.paste ?? '') + come;
    this.isCut ||= whole.length > MAX_PASTE;
    this.paste = whole.slice(0, MAX_PASTE);
    this.rest = end < 0 ? this.rest.slice(this.rest.length - held) : this.rest.slice(end + PASTE_END.length);
    if (end < 0) return null;
    const text = this.paste;
    this.paste = null;
    return { kind: 'paste', text, isCut: this.isCut };
  }
}
