// Tries an agent's rules on what its terminal shows. Screens and rules are untrusted, so this runs on job
// threads, like the drawing itself: docs/reference.md "Screen rules".
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

/** The texts that rules examine. */
export interface ShownTexts {
  lines: readonly string[];
  title: string;
  notification: string;
}

interface CompiledRule {
  rule: ScreenRule;
  matches: LinearRegex[];
}

/** Compiled rules by the id of their set. The oldest set is dropped when there are too many. */
const compiledSets = new Map<string, Promise<CompiledRule[]>>();
const MAX_COMPILED_SETS = 32;
/** What frames draw around text. */
const FRAME = /^[\s│┃║╎▌▐|]+|[\s│┃║╎▌▐|]+$/g;
/** A line within a frame, or part of one. */
const FRAMED = /^\s*[\u2500-\u257f▌▐|]/;
/** A line that consists only of a frame. */
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

/** The last `count` non-blank lines, and everything between them; null: all lines. */
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

/** The indexes of the last lines that make a rule match; null: it does not match. */
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
 * The question on a screen: from the line `first`, or the top of the frame around it, to the end, without
 * frames and surrounding blank lines.
 */
function questionOf(lines: readonly string[], first: number): string[] {
  const texts = lines.map((line) => (BORDER.test(line) ? '' : line.replace(FRAME, '')));
  const isFramed = (index: number): boolean => FRAMED.test(lines[index] ?? '');
  let top = first;
  while (isFramed(top) && isFramed(top - 1)) top -= 1;
  const end = texts.findLastIndex((text) => text !== '') + 1;
  const most = AGENT_STATE.maxQuestionLines;
  // The question itself is at the end of a frame.
  const from = Math.min(first, Math.max(top, end - most));
  return texts
    .slice(from, Math.min(end, from + most))
    .filter((text, index, all) => text !== '' || (index > 0 && all[index - 1] !== ''));
}

/** The first matching rules of `set`: on the screen, and on title or notification. */
export async function tryRules(
  set: RuleSet,
  shown: ShownTexts,
): Promise<Pick<StateReading, 'screen' | 'beside' | 'question'>> {
  const said: Pick<StateReading, 'screen' | 'beside' | 'question'> = {
    screen: null,
    beside: null,
    question: [],
  };
  // A rule may only recognise the last line of a question, so all matching rules together tell where it
  // begins.
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

/** The job of that name. Draws a screen and tries the rules on it. */
export async function readState(task: ReadStateTask): Promise<StateReading> {
  const { modes, budgetMs, maxBytes } = task;
  const terminal = await openTerminalScreen(task.cols, task.rows);
  const began = performance.now();
  try {
    const until = began + budgetMs;
    await terminal.write(modes);
    const { drawnBytes, isCut } = await terminal.writeRest(task, () => performance.now() > until);
    const undrawnBytes = task.bytes.length - drawnBytes;
    const { cols, lines, rows, title: drawn } = terminal.read(false);
    const title = task.title || drawn;
    const snapshot = terminal.snapshot(0);
    const said = await tryRules(task.rules, { lines, title, notification: task.notification });
    // A copy of exactly its size: a small Buffer would keep its whole 8 KiB pool alive in the other thread.
    const kept = snapshot.length <= maxBytes ? new Uint8Array(snapshot) : null;
    const isBlank = lines.every((line) => line.trim() === '');
    const ms = performance.now() - began;
    return { ...said, isBlank, cols, rows, snapshot: kept, undrawnBytes, isCut, title, ms };
  } finally {
    terminal.close();
  }
}
