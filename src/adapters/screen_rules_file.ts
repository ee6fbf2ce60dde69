// The screen rules, as TOML files: docs/reference.md "Screen rules". A faulty rule is left out and reported;
// the others apply.
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { REPORTED_STATES, type ReportedState } from '../protocol/agent_state.ts';
import { AGENT_TYPES } from '../protocol/agent_types.ts';
import {
  ANY_TYPE as ANY,
  type LoadedRules,
  RULE_REGIONS,
  type RuleFault,
  type RuleRegion,
  type ScreenRule,
} from '../protocol/screen_rules.ts';
import { AGENT_STATE } from '../settings/agent_limits.ts';
import { readTextFile } from '../settings/state_files.ts';
import { parseToml, TomlFault } from '../settings/toml.ts';
import { linearRegex, RegexError } from './linear_regex.ts';

interface RulesFile {
  rules: ScreenRule[];
  faults: RuleFault[];
}

const HEAD = /^\s*\[\[rule\]\]\s*(?:#.*)?$/;

/** A fault of a field, at the line of the field. */
class FieldFault extends Error {
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

const oneOf =
  <T extends string>(known: readonly T[]) =>
  (value: unknown, field: string): T => {
    const found = known.find((word) => word === value);
    if (found === undefined) throw new FieldFault(field, `${field} must be one of ${known.join(', ')}`);
    return found;
  };

function textsOf(value: unknown, field: string): string[] {
  const isTexts =
    Array.isArray(value) &&
    value.every((text) => typeof text === 'string' && text !== '' && text.length <= AGENT_STATE.maxRuleText);
  if (!isTexts) throw new FieldFault(field, `${field} must be a list of texts that are not empty`);
  return value;
}

function nameOf(value: unknown, field: string): string {
  if (typeof value === 'string' && /^[a-z0-9][a-z0-9-]{0,62}$/.test(value)) return value;
  throw new FieldFault(field, 'name must be lower-case letters, digits and hyphens');
}

function lastOf(value: unknown, field: string): number {
  if (Number.isInteger(value) && (value as number) >= 1) return value as number;
  throw new FieldFault(field, 'last must be a number of lines');
}

/** How each field of a rule is read. */
const FIELDS = {
  name: nameOf,
  state: oneOf<ReportedState>(REPORTED_STATES),
  within: oneOf<RuleRegion>(RULE_REGIONS),
  last: lastOf,
  contains: textsOf,
  any: textsOf,
  absent: textsOf,
  matches: textsOf,
} satisfies { readonly [field: string]: (value: unknown, field: string) => unknown };

async function readRule(table: Record<string, unknown>, file: string): Promise<ScreenRule> {
  const rule: ScreenRule = {
    ...{ name: '', state: 'idle', within: 'screen', last: null },
    ...{ contains: [], any: [], absent: [], matches: [], file },
  };
  for (const [field, value] of Object.entries(table)) {
    if (!Object.hasOwn(FIELDS, field)) throw new FieldFault(field, `${field} is no field of a rule`);
    Object.assign(rule, { [field]: FIELDS[field as keyof typeof FIELDS](value, field) });
  }
  for (const field of ['name', 'state'] as const)
    if (!(field in table)) throw new FieldFault('', `${field} must be given`);
  if (rule.contains.length + rule.any.length + rule.matches.length === 0)
    throw new FieldFault('', 'contains, any or matches must be given');
  for (const pattern of rule.matches)
    await linearRegex(pattern).catch((error: unknown) => {
      throw error instanceof RegexError ? new FieldFault('matches', `matches: ${error.message}`) : error;
    });
  return rule;
}

/** The line of `field` among `lines`; the first one for a field that is not there. */
const lineOf = (lines: readonly string[], field: string): number =>
  Math.max(
    0,
    lines.findIndex((line) => field !== '' && line.trimStart().startsWith(field)),
  );

/** Parses the rules in `text`. Each is read separately, so that a fault affects only that rule. */
async function readRules(text: string, file: string): Promise<RulesFile> {
  const lines = text.split('\n');
  const heads = lines.flatMap((line, index) => (HEAD.test(line) ? [index] : []));
  const found: RulesFile = { rules: [], faults: [] };
  const blame = (line: number, message: string): void => void found.faults.push({ file, line, message });
  const before = lines.slice(0, heads[0]).findIndex((line) => line.trim() !== '' && !/^\s*#/.test(line));
  if (before >= 0) blame(before + 1, 'a file of rules has tables [[rule]] alone');
  for (const [index, head] of heads.slice(0, AGENT_STATE.maxRules).entries()) {
    const own = lines.slice(head, heads[index + 1]);
    try {
      const [table] = (await parseToml(own.join('\n')))['rule'] as Record<string, unknown>[];
      found.rules.push(await readRule(table ?? {}, file));
    } catch (error) {
      if (error instanceof TomlFault) blame(head + error.line, error.message);
      else if (error instanceof FieldFault) blame(head + 1 + lineOf(own, error.field), error.message);
      else throw error;
    }
  }
  if (heads.length > AGENT_STATE.maxRules)
    blame((heads[AGENT_STATE.maxRules] ?? 0) + 1, `a file has at most ${AGENT_STATE.maxRules} rules`);
  return found;
}

/** The files of rules in `folder`; none where there is no folder. */
function rulesFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((file) => file.endsWith('.toml'))
      .sort();
  } catch {
    return [];
  }
}

type RulesFiles = ReadonlyMap<string, RulesFile>;

async function readFolder(folder: string): Promise<RulesFiles> {
  const found = new Map<string, RulesFile>();
  for (const file of rulesFiles(folder)) {
    const path = join(folder, file);
    const type = file.slice(0, -'.toml'.length);
    let text: string;
    try {
      text = readTextFile(path);
    } catch (error) {
      const message = `cannot be read: ${(error as Error).message}`;
      found.set(type, { rules: [], faults: [{ file: path, line: 1, message }] });
      continue;
    }
    const read = await readRules(text, path);
    const isKnown = [ANY, ...AGENT_TYPES].includes(type);
    if (!isKnown) read.faults.push({ file: path, line: 1, message: `there is no agent type ${type}` });
    found.set(type, read);
  }
  return found;
}

/** The job of that name. Loads the rules in the folders: the user's, which come first, and Berth's own. */
export async function loadRules({
  folders,
}: {
  folders: [user: string, own?: string];
}): Promise<LoadedRules> {
  const [user, own] = await Promise.all(folders.map((folder) => readFolder(folder ?? '')));
  const rulesIn = (files: RulesFiles | undefined, name: string) => files?.get(name)?.rules ?? [];
  const sets = [ANY, ...AGENT_TYPES].map((type): LoadedRules['sets'][number] => {
    const ofType = (files: RulesFiles | undefined) => (type === ANY ? [] : rulesIn(files, type));
    // Rules about questions at the end of the screen come before the type's other rules.
    const rules = [...ofType(user), ...rulesIn(user, ANY), ...rulesIn(own, ANY), ...ofType(own)];
    return [type, { id: createHash('sha256').update(JSON.stringify(rules)).digest('base64url'), rules }];
  });
  const files = [user, own].flatMap((found) => [...(found?.values() ?? [])]);
  return { sets, faults: files.flatMap(({ faults }) => faults) };
}
