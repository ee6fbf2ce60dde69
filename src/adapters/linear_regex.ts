// User-supplied regular expressions, matched in time linear in the text: RE2's syntax, without lookaround and
// backreferences. V8 needs exponential time for some expressions, and cannot be stopped. The package loads
// with the first expression, which takes 25 ms.

const MAX_INSTRUCTIONS = 2_000;
/** Instructions times characters that take about 50 ms at worst: docs/reference.md "Checks". */
const MAX_STEPS = 250_000;

/** A compiled expression. */
export interface LinearRegex {
  /** Whether the expression matches anywhere in `text`. */
  test(text: string): boolean;
  /** How many characters can be tested in about 50 ms at worst, for threads that must stay responsive. */
  readonly reach: number;
}

/** Why a text is not a valid regular expression, in a few words. */
export class RegexError extends Error {
  override readonly name = 'RegexError';
}

/** The package's messages repeat the whole expression. */
const MAX_REASON_LENGTH = 120;

/** The parts of an expression: an escape, a class, a group's ends, a repeat's numbers, any character. */
const PARTS = /\\[pP]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]])*\]|\((?:\?[^:)]*:)?|\)|\{(\d+)(?:,(\d*))?\}|./gsu;

/** Estimates the instructions in the program of `pattern`: each part counts as often as it is repeated. */
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
  // Compiling a thousand repeats of a thousand characters would take a second and 100 MB.
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

/** Why `pattern` is not a valid regular expression; null: it is valid. */
export async function regexFault(pattern: string): Promise<string | null> {
  try {
    await linearRegex(pattern);
    return null;
  } catch (error) {
    if (error instanceof RegexError) return error.message;
    throw error;
  }
}
