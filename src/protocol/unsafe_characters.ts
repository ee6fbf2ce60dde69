// Characters that a terminal interprets instead of showing, or that change the writing direction.

/** C0 without tab and newline, DEL, C1, direction marks and embeddings, line and paragraph separators. */
export const UNSAFE_CHARACTERS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** `text` with every unsafe character as `\uXXXX`, which JSON and quoted YAML read as that character. */
export const escapeUnsafe = (text: string): string =>
  text.replace(
    UNSAFE_CHARACTERS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
