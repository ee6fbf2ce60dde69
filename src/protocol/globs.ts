// Checks of globs that users write.
import { WATCH } from '../settings/limits.ts';

const CLOSING = new Map([
  ['[', ']'],
  ['{', '}'],
]);

/** What is wrong with the brackets of `glob`; null if nothing. A `\` escapes the character after it. */
function bracketFault(glob: string): string | null {
  const open: string[] = [];
  const lone = (symbol: string): string => `must be a glob: its ${symbol} has no partner`;
  for (const [symbol] of glob.matchAll(/\\.|[[\](){}]/gs)) {
    if (symbol.startsWith('\\')) continue;
    // Within brackets, everything but the closing one is literal.
    if (open.at(-1) === '[' && symbol !== ']') continue;
    if (symbol === '(' || symbol === ')')
      return `must be a glob without groups: \\${symbol} stands for the character`;
    if (CLOSING.has(symbol)) open.push(symbol);
    else if (open.at(-1) !== undefined && CLOSING.get(open.at(-1) ?? '') === symbol) open.pop();
    else return lone(symbol);
  }
  const [first] = open;
  return first === undefined ? null : lone(first);
}

/**
 * Whether matching `glob` could take long. A matcher tries every position for every star: each further star
 * in a name multiplies its work by the length of the name, and each further `**` by the depth of the path.
 */
function isCostly(glob: string): boolean {
  const segments = glob.split('/');
  const stars = segments.map((segment) => (segment === '**' ? 0 : segment.split('*').length - 1));
  return (
    Math.max(...stars) > WATCH.maxStars || segments.filter((one) => one === '**').length > WATCH.maxStars
  );
}

/** Whether its `**` could keep a matcher busy, in a glob or in a line of a .gitignore. */
export const hasManyGlobstars = (text: string): boolean => text.split('**').length - 1 > WATCH.maxStars;

/** The number of combinations of the alternatives in braces: 4 of `{a,b}{c,d}`. Brackets have partners. */
function alternativesOf(glob: string): number {
  const open: number[] = [];
  let combinations = 1;
  for (const [symbol] of glob.matchAll(/\\.|\[[^\]]*\]|[{},]/gs)) {
    const innermost = open.at(-1);
    if (symbol === '{') open.push(1);
    else if (symbol === ',' && innermost !== undefined) open[open.length - 1] = innermost + 1;
    else if (symbol === '}') combinations *= open.pop() ?? 1;
  }
  return combinations;
}

/** Why `glob` is invalid, to follow its name in a message; null: it is valid. */
export function globFault(glob: string): string | null {
  if (glob === '') return 'must not be empty: it is a glob such as src/**';
  if (glob.length > WATCH.maxGlobLength) return `must be a glob of at most ${WATCH.maxGlobLength} characters`;
  if (/[\0\r\n]/.test(glob)) return 'must be a glob in one line';
  if (glob.startsWith('!')) return 'must not begin with !: only the field ignore of watch leaves files out';
  if (isCostly(glob))
    return `must be a glob with at most ${WATCH.maxStars} * in a name, and at most ${WATCH.maxStars} **`;
  const fault = bracketFault(glob);
  if (fault !== null || alternativesOf(glob) <= WATCH.maxAlternatives) return fault;
  return `must be a glob with at most ${WATCH.maxAlternatives} combinations of what is in its braces`;
}
