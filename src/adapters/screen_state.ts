// Tries the rules of an agent on what its terminal shows. Screens and rules are untrusted, so this runs on
// job threads, like the drawing itself: docs/reference.md "Screen rules".
import type {
  ReadStateTask,
  RuleMatch,
  RuleSet,
  ScreenRule,
  StateReading,
} from '../protocol/screen_rules.ts';
import { AGENT_STATE } from '../settings/agent_limits.ts';
import { type LinearRegex, linearRegex } from './linear_regex.ts';
import { openTerminalScreen } from './terminal_screen.ts';

/** What rules look at. */
export interface ShownTexts {
  lines: readonly string[];
  title: string;
  notification: string;
}

interface CompiledRule {
  rule: ScreenRule;
  matches: LinearRegex[];
}

/** Compiled rules by the id of their set. The oldest goes when there are many. */
const compiledSets = new Map<string, Promise<CompiledRule[]>>();
const MAX_COMPILED_SETS = 32;
/** What frames draw around texts. */
const FRAME = /^[\s│┃║╎▌▐|]+|[\s│┃║╎▌▐|]+$/g;
/** A line within a frame, or of one. */
const FRAMED = /^\s*[\u2500-\u257f▌▐|]/;
/** A line of nothing but a frame. */
const BORDER = /^[\s\u2500-\u257f▀▄▌▐|]+$/;

async function compile(rules: readonly ScreenRule[]): Promise<CompiledRule[]> {
  const compiled: CompiledRule[] = [];
  for (const rule of rules) {
    const matches: LinearRegex[] = [];
    for (const pattern of rule.matches) matches.push(await linearRegex(pattern));
    compiled.push({ rule, matches });
  }
  return compiled;
}

function compiledRules({ id, rules }: RuleSet): Promise<CompiledRule[]> {
  const known = compiledSets.get(id);
  if (known) return known;
  const [oldest] = compiledSets.keys();
  if (compiledSets.size >= MAX_COMPILED_SETS && oldest !== undefined) compiledSets.delete(oldest);
  const compiled = compile(rules);
  compiledSets.set(id, compiled);
  return compiled;
}

/** The last `count` lines that are not blank, and what is between them; null: all. */
function lastLines(lines: readonly string[], count: number | null): readonly string[] {
  if (count === null) return lines;
  let left = count;
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    if (lines[index]?.trim() !== '') left -= 1;
    if (left === 0) return lines.slice(index);
  }
  return lines;
}

function regionOf({ within, last }: ScreenRule, shown: ShownTexts): readonly string[] {
  if (within === 'screen') return lastLines(shown.lines, last);
  const text = shown[within];
  return text === '' ? [] : [text];
}

/** The indexes of the lines that make a rule hold, the last that do; null: it does not. */
function holds({ rule, matches }: CompiledRule, lines: readonly string[]): number[] | null {
  const { absent, any, contains } = rule;
  const lastWith = (text: string) => lines.findLastIndex((line) => line.includes(text));
  const found = contains.map(lastWith);
  if (found.includes(-1)) return null;
  const some = any.map(lastWith).filter((index) => index >= 0);
  if (any.length > 0 && some.length === 0) return null;
  if (absent.some((text) => lastWith(text) >= 0)) return null;
  const matched = matches.map((regex) => lines.findLastIndex((line) => regex.test(line)));
  if (matched.includes(-1)) return null;
  return [...new Set([...found, ...some, ...matched])].sort((one, other) => one - other);
}

/**
 * The question of a screen: from the line `first`, or from the beginning of the frame around it, to the end,
 * without frames and without blank lines around it.
 */
function questionOf(lines: readonly string[], first: number): string[] {
  const texts = lines.map((line) => (BORDER.test(line) ? '' : line.replace(FRAME, '')));
  const isFramed = (index: number): boolean => FRAMED.test(lines[index] ?? '');
  let top = first;
  while (isFramed(top) && isFramed(top - 1)) top -= 1;
  const end = texts.findLastIndex((text) => text !== '') + 1;
  const most = AGENT_STATE.maxQuestionLines;
  // What is asked stands at the end of a frame.
  const from = Math.min(first, Math.max(top, end - most));
  return texts
    .slice(from, Math.min(end, from + most))
    .filter((text, index, all) => text !== '' || (index > 0 && all[index - 1] !== ''));
}

/** What the rules of `set` say about `shown`: the first that holds, of the screen and of what is beside. */
export async function tryRules(
  set: RuleSet,
  shown: ShownTexts,
): Promise<Pick<StateReading, 'screen' | 'beside' | 'question'>> {
  const said: Pick<StateReading, 'screen' | 'beside' | 'question'> = {
    screen: null,
    beside: null,
    question: [],
  };
  // A rule may know no more of a question than its last line: all that see one tell where it begins.
  let begins = shown.lines.length;
  for (const compiled of await compiledRules(set)) {
    const { file, name, state, within } = compiled.rule;
    const isAsked = said.screen?.state === 'blocked' && state === 'blocked';
    if (within === 'screen' ? said.screen && !isAsked : said.beside) continue;
    const region = regionOf(compiled.rule, shown);
    const found = holds(compiled, region);
    if (!found) continue;
    const match: RuleMatch = { name, state, file, lines: found.map((index) => region[index] ?? '') };
    if (within !== 'screen') said.beside = { ...match, within };
    else {
      said.screen ??= match;
      begins = Math.min(begins, shown.lines.length - region.length + (found[0] ?? 0));
    }
  }
  if (said.screen?.state === 'blocked') said.question = questionOf(shown.lines, begins);
  return said;
}

/** Draws a screen and tries the rules on it. The job of that name. */
export async function readState(task: ReadStateTask): Promise<StateReading> {
  const { cols, rows, modes, budgetMs, maxBytes } = task;
  const terminal = await openTerminalScreen(cols, rows);
  const began = performance.now();
  try {
    const until = began + budgetMs;
    await terminal.write(modes);
    await terminal.writeRest(task, () => performance.now() > until);
    const { lines, title: drawn } = terminal.read(false);
    const title = task.title || drawn;
    const snapshot = terminal.snapshot(0);
    const said = await tryRules(task.rules, { lines, title, notification: task.notification });
    // A copy of its own size: a small Buffer would take its whole pool of 8 KiB to the thread that keeps it.
    const kept = snapshot.length <= maxBytes ? new Uint8Array(snapshot) : null;
    const isBlank = lines.every((line) => line.trim() === '');
    return { ...said, isBlank, snapshot: kept, title, ms: performance.now() - began };
  } finally {
    terminal.close();
  }
}
