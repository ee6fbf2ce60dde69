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

/** The indexes of the lines that make a rule hold; null: it does not. */
function holds({ rule, matches }: CompiledRule, lines: readonly string[]): number[] | null {
  const { absent, any, contains } = rule;
  const isIn = (text: string) => lines.findIndex((line) => line.includes(text));
  const found = contains.map(isIn);
  if (found.includes(-1)) return null;
  const some = any.map(isIn).filter((index) => index >= 0);
  if (any.length > 0 && some.length === 0) return null;
  if (absent.some((text) => isIn(text) >= 0)) return null;
  const matched = matches.map((regex) => lines.findIndex((line) => regex.test(line)));
  if (matched.includes(-1)) return null;
  return [...new Set([...found, ...some, ...matched])].sort((one, other) => one - other);
}

/** From the first line that shows a question to the end of the screen, without frames. */
function questionOf(lines: readonly string[], first: number): string[] {
  const last = lines.findLastIndex((line) => line.replace(FRAME, '') !== '');
  return lines
    .slice(first, Math.min(last + 1, first + AGENT_STATE.maxQuestionLines))
    .map((line) => line.replace(FRAME, ''));
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
  for (const compiled of await compiledRules(set)) {
    const { file, name, state, within } = compiled.rule;
    if (within === 'screen' ? said.screen : said.beside) continue;
    const region = regionOf(compiled.rule, shown);
    const found = holds(compiled, region);
    if (!found) continue;
    const match: RuleMatch = { name, state, file, lines: found.map((index) => region[index] ?? '') };
    if (within !== 'screen') said.beside = { ...match, within };
    else {
      said.screen = match;
      if (state === 'blocked') said.question = questionOf(region, found[0] ?? 0);
    }
  }
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
    const kept = snapshot.length <= maxBytes ? snapshot : null;
    const isBlank = lines.every((line) => line.trim() === '');
    return { ...said, isBlank, snapshot: kept, title, ms: performance.now() - began };
  } finally {
    terminal.close();
  }
}
