// YAML: untrusted (`parseStrictYaml`, without anchors, tags or merge keys) and the user's own
// (`parseYamlNodes`, with anchors, merge keys and positions). Always one document of the core schema.
//
// Both parse untrusted documents. The package recurses with the nesting of a document, and V8 ends the whole
// process, not just the thread, when it compiles a regular expression at the end of the stack. So the
// package's three steps (lexer, parser, composer) are run separately, and the nesting is bounded before each
// that recurses.
import {
  type Alias,
  Composer,
  type CST,
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type ParsedNode,
  Parser,
  Scalar,
  visit,
} from 'yaml';
import { escapeUnsafe } from '../protocol/unsafe_characters.ts';

export type YamlValue = null | boolean | number | string | YamlValue[] | YamlMap;
export type YamlMap = Map<string, YamlValue>;

/** Why a text is rejected, in one line for the user. Repeats nothing of the text except names of keys. */
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
} as const;

const ONE_DOCUMENT = 'the file must be one document';
/** The deepest nesting that is parsed at all; callers accept less. */
const MAX_NESTING = 100;
/** The most parts of a text, white space included. A kubeconfig of the largest size has fewer. */
const MAX_LEXEMES = 120_000;

type ComposeErrorHandler = (
  source: number | readonly [number, number, ...number[]] | { offset: number },
  code: string,
  message: string,
  isWarning?: boolean,
) => void;

/** Line and column, both from 1. */
export interface YamlPosition {
  line: number;
  column: number;
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

/** The values inside one part of a document, as the parser has found them. */
function partsOf(token: CST.Token): CST.Token[] {
  if (token.type === 'document') return token.value ? [token.value] : [];
  if (!('items' in token)) return [];
  return token.items.flatMap(({ key, value }) => [key, value].filter((part) => part != null));
}

/** Whether `token` is nested deeper than `levels`. Does not recurse. */
function isNestedDeeper(token: CST.Token, levels: number): boolean {
  let level = [token];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap(partsOf);
  }
  return false;
}

const positionIn = (lines: LineCounter, offset: number): YamlPosition => {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
};

/** What is wrong with a text: the package's code, or one of ours. */
class YamlMistake extends Error {
  override readonly name = 'YamlMistake';
  readonly code: string;
  readonly offset: number;
  constructor(code: string, message: string, offset: number) {
    super(message);
    this.code = code;
    this.offset = offset;
  }
}

/** Longest part of a message of the package, which may repeat the text. */
const MAX_MESSAGE_LENGTH = 200;

/** Throws the mistake, if a parser token is one. */
function checkToken(token: CST.Token): void {
  if (token.type === 'error')
    throw new YamlMistake('UNEXPECTED_TOKEN', token.message.slice(0, MAX_MESSAGE_LENGTH), token.offset);
  if (isNestedDeeper(token, MAX_NESTING))
    throw new YamlMistake('TOO_DEEP', 'nested too deeply', token.offset);
}

/**
 * The tokens of `text`, bounded in number and nesting. The parser recurses over its stack when a line ends
 * many levels at once, and the composer over the finished token. Throws a YamlMistake.
 */
function* boundedTokens(text: string, lines: LineCounter): Generator<CST.Token> {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  let lexemes = 0;
  let documentEnds = 0;
  function* checked(tokens: Iterable<CST.Token>): Generator<CST.Token> {
    for (const token of tokens) {
      checkToken(token);
      documentEnds += token.type === 'doc-end' ? 1 : 0;
      if (documentEnds > 1) throw new YamlMistake('MULTIPLE_DOCS', ONE_DOCUMENT, parser.offset);
      yield token;
    }
  }
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexemes > MAX_LEXEMES) throw new YamlMistake('TOO_LONG', 'has too many parts', parser.offset);
    yield* checked(parser.next(lexeme));
    if (parser.stack.length > MAX_NESTING)
      throw new YamlMistake('TOO_DEEP', 'nested too deeply', parser.offset);
  }
  yield* checked(parser.end());
}

/** A composer that stops at the first error instead of collecting a hundred thousand. */
function createComposer(): Composer<ParsedNode> {
  let first: YamlMistake | undefined;
  const onError: ComposeErrorHandler = (source, code, message, isWarning) => {
    if (isWarning) return;
    const offset = typeof source === 'number' ? source : 'offset' in source ? source.offset : source[0];
    // The composer catches errors within collections, and reports them here again.
    first ??= new YamlMistake(code, message, offset);
    throw first;
  };
  return Object.assign(new Composer<ParsedNode>(OPTIONS), { onError });
}

/** Parses one document. Throws a YamlMistake. */
function composeDocument(text: string, lines: LineCounter): Document.Parsed<ParsedNode> {
  const documents = createComposer().compose(boundedTokens(text, lines), true, text.length);
  const { value: document } = documents.next();
  if (!document) throw new TypeError('the composer has made no document');
  const { value: second } = documents.next();
  const [error] = document.errors;
  if (error) throw new YamlMistake(error.code, error.message, error.pos[0]);
  if (second) throw new YamlMistake('MULTIPLE_DOCS', ONE_DOCUMENT, second.range[0]);
  return document;
}

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
    // The package reads an absent key, which is null, as the empty string.
    if (typeof name !== 'string' || (name === '' && isScalar(key) && key.type === 'PLAIN'))
      throw new YamlError(`${where}: every key must be a string`);
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
  const lines = new LineCounter();
  let document: Document.Parsed<ParsedNode>;
  try {
    document = composeDocument(text, lines);
  } catch (error) {
    if (!(error instanceof YamlMistake)) throw error;
    const { line } = positionIn(lines, error.offset);
    throw new YamlError(`no YAML that is accepted here: ${error.code} at line ${line}`);
  }
  if (document.directives?.yaml.explicit || Object.keys(document.directives?.tags ?? {}).length > 1)
    throw new YamlError('directives (%YAML, %TAG) are not accepted');
  return readValue(document.contents, '', depth);
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

/** The usual limit of nodes: with its aliases followed, a small text may be a large document. */
const MAX_NODES = 20_000;

interface ParseContext {
  /** The node that each alias means. */
  targets: ReadonlyMap<Alias, Node>;
  positionOf: (node: Node) => YamlPosition;
  remainingNodes: number;
}

const FIRST_POSITION: YamlPosition = { line: 1, column: 1 };

/**
 * The target of every alias: the last preceding node with its anchor. The package would search again for
 * each.
 */
function aliasTargets(document: Document.Parsed<ParsedNode>): Map<Alias, Node> {
  const anchored = new Map<string, Node>();
  const targets = new Map<Alias, Node>();
  visit(document, {
    Node: (_, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
        return;
      }
      const target = anchored.get(node.source);
      if (target) targets.set(node, target);
    },
  });
  return targets;
}

function nodeOf(reading: ParseContext, node: Node | null, parent: YamlPosition, depth: number): YamlNode {
  const at = node ? reading.positionOf(node) : parent;
  reading.remainingNodes -= 1;
  if (reading.remainingNodes < 0)
    throw new YamlPositionError(at, 'the document is too large once its aliases are followed');
  if (depth === 0) throw new YamlPositionError(at, 'nested too deeply');
  if (node === null) return { kind: 'scalar', at, value: null, source: '', isPlain: true };
  if (isAlias(node)) {
    const target = reading.targets.get(node);
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
  const own = new Map<string, YamlRow>();
  const merged = new Map<string, YamlRow>();
  for (const item of items) {
    const keyAt = reading.positionOf(item.key);
    const key = isScalar(item.key) ? item.key.value : undefined;
    if (typeof key !== 'string') throw new YamlPositionError(keyAt, 'a key must be a string');
    if (key === '__proto__') throw new YamlPositionError(keyAt, 'the key __proto__ is not accepted');
    const value = nodeOf(reading, item.value, keyAt, depth - 1);
    if (key !== '<<') {
      if (own.has(key)) throw new YamlPositionError(keyAt, `the key ${key} is there twice`);
      own.set(key, { key, keyAt, value });
      continue;
    }
    for (const source of value.kind === 'list' ? value.items : [value]) {
      if (source.kind !== 'map') throw new YamlPositionError(parent, '<< takes a map or a list of maps');
      for (const row of source.rows) if (!merged.has(row.key)) merged.set(row.key, row);
    }
  }
  return [...own.values(), ...[...merged.values()].filter((row) => !own.has(row.key))];
}

/**
 * Parses a document of the user's, such as a project file. Anchors, aliases and merge keys are followed; keys
 * are unique strings; it is nested at most `depth` deep and has at most `maxNodes`. An empty text is null.
 * Throws a YamlPositionError.
 */
export function parseYamlNodes(text: string, depth: number, maxNodes = MAX_NODES): YamlNode {
  const lines = new LineCounter();
  let document: Document.Parsed<ParsedNode>;
  try {
    document = composeDocument(text, lines);
  } catch (error) {
    if (!(error instanceof YamlMistake)) throw error;
    throw new YamlPositionError(positionIn(lines, error.offset), error.message);
  }
  const reading: ParseContext = {
    targets: aliasTargets(document),
    positionOf: (node) => (node.range ? positionIn(lines, node.range[0]) : FIRST_POSITION),
    remainingNodes: maxNodes,
  };
  return nodeOf(reading, document.contents, FIRST_POSITION, depth);
}

/**
 * `value` as YAML of the core schema. Strings are quoted where they would be read as something else.
 * Characters that a terminal obeys are escaped.
 */
export function stringifyYaml(value: unknown): string {
  const document = new Document(value, { schema: 'core', version: '1.2', aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && escapeUnsafe(node.value) !== node.value)
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return escapeUnsafe(document.toString({ lineWidth: 0 }));
}
