// What a glob must be, for those who take one from a user.
import { WATCH } from '../settings/limits.ts';

const CLOSING = new Map([
  ['[', ']'],
  ['{', '}'],
  ['(', ')'],
]);

/** The bracket of `glob` that has no partner; null: each has one. A `\` takes the meaning of what follows. */
function loneBracket(glob: string): string | null {
  const open: string[] = [];
  for (const [symbol] of glob.matchAll(/\\.|[[\](){}]/gs)) {
    if (symbol.startsWith('\\')) continue;
    // Within brackets, everything but their end stands for itself.
    if (open.at(-1) === '[' && symbol !== ']') continue;
    if (CLOSING.has(symbol)) open.push(symbol);
    else if (open.at(-1) !== undefined && CLOSING.get(open.at(-1) ?? '') === symbol) open.pop();
    else return symbol;
  }
  return open.at(-1) ?? null;
}

/** Why `glob` is none, after its name; null: it is one. */
export function globFault(glob: string): string | null {
  if (glob === '') return 'must not be empty: it is a glob such as src/**';
  if (glob.length > WATCH.maxGlobLength) return `must be a glob of at most ${WATCH.maxGlobLength} characters`;
  if (/[\0\r\n]/.test(glob)) return 'must be a glob in one line';
  if (glob.startsWith('!')) return 'must not begin with !: what is not to be watched belongs into ignore';
  const lone = loneBracket(glob);
  return lone === null ? null : `must be a glob: its ${lone} has no partner`;
}
