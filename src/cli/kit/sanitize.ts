// Makes untrusted text safe to print: replaces characters that move the cursor, colour the screen or change
// the direction of writing with visible ones.

import { escapeUnsafe, UNSAFE_CHARACTERS } from '../../protocol/unsafe_characters.ts';

function visibleSubstitute(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

/** `text` with every unsafe character replaced; tabs and newlines stay. */
export const sanitize = (text: string): string => text.replace(UNSAFE_CHARACTERS, visibleSubstitute);

/** Like `sanitize`, for one line: replaces newlines too. */
export const sanitizeLine = (text: string): string => sanitize(text).replaceAll('\n', '\u240a');

const COLOUR_SEQUENCE = /(\x1b\[[0-9;:]{0,64}m)/;

/** Like `sanitizeLine`, but keeps colour sequences. */
export const sanitizeColoured = (text: string): string =>
  text
    .split(COLOUR_SEQUENCE)
    .map((part, at) => (at % 2 === 1 ? part : sanitizeLine(part)))
    .join('');

/** Like `sanitizeColoured`, for text of many lines. */
export const sanitizeColouredLines = (text: string): string =>
  text.split('\n').map(sanitizeColoured).join('\n');

/** `value` as JSON that is safe to print: escapes the control characters that JSON leaves unescaped. */
export const safeJson = (value: unknown, indent = 0): string =>
  escapeUnsafe(JSON.stringify(value, null, indent));
