// Makes text from outside safe to print: characters that move the cursor, colour the screen or change the
// direction of writing are replaced by visible ones.

/** C0 without tab and newline, DEL, C1, direction marks and embeddings, line and paragraph separators. */
const UNSAFE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function visibleSubstitute(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

/** `text` with every unsafe character replaced; tabs and newlines stay. */
export const sanitize = (text: string): string => text.replace(UNSAFE, visibleSubstitute);

/** The same for one line: newlines are replaced too. */
export const sanitizeLine = (text: string): string => sanitize(text).replaceAll('\n', '\u240a');
