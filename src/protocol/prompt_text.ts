// The text of a prompt, and the bytes that type it: docs/reference.md "Prompt". What cannot arrive exactly is
// refused, because a terminal would take it for a key, or drop it.

const PASTE_BEGIN = '\x1b[200~';
const PASTE_END = '\x1b[201~';
const ENTER = '\r';
/** The longest line that a terminal keeps for a program that reads whole lines (N_TTY_BUF_SIZE). */
const MAX_TYPED_LINE_BYTES = 4_095;

/** What cannot be typed as text: control characters but tab and newline, and halves of surrogate pairs. */
const UNTYPABLE = /[^\P{Cc}\t\n]|\p{Cs}/u;

const nameOf = (character: string): string =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Why no program could be typed `text`; null: one can. */
export function faultOfPrompt(text: string): string | null {
  const found = UNTYPABLE.exec(text);
  if (!found) return null;
  const where = `there is ${nameOf(found[0])} at ${found.index}`;
  return found[0] === '\r'
    ? `must have newlines in place of carriage returns: ${where}`
    : `must have no control characters and no halves of characters: ${where}`;
}

/** How a program takes text at this moment. */
export interface TextEntry {
  /** It has bracketed paste on (DEC mode 2004). */
  isPasted: boolean;
  /** The bytes that begin a new line where text is typed; null: there are none, as Enter would submit it. */
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
 * The lines of `after` that `before` does not have, in their order. A line that is there twice has appeared
 * once when it was there once before.
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

/** Blanks, and what frames draw around texts: where a program breaks a line is its own matter. */
const LAYOUT = /[\s\u2500-\u257f▌▐|]+/g;
/** What programs show in place of a long text. */
const PLACEHOLDER = /\bpasted\b/i;
const TAIL_CHARACTERS = 12;

const isBlank = (line: string): boolean => line.replace(LAYOUT, '') === '';

/** Whether `after` is `before` with nothing but blank lines more. */
export function isBlankAdded(before: readonly string[], after: readonly string[]): boolean {
  const heightOf = (lines: readonly string[]): number => lines.findLastIndex((line) => !isBlank(line));
  return heightOf(after) > heightOf(before) && !isRedrawn(before, after);
}

const filled = (lines: readonly string[]): string[] => lines.filter((line) => !isBlank(line));

/** Whether `after` shows something else than `before`, blank lines not counted. */
const isRedrawn = (before: readonly string[], after: readonly string[]): boolean =>
  filled(before).join('\n') !== filled(after).join('\n');

const tailOf = (text: string): string => [...text.replace(LAYOUT, '')].slice(-TAIL_CHARACTERS).join('');

/** Whether `lines` show the end of `text`, or a word for it. */
const isShown = (text: string, lines: readonly string[]): boolean =>
  lines.join('').replace(LAYOUT, '').includes(tailOf(text)) || lines.some((line) => PLACEHOLDER.test(line));

/** Whether `after` ends as `typed` does from the end of `text` on, blank lines not counted. */
export function isStillTyped(text: string, typed: readonly string[], after: readonly string[]): boolean {
  const rows = filled(typed);
  let count = 1;
  while (count <= rows.length && !isShown(text, rows.slice(-count))) count += 1;
  return count <= rows.length && !isRedrawn(rows.slice(-count), filled(after).slice(-count));
}

/** Whether `after` shows the end of `text`, or a word for it, in lines that `before` does not have. */
export const isTextShown = (text: string, before: readonly string[], after: readonly string[]): boolean =>
  isShown(text, appearedLines(before, after));
