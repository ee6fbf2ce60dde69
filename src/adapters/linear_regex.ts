// Regular expressions of users, matched in time linear in the text whatever the expression: RE2's syntax,
// without lookaround and backreferences. V8 needs exponential time for some, and cannot be stopped. The
// package loads when the first one is compiled, which takes 25 ms.

/** A compiled expression. */
export interface LinearRegex {
  /** Whether the expression matches anywhere in `text`. */
  test(text: string): boolean;
}

/** Why a text is no regular expression, in a few words. */
export class RegexError extends Error {
  override readonly name = 'RegexError';
}

/** The package repeats the whole expression in its messages. */
const MAX_REASON_LENGTH = 120;

/** Compiles `pattern`. Rejects with RegexError when it is not valid. */
export async function linearRegex(pattern: string): Promise<LinearRegex> {
  const { RE2JS, RE2JSException } = await import('re2js');
  try {
    const compiled = RE2JS.compile(pattern);
    return { test: (text) => compiled.test(text) };
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const reason = error.message.replace(/^error parsing regexp: /, '');
    throw new RegexError(reason.slice(0, MAX_REASON_LENGTH));
  }
}

/** Why `pattern` is no regular expression; null: it is one. */
export async function regexFault(pattern: string): Promise<string | null> {
  try {
    await linearRegex(pattern);
    return null;
  } catch (error) {
    if (error instanceof RegexError) return error.message;
    throw error;
  }
}
