// JSON with comments, for the user's own files (the package jsonc-parser). Edits keep comments and layout.
import {
  applyEdits,
  createScanner,
  type JSONPath,
  modify,
  type Node,
  type ParseError,
  parse,
  parseTree,
} from 'jsonc-parser';

/** Parses JSON with optional comments and trailing commas; undefined if it is invalid or nested too deep. */
export function parseJsonc(text: string): unknown {
  const errors: ParseError[] = [];
  try {
    const value: unknown = parse(text, errors, { allowTrailingComma: true });
    return errors.length > 0 ? undefined : value;
  } catch (error) {
    // The parser calls itself for each level.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/**
 * `text` with another value at `path`; undefined removes the value. A last element of -1 appends to an array.
 * The rest keeps its layout.
 */
export function editJsonc(text: string, path: readonly (string | number)[], value: unknown): string {
  const formattingOptions = { insertSpaces: !/^\t/m.test(text), tabSize: indentOf(text), eol: eolOf(text) };
  const isArrayInsertion = path.at(-1) === -1;
  const edits = modify(text, path as JSONPath, value, { formattingOptions, isArrayInsertion });
  return applyEdits(text, edits);
}

/**
 * `text` without the value at `path`, and without the objects and lists around it that become empty, up to
 * the first that holds a comment or that `keeps` is true for. Comments stay: `modify` would remove those
 * between the value and its neighbour.
 */
export function removeJsonc(
  text: string,
  path: readonly (string | number)[],
  keeps: (path: readonly (string | number)[]) => boolean,
): string {
  const above = path.slice(0, -1);
  const around = nodeAt(text, above);
  const index = around?.children && indexIn(around, path.at(-1));
  const node = index === undefined ? undefined : around?.children?.[index];
  if (!around?.children || index === undefined || !node) return text;
  const previous = around.children[index - 1];
  const next = withoutNode(text, node, previous);
  const end = around.offset + around.length - (text.length - next.length);
  if (next.slice(around.offset + 1, end - 1).trim() !== '') return next;
  const emptied = next.slice(0, around.offset + 1) + next.slice(end - 1);
  return above.length === 0 || keeps(above) ? emptied : removeJsonc(emptied, above, keeps);
}

/** The position of a key among the children of an object or list. The last of equal keys is the valid one. */
const indexIn = ({ children = [] }: Node, key: string | number | undefined): number =>
  typeof key === 'number' ? key : children.findLastIndex(({ children: pair }) => pair?.[0]?.value === key);

const nodeAt = (text: string, path: readonly (string | number)[]): Node | undefined =>
  path.reduce<Node | undefined>((node, key) => {
    const child = node?.children?.[indexIn(node, key)];
    return child?.type === 'property' ? child.children?.[1] : child;
  }, parseTree(text));

/** `text` without `node` and its comma: the one behind it, or else the one behind `previous`. */
function withoutNode(text: string, node: Node, previous: Node | undefined): string {
  const [start, end] = [node.offset, node.offset + node.length];
  const behind = commaAt(text, end);
  if (behind !== null) return cut(cut(text, behind, behind + 1), start, end);
  const next = cut(text, start, end);
  const before = previous ? commaAt(text, previous.offset + previous.length) : null;
  return before === null ? next : cut(next, before, before + 1);
}

/** The offset of the comma that is the next token from `offset` on; null: it is another token. */
function commaAt(text: string, offset: number): number | null {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const found = scanner.getTokenOffset();
  return text[found] === ',' ? found : null;
}

/** `text` without a range, and without the line if nothing else is on it. */
function cut(text: string, start: number, end: number): string {
  const before = text.slice(0, start);
  const after = text.slice(end);
  const [left, right] = [before.replace(/[ \t]+$/, ''), after.replace(/^[ \t]+/, '')];
  if (!left.endsWith('\n')) return left + after;
  return /^\r?\n/.test(right) ? left.replace(/\r?\n$/, '') + right : before + right;
}

const indentOf = (text: string): number => /^( +)\S/m.exec(text)?.[1]?.length ?? 2;
const eolOf = (text: string): string => (text.includes('\r\n') ? '\r\n' : '\n');
