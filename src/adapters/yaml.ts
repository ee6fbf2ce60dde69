// YAML: from strangers (`readYaml`: nothing in it means more than it says) and from the user (`readYamlNodes`: with anchors,
// merge keys and the place of everything). One document of the core schema each time.
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

/** What makes a text unreadable here: one line for the user, which repeats nothing of the text but names of keys. */
export class YamlError extends Error {
  override readonly name = 'YamlError';
}

const OPTIONS = {
  schema: 'core',
  version: '1.2',
  strict: true,
  stringKeys: true,
  // The package compares every key with every other; `read` uses a Map.
  uniqueKeys: false,
  merge: false,
  prettyErrors: true,
  logLevel: 'error',
} as const;

function refuseMarks(node: Node, where: string): void {
  if (isAlias(node)) throw new YamlError(`${where}: aliases (*name) are not accepted`);
  if ('anchor' in node && node.anchor !== undefined)
    throw new YamlError(`${where}: anchors (&name) are not accepted`);
  if (node.tag !== undefined) throw new YamlError(`${where}: tags (!name) are not accepted`);
}

function read(node: Node | null, where: string, depth: number): YamlValue {
  if (node === null) return null;
  refuseMarks(node, where);
  if (depth === 0) throw new YamlError(`${where}: is nested too deeply`);
  if (isSeq<ParsedNode>(node))
    return node.items.map((item, index) => read(item, `${where}[${index}]`, depth - 1));
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
    refuseMarks(key, where);
    const name = isScalar(key) ? key.value : undefined;
    if (typeof name !== 'string') throw new YamlError(`${where}: every key must be a string`);
    const path = where === '' ? name : `${where}.${name}`;
    if (name === '<<') throw new YamlError(`${where}: merge keys (<<) are not accepted`);
    if (map.has(name)) throw new YamlError(`${path}: is there twice`);
    map.set(name, read(value, path, depth - 1));
  }
  return map;
}

/**
 * The value of `text`: one document, core schema, no tags, anchors, aliases, merge keys, directives or duplicate keys,
 * nested at most `depth` deep. Maps are Maps, so that no key of a stranger becomes a property. Throws a YamlError.
 */
export function readYaml(text: string, depth: number): YamlValue {
  // The package composes recursively: what is nested far too deeply meets the end of the stack there first.
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
  return read(document.contents, '', depth);
}

/** Line and column, both from 1. */
export interface Place {
  line: number;
  column: number;
}

/** A document of the user's: rows instead of objects, and where each part stands. */
export type YamlNode =
  | {
      kind: 'scalar';
      at: Place;
      value: string | number | boolean | null;
      /** As it was written, without quotes: `1.10` stays `1.10`. */
      source: string;
      /** Written without quotes: what is put into it may be read as a number or a truth value. */
      plain: boolean;
    }
  | { kind: 'list'; at: Place; items: YamlNode[] }
  | { kind: 'map'; at: Place; rows: YamlRow[] };

export interface YamlRow {
  key: string;
  keyAt: Place;
  value: YamlNode;
}

/** A document of the user's that cannot be read, and where. */
export class YamlPlaceError extends Error {
  override readonly name = 'YamlPlaceError';
  readonly at: Place;
  constructor(at: Place, message: string) {
    super(message);
    this.at = at;
  }
}

/** Aliases are followed, so a small text may mean a large document: this many nodes are read at most. */
const NODES = 20_000;

interface Reading {
  document: Document.Parsed;
  place: (node: Node) => Place;
  left: number;
}

const START: Place = { line: 1, column: 1 };

function nodeOf(reading: Reading, node: Node | null, parent: Place, depth: number): YamlNode {
  const at = node ? reading.place(node) : parent;
  reading.left -= 1;
  if (reading.left < 0)
    throw new YamlPlaceError(at, 'the document is too large once its aliases are followed');
  if (depth === 0) throw new YamlPlaceError(at, 'nested too deeply');
  if (node === null) return { kind: 'scalar', at, value: null, source: '', plain: true };
  if (isAlias(node)) {
    const target = node.resolve(reading.document);
    if (!target) throw new YamlPlaceError(at, `the anchor &${node.source} does not exist`);
    return { ...nodeOf(reading, target, at, depth - 1), at };
  }
  if (isSeq<Node>(node)) {
    return { kind: 'list', at, items: node.items.map((item) => nodeOf(reading, item, at, depth - 1)) };
  }
  if (isMap<Node, Node | null>(node)) {
    return { kind: 'map', at, rows: rowsOf(reading, node.items, at, depth) };
  }
  if (!isScalar(node)) throw new YamlPlaceError(at, 'is no value');
  const { value } = node;
  const source = node.source ?? String(value);
  const plain = node.type === 'PLAIN';
  if (value === null || typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number')
    return { kind: 'scalar', at, value, source, plain };
  throw new YamlPlaceError(at, 'is no plain value');
}

/** The rows of a map; what `<<` merges comes after its own rows and never replaces them. */
function rowsOf(
  reading: Reading,
  items: readonly { key: Node; value: Node | null }[],
  parent: Place,
  depth: number,
): YamlRow[] {
  const own: YamlRow[] = [];
  const merged: YamlRow[] = [];
  for (const item of items) {
    const keyAt = reading.place(item.key);
    const key = isScalar(item.key) ? item.key.value : undefined;
    if (typeof key !== 'string') throw new YamlPlaceError(keyAt, 'a key must be a string');
    if (key === '__proto__') throw new YamlPlaceError(keyAt, 'the key __proto__ is not accepted');
    const value = nodeOf(reading, item.value, keyAt, depth - 1);
    if (key !== '<<') {
      if (own.some((row) => row.key === key))
        throw new YamlPlaceError(keyAt, `the key ${key} is there twice`);
      own.push({ key, keyAt, value });
      continue;
    }
    for (const source of value.kind === 'list' ? value.items : [value]) {
      if (source.kind !== 'map') throw new YamlPlaceError(parent, '<< takes a map or a list of maps');
      merged.push(...source.rows.filter((row) => !merged.some((other) => other.key === row.key)));
    }
  }
  return [...own, ...merged.filter((row) => !own.some((other) => other.key === row.key))];
}

/**
 * Reads a document of the user's, such as a project file: anchors, aliases and merge keys are followed, keys are strings
 * and unique, at most `depth` levels. An empty text is null. Throws a YamlPlaceError.
 */
export function readYamlNodes(text: string, depth: number): YamlNode {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...OPTIONS, prettyErrors: false, lineCounter: lines });
  const place = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const [error] = document.errors;
  if (error) {
    const message = error.code === 'MULTIPLE_DOCS' ? 'the file must be one document' : error.message;
    throw new YamlPlaceError(place(error.pos[0]), message);
  }
  const reading: Reading = {
    document,
    place: (node) => (node.range ? place(node.range[0]) : START),
    left: NODES,
  };
  return nodeOf(reading, document.contents, START, depth);
}

/** Writes `value` as YAML of the core schema: strings are quoted where they would be read as something else. */
export function writeYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, schema: 'core', version: '1.2', aliasDuplicateObjects: false });
}
