// Finds literal texts, at least one of which every match of a regular expression contains, ignoring case.
// Bytes are searched for them a hundred times as fast as for the expression.

/** Shorter literals occur in too many lines to save any work. */
const MIN_LENGTH = 3;
const GROUP_OR_CLASS = /[([]/;
/** Escaped punctuation stands for itself; escaped letters and digits do not. */
const PUNCTUATION = /^[^A-Za-z0-9]$/;
const REPEAT = /[?*{]/;
const ASCII = /^[\x20-\x7e]$/;

/** Where the group or class that opens at `at` closes; the end of the pattern when it does not. */
function closingOf(pattern: string, at: number): number {
  if (pattern[at] === '[') {
    // A bracket right after the opening one, or after its circumflex, is a member.
    let end = pattern[at + 1] === '^' ? at + 3 : at + 2;
    while (end < pattern.length && pattern[end] !== ']') end += pattern[end] === '\\' ? 2 : 1;
    return end;
  }
  let end = at + 1;
  while (end < pattern.length && pattern[end] !== ')') {
    if (pattern[end] === '\\') end += 2;
    else if (pattern[end] === '(' || pattern[end] === '[') end = closingOf(pattern, end) + 1;
    else end += 1;
  }
  return end;
}

/** The longest literal of each branch of `pattern` at its top level. */
function branchLiterals(pattern: string): string[] {
  const branches: string[] = [];
  let longest = '';
  let run = '';
  const endRun = (): void => {
    if (run.length > longest.length) longest = run;
    run = '';
  };
  const endBranch = (): void => {
    endRun();
    branches.push(longest);
    longest = '';
  };
  for (let at = 0; at < pattern.length; at += 1) {
    const character = pattern[at] ?? '';
    if (character === '|') endBranch();
    else if (GROUP_OR_CLASS.test(character)) {
      endRun();
      at = closingOf(pattern, at);
    } else if (character === '\\') {
      at += 1;
      const escaped = pattern[at] ?? '';
      if (PUNCTUATION.test(escaped) && ASCII.test(escaped)) run += escaped;
      else return [''];
    } else if (REPEAT.test(character)) {
      // The character before it may be absent.
      run = run.slice(0, -1);
      endRun();
      if (character === '{') at = Math.max(at, pattern.indexOf('}', at));
    } else if (/[+.^$)]/.test(character) || !ASCII.test(character)) endRun();
    else run += character;
  }
  endBranch();
  return branches;
}

/** Escaped letters that stand for one character of a class, or for a position. */
const SIMPLE_ESCAPES = /\\[dDwWsSbBAztnrfv]/g;

/**
 * ASCII texts of which every match of `pattern`, an expression in RE2 syntax, contains at least one, ignoring
 * case; null: none is long enough.
 */
export function requiredLiterals(pattern: string): string[] | null {
  // A class within a class would end too early.
  if (pattern.includes('[:')) return null;
  // A full stop ends a literal just as these escapes do.
  const literals = branchLiterals(pattern.replace(/\\\\/g, '.').replace(SIMPLE_ESCAPES, '.'));
  return literals.every((literal) => literal.length >= MIN_LENGTH) ? literals : null;
}
