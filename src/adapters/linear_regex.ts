// Regular expressions of users, matched in time linear in the text whatever the expression: RE2's syntax,
// without lookaround and backreferences. V8 needs exponential time for some, and cannot be stopped. The
// package loads when the first one is compiled, which takes 25 ms.

const MAX_INSTRUCTIONS = 2_000;
/** Instructions times characters that take some 50 ms at worst: docs/reference.md "Checks". */
const MAX_STEPS = 250_000;

/** A compiled expression. */
export interface LinearRegex {
  /** Whether the expression matches anywhere in `text`. */
  test(text: string): boolean;
  /** Characters of a text that are tested in some 50 ms at worst, for threads that others need. */
  readonly reach: number;
}

/** Why a text is no regular expression, in a few words. */
export class RegexError extends Error {
  override readonly name = 'RegexError';
}

/** The package repeats the whole expression in its messages. */
const MAX_REASON_LENGTH = 120;

/** The parts of an expression: an escape, a class, a group's ends, a repeat's numbers, any character. */
const PARTS = /\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]])*\]|\((?:\?[^:)]*:)?|\)|\{(\d+)(?:,(\d*))?\}|./gsu;

/** About as many instructions as the program of `pattern` has: each part as often as it is repeated. */
function programSizeOf(pattern: string): number {
  const outer: number[] = [];
  let size = 0;
  let last = 0;
  for (const [part, least, most] of pattern.matchAll(PARTS)) {
    if (least !== undefined) {
      const times = Math.max(1, Number(most || least));
      size += last * (times - 1);
      last *= times;
    } else if (part.startsWith('(')) {
      outer.push(size);
      size = 0;
    } else if (part === ')') {
      last = size;
      size += outer.pop() ?? 0;
    } else {
      last = 1;
      size += 1;
    }
  }
  return outer.reduce((sum, one) => sum + one, size);
}

/** Compiles `pattern`. Rejects with RegexError when it is not valid, or too large. */
export async function linearRegex(pattern: string): Promise<LinearRegex> {
  const { RE2JS, RE2JSException } = await import('re2js');
  // Compiling a thousand repeats of a thousand characters takes a second and 100 MB.
  const size = programSizeOf(pattern);
  if (size > MAX_INSTRUCTIONS)
    throw new RegexError(`with its repeats it has ${size} parts, and more than ${MAX_INSTRUCTIONS}`);
  try {
    const compiled = RE2JS.compile(pattern);
    const reach = Math.ceil(MAX_STEPS / compiled.programSize());
    return { test: (text) => compiled.test(text), reach };
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
