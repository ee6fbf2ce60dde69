// The text of a prompt, and the bytes that type it: docs/reference.md "Prompt". Text that cannot arrive
// exactly is refused, because a terminal would take it for a key or drop it.
import type { PromptTyping } from './coding_agents.ts';

const PASTE_BEGIN = '\x1b[200~';
const PASTE_END = '\x1b[201~';
const ENTER = '\r';
/** The longest line that a terminal buffers for a program that reads whole lines (N_TTY_BUF_SIZE). */
const MAX_TYPED_LINE_BYTES = 4_095;

/** Text that cannot be typed: control characters except tab and newline, and lone surrogates. */
const UNTYPABLE = /[^\P{Cc}\t\n]|\p{Cs}/u;

const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Why `text` cannot be typed into any program; null if it can. */
export function faultOfPrompt(text: string): string | null {
  const found = UNTYPABLE.exec(text);
  if (!found) return null;
  const where = `there is ${nameOf(found[0])} at ${found.index}`;
  return found[0] === '\r'
    ? `must have newlines in place of carriage returns: ${where}`
    : `must have no control characters and no halves of characters: ${where}`;
}

/**
 * `text` with a space after an end that would change what the submitting key does: a last word that opens a
 * list of completions, or a backslash that continues the line. A command alone gets no space for the list,
 * because its program may run it from one.
 */
export function withPlainEnd(
  text: string,
  { completes = '', continuesLines }: Pick<PromptTyping, 'completes' | 'continuesLines'>,
): string {
  const word = text.split(/\s/).at(-1) ?? '';
  const isCommand = word.startsWith('/') && word === text;
  const opensList = !isCommand && [...completes].some((opener) => word.includes(opener));
  return opensList || (continuesLines && text.endsWith('\\')) ? `${text} ` : text;
}

/** How a program currently takes text. */
export interface TextEntry {
  /** Whether it has bracketed paste on (DEC mode 2004). */
  isPasted: boolean;
  /** The bytes for a new line in typed text; null: there are none, because Enter would submit the prompt. */
  newline: string | null;
}

/** The bytes that type `text`, or why they would not arrive exactly. */
export function typedPrompt(
  text: string,
  { isPasted, newline }: TextEntry,
): { bytes: Uint8Array } | { fault: string } {
  if (isPasted) return { bytes: Buffer.from(PASTE_BEGIN + text + PASTE_END) };
  const withoutPaste = 'the program has bracketed paste off at this moment, so';
  if (text.includes('\t')) return { fault: `${withoutPaste} a tab would be a key` };
  const lines = text.split('\n');
  if (lines.length > 1 && newline === null)
    return { fault: `${withoutPaste} the first line would be submitted alone` };
  if (lines.some((line) => Buffer.byteLength(line) > MAX_TYPED_LINE_BYTES))
    return { fault: `${withoutPaste} a line must not be longer than ${MAX_TYPED_LINE_BYTES} bytes` };
  return { bytes: Buffer.from(lines.join(newline ?? ENTER)) };
}

/**
 * The lines of `after` that are not in `before`, in order. Duplicates count: a line that was there once and
 * is there twice has appeared once.
 */
export function appearedLines(before: readonly string[], after: readonly string[]): string[] {
  const known = new Map<string, number>();
  for (const line of before) known.set(line, (known.get(line) ?? 0) + 1);
  const appeared = after.filter((line) => {
    const left = known.get(line) ?? 0;
    if (left > 0) known.set(line, left - 1);
    return left === 0;
  });
  while (appeared.at(-1) === '') appeared.pop();
  while (appeared[0] === '') appeared.shift();
  return appeared;
}

/**
 * Blanks and the frames drawn around text. Where a program breaks a line does not matter. All is escaped,
 * because esbuild copies regular expressions as they are, and the daemon reads its bundles as latin1.
 */
const LAYOUT = /[\s\u2500-\u257f\u258c\u2590|]+/g;
/** What programs show instead of a long text. */
const PLACEHOLDER = /\bpasted\b/i;
const TAIL_CHARACTERS = 12;

const isBlank = (line: string): boolean => line.replace(LAYOUT, '') === '';

/** Whether `after` only adds blank lines to `before`. */
export function isBlankAdded(before: readonly string[], after: readonly string[]): boolean {
  const heightOf = (lines: readonly string[]): number => lines.findLastIndex((line) => !isBlank(line));
  return heightOf(after) > heightOf(before) && !isRedrawn(before, after);
}

const filled = (lines: readonly string[]): string[] => lines.filter((line) => !isBlank(line));

/** Whether `after` differs from `before`, ignoring blank lines. */
const isRedrawn = (before: readonly string[], after: readonly string[]): boolean =>
  filled(before).join('\n') !== filled(after).join('\n');

const tailOf = (text: string): string => [...text.replace(LAYOUT, '')].slice(-TAIL_CHARACTERS).join('');

/** Whether `lines` show the end of `text`, or a placeholder for it. */
const isShown = (text: string, lines: readonly string[]): boolean =>
  lines.join('').replace(LAYOUT, '').includes(tailOf(text)) || lines.some((line) => PLACEHOLDER.test(line));

/**
 * Whether `after` ends like `typed` does from the end of `text` on, ignoring blank lines. Lines that were
 * there `before` the text do not show it: a footer may contain a short one.
 */
export function isStillTyped(
  text: string,
  before: readonly string[],
  typed: readonly string[],
  after: readonly string[],
): boolean {
  const rows = filled(typed);
  // A short text may be found in a footer as well, which the program redraws while a text is typed.
  const first = rows.findIndex((row) => isTextShown(text, before, [row]));
  let count = first === -1 ? 1 : rows.length - first;
  while (count <= rows.length && !isTextShown(text, before, rows.slice(-count))) count += 1;
  return count <= rows.length && !isRedrawn(rows.slice(-count), filled(after).slice(-count));
}

/** What programs draw beside a text in their input, of which they may show a part. */
const INPUT_MARKS = /[\u203a\u2191\u2193]/g;

const bareText = (text: string): string => text.replace(LAYOUT, '').replace(INPUT_MARKS, '');

/**
 * Whether `typed` ends with a part of `text`, and `after` with another part or the same. An input that is too
 * low for the text shows the rows around its cursor, which may be elsewhere once the text is refused. Half as
 * many rows as before are enough, because the parts may be of different heights.
 */
export function isPartTyped(text: string, typed: readonly string[], after: readonly string[]): boolean {
  const whole = bareText(text);
  let part = '';
  let count = 0;
  for (const row of filled(typed).reverse()) {
    const longer = bareText(row) + part;
    if (longer === part || !whole.endsWith(longer)) break;
    part = longer;
    count += 1;
  }
  if (count === 0 || part === whole) return false;
  const left = filled(after)
    .slice(-Math.ceil(count / 2))
    .map(bareText);
  // An empty input shows no more than its mark.
  return left.length > 0 && !left.includes('') && whole.includes(left.join(''));
}

/** Whether the lines that are new in `after` show the end of `text`, or a placeholder for it. */
export const isTextShown = (text: string, before: readonly string[], after: readonly string[]): boolean =>
  isShown(text, appearedLines(before, after));
