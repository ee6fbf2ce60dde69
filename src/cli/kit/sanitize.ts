// Text that comes from outside is shown, never obeyed: what could move the cursor, colour the screen or turn the direction of
// writing is replaced by something visible.

/** C0 but tab and newline, DEL, C1, marks and embeddings of direction, line and paragraph separators. */
const UNSAFE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function visibleSubstitute(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '\u2421' : '\ufffd';
}

/** `text` with every such character replaced; tabs and newlines stay. */
export const sanitize = (text: string): string => text.replace(UNSAFE, visibleSubstitute);

/** The same on one line: a newline becomes visible as well. */
export const sanitizeLine = (text: string): string => sanitize(text).replaceAll('\n', '\u240a');
