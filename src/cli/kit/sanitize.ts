// Makes text from outside safe to print: characters that move the cursor, colour the screen or change the
// direction of writing are replaced by visible ones.

import { escapeUnsafe, UNSAFE_CHARACTERS } from '../../protocol/unsafe_characters.ts';

function visibleSubstitute(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

/** `text` with every unsafe character replaced; tabs and newlines stay. */
export const sanitize = (text: string): string => text.replace(UNSAFE_CHARACTERS, visibleSubstitute);

/** The same for one line: newlines are replaced too. */
export const sanitizeLine = (text: string): string => sanitize(text).replaceAll('\n', '\u240a');

const COLOUR_SEQUENCE = /(\x1b\[[0-9;:]{0,64}m)/;

/** The same for a line that may have colours: those sequences stay. */
export const sanitizeColoured = (text: string): string =>
  text
    .split(COLOUR_SEQUENCE)
    .map((part, at) => (at % 2 === 1 ? part : sanitizeLine(part)))
    .join('');

/** The same for text of many lines. */
export const sanitizeColouredLines = (text: string): string =>
  text.split('\n').map(sanitizeColoured).join('\n');

/** `value` as JSON that is safe to print: what JSON leaves as it is, but a terminal obeys, is escaped. */
export const safeJson = (value: unknown, indent = 0): string =>
  escapeUnsafe(JSON.stringify(value, null, indent));
