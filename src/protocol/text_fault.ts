// Text that can be stored and passed on: docs/reference.md "Fields of a service".

/** Why `text` cannot be written to a file, an environment or a header; null: it can be. */
export function textFault(text: string): string | null {
  if (text.includes('\0')) return 'must not contain NUL';
  // With the flag u, a pair of surrogates is one character of another kind.
  return /\p{Surrogate}/u.test(text) ? 'must not contain an unpaired surrogate, half a character' : null;
}
