// YAML: untrusted (`parseStrictYaml`, without anchors, tags or merge keys) and the user's own
// (`parseYamlNodes`, with anchors, merge keys and positions). Always one document of the core schema.
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type ParsedNode,
  parseDocument,
  stringify,
} from 'yaml';

export type YamlValue = null | boolean | number | string | YamlValue[] | YamlMap;
export type YamlMap = Map<string, YamlValue>;

/**
 * Why a text is not accepted, in one line for the user that repeats nothing of the text but names of keys.
 */
export class YamlError extends Error {
  override readonly name = 'YamlError';
}

const OPTIONS = {
  schema: 'core',
  version: '1.2',
  strict: true,
  stringKeys: true,
  // The package would compare every key with every other; `readMap` uses a Map.
  uniqueKeys: false,
  merge: false,
  prettyErrors: true,
  logLevel: 'error',
} as const;

function rejectNodeProperties(node: Node, where: string): void {
  if (isAlias(node)) throw new YamlError(`${where}: aliases (*name) are not accepted`);
  if ('anchor' in node && node.anchor !== undefined)
    throw new YamlError(`${where}: anchors (&name) are not accepted`);
  if (node.tag !== undefined) throw new YamlError(`${where}: tags (!name) are not accepted`);
}

function readValue(node: Node | null, where: string, depth: number): YamlValue {
  if (node === null) return null;
  rejectNodeProperties(node, where);
  if (depth === 0) throw new YamlError(`${where}: is nested too deeply`);
  if (isSeq<ParsedNode>(node))
    return node.items.map((item, index) => readValue(item, `${where}[${index}]`, depth - 1));
  if (isMap<ParsedNode, ParsedNode | null>(node)) return readMap(node.items, where, depth);
  if (!isScalar(node)) throw new YamlError(`${where}: is no value`);
  const { value } = node;
  if (typeof value === 'number' && !Number.isFinite(value))
    throw new YamlError(`${where}: is no finite number`);
  if (value === null || typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string')
    return value;
  throw new YamlError(`${where}: is no plain value`);
}

function readMap(
  items: readonly { key: ParsedNode; value: ParsedNode | null }[],
  where: string,
  depth: number,
): YamlMap {
  const map: YamlMap = new Map();
  for (const { key, value } of items) {
    rejectNodeProperties(key, where);
    const name = isScalar(key) ? key.value : undefined;
    if (typeof name !== 'string') throw new YamlError(`${where}: every key must be a string`);
    const path = where === '' ? name : `${where}.${name}`;
    if (name === '<<') throw new YamlError(`${where}: merge keys (<<) are not accepted`);
    if (map.has(name)) throw new YamlError(`${path}: is there twice`);
    map.set(name, readValue(value, path, depth - 1));
  }
  return map;
}

/**
 * The value of `text`: one document, core schema, no tags, anchors, aliases, merge keys, directives or
 * duplicate keys, nested at most `depth` deep. Maps are Maps, so that no untrusted key becomes a property.
 * Throws a YamlError.
 */
export function parseStrictYaml(text: string, depth: number): YamlValue {
  // The package composes recursively: a document that is nested far too deeply overflows the stack there.
  let document: ReturnType<typeof parseDocument<ParsedNode>>;
  try {
    document = parseDocument<ParsedNode>(text, OPTIONS);
  } catch (error) {
    if (error instanceof RangeError) throw new YamlError('the document is nested too deeply');
    throw error;
  }
  const [error] = document.errors;
  if (error) {
    const at = error.linePos?.[0];
    throw new YamlError(`no YAML that is accepted here: ${error.code}${at ? ` at line ${at.line}` : ''}`);
  }
  if (document.directives?.yaml.explicit || Object.keys(document.directives?.tags ?? {}).length > 1)
    throw new YamlError('directives (%YAML, %TAG) are not accepted');
  return readValue(document.contents, '', depth);
}

/** Line and column, both from 1. */
export interface YamlPosition {
  line: number;
  column: number;
}

/** A document of the user's, with rows in place of objects and the position of every part. */
export type YamlNode =
  | {
      kind: 'scalar';
      at: YamlPosition;
      value: string | number | boolean | null;
      /** The text as written, without quotes: `1.10` stays `1.10`. */
      source: string;
      /** Written without quotes, so that text put into it may become a number or a boolean. */
      isPlain: boolean;
    }
  | { kind: 'list'; at: YamlPosition; items: YamlNode[] }
  | { kind: 'map'; at: YamlPosition; rows: YamlRow[] };

export interface YamlRow {
  key: string;
  keyAt: YamlPosition;
  value: YamlNode;
}

/** Why a document of the user's cannot be read, and where. */
export class YamlPositionError extends Error {
  override readonly name = 'YamlPositionError';
  readonly at: YamlPosition;
  constructor(at: YamlPosition, message: string) {
    super(message);
    this.at = at;
  }
}

/** The most nodes that are read: with its aliases followed, a small text may be a large document. */
const MAX_NODES = 20_000;

interface ParseContext {
  document: Document.Parsed;
  positionOf: (node: Node) => YamlPosition;
  remainingNodes: number;
}

const FIRST_POSITION: YamlPosition = { line: 1, column: 1 };

function nodeOf(reading: ParseContext, node: Node | null, parent: YamlPosition, depth: number): YamlNode {
  const at = node ? reading.positionOf(node) : parent;
  reading.remainingNodes -= 1;
  if (reading.remainingNodes < 0)
    throw new YamlPositionError(at, 'the document is too large once its aliases are followed');
  if (depth === 0) throw new YamlPositionError(at, 'nested too deeply');
  if (node === null) return { kind: 'scalar', at, value: null, source: '', isPlain: true };
  if (isAlias(node)) {
    const target = node.resolve(reading.document);
    if (!target) throw new YamlPositionError(at, `the anchor &${node.source} does not exist`);
    return { ...nodeOf(reading, target, at, depth - 1), at };
  }
  if (isSeq<Node>(node)) {
    return { kind: 'list', at, items: node.items.map((item) => nodeOf(reading, item, at, depth - 1)) };
  }
  if (isMap<Node, Node | null>(node)) {
    return { kind: 'map', at, rows: mapRowsOf(reading, node.items, at, depth) };
  }
  if (!isScalar(node)) throw new YamlPositionError(at, 'is no value');
  const { value } = node;
  const source = node.source ?? String(value);
  const isPlain = node.type === 'PLAIN';
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return { kind: 'scalar', at, value, source, isPlain };
  throw new YamlPositionError(at, 'is no plain value');
}

/** The rows of a map. Rows merged by `<<` come after its own rows and never replace them. */
function mapRowsOf(
  reading: ParseContext,
  items: readonly { key: Node; value: Node | null }[],
  parent: YamlPosition,
  depth: number,
): YamlRow[] {
  const own: YamlRow[] = [];
  const merged: YamlRow[] = [];
  for (const item of items) {
    const keyAt = reading.positionOf(item.key);
    const key = isScalar(item.key) ? item.key.value : undefined;
    if (typeof key !== 'string') throw new YamlPositionError(keyAt, 'a key must be a string');
    if (key === '__proto__') throw new YamlPositionError(keyAt, 'the key __proto__ is not accepted');
    const value = nodeOf(reading, item.value, keyAt, depth - 1);
    if (key !== '<<') {
      if (own.some((row) => row.key === key))
        throw new YamlPositionError(keyAt, `the key ${key} is there twice`);
      own.push({ key, keyAt, value });
      continue;
    }
    for (const source of value.kind === 'list' ? value.items : [value]) {
      if (source.kind !== 'map') throw new YamlPositionError(parent, '<< takes a map or a list of maps');
      merged.push(...source.rows.filter((row) => !merged.some((other) => other.key === row.key)));
    }
  }
  return [...own, ...merged.filter((row) => !own.some((other) => other.key === row.key))];
}

/**
 * Parses a document of the user's, such as a project file. Anchors, aliases and merge keys are followed; keys
 * are unique strings; it is nested at most `depth` deep. An empty text is null. Throws a YamlPositionError.
 */
export function parseYamlNodes(text: string, depth: number): YamlNode {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...OPTIONS, prettyErrors: false, lineCounter: lines });
  const positionAt = (offset: number): YamlPosition => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const [error] = document.errors;
  if (error) {
    const message = error.code === 'MULTIPLE_DOCS' ? 'the file must be one document' : error.message;
    throw new YamlPositionError(positionAt(error.pos[0]), message);
  }
  const reading: ParseContext = {
    document,
    positionOf: (node) => (node.range ? positionAt(node.range[0]) : FIRST_POSITION),
    remainingNodes: MAX_NODES,
  };
  return nodeOf(reading, document.contents, FIRST_POSITION, depth);
}

/** `value` as YAML of the core schema. Strings are quoted where they would be read as something else. */
export function stringifyYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, schema: 'core', version: '1.2', aliasDuplicateObjects: false });
}
