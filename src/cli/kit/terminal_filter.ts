// What an agent's output may do to the user's own terminal: docs/reference.md "Attach on the command line".
// The filter drops everything that is not in these tables.

/** The private modes that output may set, by number, with the state to restore at the end: `h` is on. */
const PRIVATE_MODES: ReadonlyMap<number, 'h' | 'l'> = new Map([
  ...[1, 5, 6, 9, 45, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031].map(
    (mode) => [mode, 'l'] as const,
  ),
  [7, 'h'],
  [25, 'h'],
]);
/** Insert mode, and newline with carriage return. */
const ANSI_MODES: ReadonlyMap<number, 'h' | 'l'> = new Map([
  [4, 'l'],
  [20, 'l'],
]);
/** The whole session runs on the alternate screen, so an agent that switches to it only clears it. */
const SCREEN_MODES: ReadonlySet<number> = new Set([47, 1047, 1049]);
const SCREEN_CHANGES = { h: '\x1b7\x1b[2J\x1b[H', l: '\x1b[2J\x1b[H\x1b8' } as const;

/** Allowed final bytes of CSI, by prefix and intermediate bytes. `h`, `l` and `J` get further checks. */
const CSI_FINALS: Readonly<Record<string, string>> = {
  '': '@ABCDEFGHIJKLMPSTXZ`abcdefghlmnrsu',
  '?': 'hlJKWmnu',
  '>': 'cmqu',
  '<': 'u',
  '=': 'cu',
  ' ': 'q@A',
  '!': 'p',
  '"': 'q',
  "'": '}~',
  '?$': 'p',
  $: 'p',
};
/** Allowed final bytes of escape sequences, by intermediate bytes. */
const ESCAPE_FINALS: Readonly<Record<string, string>> = { '': '78DEHM=>', '#': '8' };
/** Intermediate bytes that designate a character set; any final byte is allowed. */
const CHARSET = /^[()*+]$/;
/** Allowed OSC strings: titles, links, and queries of colours. */
const OSC = /^(?:[012];|8;|(?:4;\d{1,3}|1[0-2]);\?$)/;
/** Longer strings and sequences are dropped. */
const MAX_STRING_CHARS = 4_096;
const MAX_SEQUENCE_CHARS = 256;

const modeChanges = (prefix: string, modes: ReadonlyMap<number, 'h' | 'l'>): string =>
  [...modes].map(([mode, state]) => `\x1b[${prefix}${mode}${state}`).join('');

/** Resets modes, character sets, colours, keys, links and the scroll region to their initial states. */
const RESET_MODES = [
  modeChanges('?', PRIVATE_MODES),
  modeChanges('', ANSI_MODES),
  '\x1b>\x1b[r\x1b[0 q\x1b[0"q\x1b[0m\x1b(B\x1b)B\x0f\x1b]8;;\x1b\\',
  // Keyboard protocols: kitty's, on this screen only, and xterm's.
  '\x1b[<99u\x1b[=0u\x1b[>4m',
].join('');
/** Replaces a full reset, which would clear the user's scrollback too. */
const SOFT_RESET = `${RESET_MODES}\x1b[H\x1b[2J`;

const TAB_WIDTH = 8;
/** A tab stop at every eighth column of a terminal of `columns` columns. */
const resetTabs = (columns: number): string =>
  `\r\x1b[3g${`\x1b[${TAB_WIDTH}C\x1bH`.repeat(Math.max(0, Math.ceil(columns / TAB_WIDTH) - 1))}\r`;

/** Switches to the alternate screen, saves the window title, and sets `title`. */
export const enterScreen = (title: string): string => `\x1b[?1049h\x1b[22;0t\x1b]0;${title}\x07`;

/** Undoes every change that the filter allows, and returns to the user's screen. */
export const leaveScreen = (columns: number): string =>
  `${RESET_MODES}${resetTabs(columns)}\x1b[23;0t\x1b[?1049l`;

function filterModes(prefix: string, parameters: string, final: 'h' | 'l'): string {
  const modes = prefix === '?' ? PRIVATE_MODES : ANSI_MODES;
  return parameters
    .split(';')
    .map(Number)
    .map((mode) => {
      if (prefix === '?' && SCREEN_MODES.has(mode)) return SCREEN_CHANGES[final];
      return modes.has(mode) ? `\x1b[${prefix}${mode}${final}` : '';
    })
    .join('');
}

const CSI = /^([<-?]?)([0-;]*)([ -/]*)(.)$/s;

/** Filters a complete CSI, given without its `ESC [`. */
function filterCsi(body: string): string {
  const [, prefix = '', parameters = '', middle = '', final = ''] = CSI.exec(body) ?? [];
  if (!CSI_FINALS[prefix + middle]?.includes(final)) return '';
  if (middle === '' && (final === 'h' || final === 'l')) return filterModes(prefix, parameters, final);
  // 3 would erase the user's scrollback.
  if (final === 'J' && Number(parameters) > 2) return '';
  return `\x1b[${body}`;
}

function filterEscape(body: string): string {
  const [middle, final] = [body.slice(0, -1), body.slice(-1)];
  if (body === 'c') return SOFT_RESET;
  return CHARSET.test(middle) || ESCAPE_FINALS[middle]?.includes(final) ? `\x1b${body}` : '';
}

/** `string`: within an OSC, DCS, SOS, PM or APC. `stringEscape`: after an escape that may end it. */
type FilterState = 'text' | 'escape' | 'csi' | 'string' | 'stringEscape';

/** The characters that end plain text: ESC, and those of `isUnsafeControl`. */
const SPECIAL = /[\x05\x1b\x7f-\x9f]/g;

/** Filters output in chunks; a sequence may span several chunks. */
export class TerminalFilter {
  private readonly decoder = new TextDecoder();
  private state: FilterState = 'text';
  /** The sequence so far, without its escape; for a string, the introducer and the content. */
  private held = '';

  /** The part of `bytes`, and of earlier bytes that were held back, that may reach the user's terminal. */
  filter(bytes: Uint8Array): string {
    const text = this.decoder.decode(bytes, { stream: true });
    let passed = '';
    for (let at = 0; at < text.length; at += 1) {
      if (this.state === 'text') {
        // Most output is plain text, which passes in one piece.
        SPECIAL.lastIndex = at;
        const next = SPECIAL.exec(text)?.index ?? text.length;
        passed += text.slice(at, next);
        at = next;
      }
      passed += this.take(text.charAt(at));
    }
    return passed;
  }

  private take(character: string): string {
    if (this.state === 'string' || this.state === 'stringEscape') return this.takeOfString(character);
    if (character === '\x1b') return this.begin('escape', '');
    if (this.state === 'text') return isUnsafeControl(character) ? '' : character;
    // CAN and SUB end a sequence; a terminal obeys other controls in the middle of one.
    if (character < ' ') {
      if (character === '\x18' || character === '\x1a') this.state = 'text';
      return isUnsafeControl(character) ? '' : character;
    }
    return this.state === 'escape' ? this.takeOfEscape(character) : this.takeOfCsi(character);
  }

  private begin(state: FilterState, held: string): string {
    this.state = state;
    this.held = held;
    return '';
  }

  private end(passed: string): string {
    this.begin('text', '');
    return passed;
  }

  private takeOfEscape(character: string): string {
    if (this.held === '' && character === '[') return this.begin('csi', '');
    if (this.held === '' && ']P_^X'.includes(character)) return this.begin('string', character);
    this.held += character;
    const isIntermediate = character <= '/' && this.held.length < MAX_SEQUENCE_CHARS;
    return isIntermediate ? '' : this.end(filterEscape(this.held));
  }

  private takeOfCsi(character: string): string {
    this.held += character;
    if (character < '@' && this.held.length < MAX_SEQUENCE_CHARS) return '';
    return this.end(filterCsi(this.held));
  }

  private takeOfString(character: string): string {
    const isOsc = this.held.startsWith(']');
    const isEnd = this.state === 'stringEscape' ? character === '\\' : character === '\x07' && isOsc;
    if (isEnd) {
      const content = this.held.slice(1);
      const isKept = isOsc && content.length < MAX_STRING_CHARS && OSC.test(content);
      return this.end(isKept ? `\x1b]${content}\x1b\\` : '');
    }
    if (this.state === 'stringEscape') {
      this.begin('escape', '');
      return this.take(character);
    }
    if (character === '\x1b') this.state = 'stringEscape';
    else if (character === '\x18' || character === '\x1a') return this.end('');
    else if (this.held.length <= MAX_STRING_CHARS && !isUnsafeControl(character)) this.held += character;
    return '';
  }
}

/** ENQ makes a terminal send an answer; C1 controls are escape sequences of one character. */
const isUnsafeControl = (character: string): boolean =>
  character === '\x05' || (character >= '\x7f' && character <= '\x9f');
