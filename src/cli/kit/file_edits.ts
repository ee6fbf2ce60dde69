// Reversible edits of other programs' files: docs/reference.md "Agent init".
import { isDeepStrictEqual } from 'node:util';
import { editJsonc, parseJsonc, removeJsonc } from '../../adapters/jsonc.ts';
import { parseToml, TomlFault } from '../../settings/toml.ts';

/** The content that an edit puts into a file. */
export type FileEdit =
  /** The file is Berth's own. */
  | { kind: 'whole'; text: string }
  /** A value at a path of a JSON file, unless another value is there. */
  | { kind: 'value'; path: readonly string[]; value: unknown; isOurs: (value: unknown) => boolean }
  /** An item of a list in a JSON file; null: no longer, and that of an earlier version is removed. */
  | { kind: 'item'; path: readonly string[]; item: unknown; isOurs: (item: unknown) => boolean }
  /** Lines between two marks. `toml`: the table that they are in a TOML file, unless the user has it. */
  | {
      kind: 'block';
      lines: string;
      comment: readonly [open: string, close: string];
      toml: readonly [string, ...string[]] | null;
    };

/** The file cannot be edited: its content is not what the edit expects. */
export class UneditableError extends Error {
  override readonly name = 'UneditableError';
}

const MARK = 'written by `berth agent init`';

const at = (value: unknown, path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (inner, key) => (typeof inner === 'object' && inner ? Reflect.get(inner, key) : undefined),
    value,
  );

const isObject = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Throws an UneditableError if something above `path` is no object, which the format calls `name`. */
function checkAbove(value: unknown, path: readonly string[], name: 'object' | 'table'): void {
  for (let length = 1; length < path.length; length += 1) {
    const above = path.slice(0, length);
    const found = at(value, above);
    if (found !== undefined && !isObject(found))
      throw new UneditableError(`${above.join('.')} is no ${name}`);
  }
}

function parsed(text: string): unknown {
  const value = text.trim() === '' ? {} : parseJsonc(text);
  if (!isObject(value)) throw new UneditableError('it is no JSON object');
  return value;
}

type JsonEdit = Extract<FileEdit, { kind: 'value' | 'item' }>;

/** `keeps`: see `removeJsonc`. */
function withoutJson(text: string, edit: JsonEdit, keeps: Parameters<typeof removeJsonc>[2]): string {
  const { path, isOurs } = edit;
  const value = at(parsed(text), path);
  if (edit.kind === 'value')
    return value !== undefined && isOurs(value) ? removeJsonc(text, path, keeps) : text;
  if (!Array.isArray(value)) return text;
  const index = value.findIndex(isOurs);
  return index < 0 ? text : withoutJson(removeJsonc(text, [...path, index], keeps), edit, keeps);
}

function withJson(text: string, edit: JsonEdit): string {
  const { path } = edit;
  const content = parsed(text);
  checkAbove(content, path, 'object');
  const value = at(content, path);
  const base = text.trim() === '' ? '{}\n' : text;
  if (edit.kind === 'value') {
    if (value !== undefined && !edit.isOurs(value)) return text;
    return isDeepStrictEqual(value, edit.value) ? text : editJsonc(base, path, edit.value);
  }
  if (edit.item === null) return withoutJson(text, edit, () => false);
  if (value === undefined) return editJsonc(base, path, [edit.item]);
  if (!Array.isArray(value)) throw new UneditableError(`${path.join('.')} is no list`);
  if (value.some((one) => isDeepStrictEqual(one, edit.item))) return text;
  return editJsonc(
    withoutJson(base, edit, () => true),
    [...path, -1],
    edit.item,
  );
}

type BlockEdit = Extract<FileEdit, { kind: 'block' }>;

const marksOf = ({ comment: [open, close] }: BlockEdit): [begin: string, end: string] => [
  `${open}berth: ${MARK}${close}\n`,
  `${open}berth: end${close}\n`,
];

function withoutBlock(text: string, edit: BlockEdit): string {
  const [begin, end] = marksOf(edit);
  const from = text.indexOf(begin);
  const to = text.indexOf(end, from);
  if (from < 0 || to < 0) return text;
  const before = text.slice(0, from).replace(/\n\n$/, '\n');
  return before + text.slice(to + end.length);
}

async function parsedToml(text: string, fault: string): Promise<unknown> {
  try {
    return await parseToml(text);
  } catch (error) {
    if (error instanceof TomlFault) throw new UneditableError(fault);
    throw error;
  }
}

async function withBlock(text: string, edit: BlockEdit): Promise<string> {
  const [begin, end] = marksOf(edit);
  const { lines, toml } = edit;
  const base = withoutBlock(text, edit);
  if (toml) {
    const content = await parsedToml(base, 'it is no TOML');
    checkAbove(content, toml, 'table');
    if (at(content, toml) !== undefined) return text;
  }
  if (text.includes(begin + lines + end)) return text;
  const gap = base === '' ? '' : base.endsWith('\n') ? '\n' : '\n\n';
  const next = base + gap + begin + lines + end;
  // An inline table takes no more lines.
  if (toml) await parsedToml(next, `its ${toml[0]} is an inline table`);
  return next;
}

/**
 * `before` with the edit; unchanged if the edit is already there. A `before` of null: the file does not
 * exist. Rejects with an UneditableError.
 */
export async function withEdit(before: string | null, edit: FileEdit): Promise<string> {
  switch (edit.kind) {
    case 'whole':
      if (before !== null && !before.includes(MARK)) throw new UneditableError('it is not of Berth');
      return edit.text;
    case 'value':
    case 'item':
      return withJson(before ?? '', edit);
    case 'block':
      return withBlock(before ?? '', edit);
    default:
      return edit satisfies never;
  }
}

/**
 * `text` without the edit; null if nothing is left of a file that Berth has created. `before`: the content
 * before the first edit; what is empty in it stays. null: there was no file, or the content is not known.
 * Throws an UneditableError.
 */
export function withoutEdit(text: string, edit: FileEdit, before: string | null): string | null {
  switch (edit.kind) {
    case 'whole':
      return text.includes(MARK) ? null : text;
    case 'value':
    case 'item': {
      const own = parseJsonc(before ?? '');
      const left = withoutJson(text, edit, (path) => at(own, path.map(String)) !== undefined);
      return before === null && left !== text && /^\s*\{\s*\}\s*$/.test(left) ? null : left;
    }
    case 'block': {
      const left = withoutBlock(text, edit);
      return before === null && left === '' ? null : left;
    }
    default:
      return edit satisfies never;
  }
}
