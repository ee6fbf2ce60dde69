// Rules of the source tree that need its syntax: sizes measured whole, names, and errors that nobody may swallow.
import {
  isArrowFunction,
  isCallExpression,
  isClassDeclaration,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isIdentifier,
  isInterfaceDeclaration,
  isMethodDeclaration,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isPropertyDeclaration,
  isSetAccessorDeclaration,
  isTypeAliasDeclaration,
  isVariableDeclaration,
  isVariableStatement,
  type Node,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { linesOf, loadSources, type Source, walk } from './source_tree.ts';

/** A function measured whole, what it contains included. */
const FUNCTION_LINES = 60;
const FILE_LINES = 400;
const COLUMNS = 110;

/** Functions above the limit, with the lines they have. A ratchet: none may grow, and one that has shrunk leaves the list. */
const LONG_FUNCTIONS: Readonly<Record<string, number>> = {};
/** Files above the limit, in the same way. */
const LONG_FILES: Readonly<Record<string, number>> = {};

/** One public name with one implementation per entry of the client's package. */
const PUBLIC_TWICE = new Set(['connect']);

let sources: readonly Source[];
let close: () => void;
// The compiler reads every source, which takes its time where other work has the processors.
beforeAll(() => {
  ({ sources, close } = loadSources());
}, 180_000);
afterAll(() => close());

const FUNCTIONS = [
  isArrowFunction,
  isConstructorDeclaration,
  isFunctionDeclaration,
  isFunctionExpression,
  isGetAccessorDeclaration,
  isMethodDeclaration,
  isSetAccessorDeclaration,
];

/** The name of a function: its own, or that of what it is assigned to. */
function nameOf(node: Node): string {
  if (isConstructorDeclaration(node)) return 'constructor';
  if ('name' in node && node.name) return (node.name as Node).getText();
  const { parent } = node;
  return isVariableDeclaration(parent) || isPropertyAssignment(parent) || isPropertyDeclaration(parent)
    ? parent.name.getText()
    : '(anonymous)';
}

/** What a file may export by a name. */
const isDeclaration = (node: Node) =>
  isClassDeclaration(node) ||
  isFunctionDeclaration(node) ||
  isInterfaceDeclaration(node) ||
  isTypeAliasDeclaration(node) ||
  isVariableStatement(node);

/** `measured` against a ratchet: what is above `limit` and not listed, has grown, or is listed without need. */
function faults(
  measured: ReadonlyMap<string, number>,
  limit: number,
  listed: Readonly<Record<string, number>>,
) {
  const tooLong = [...measured].filter(([key, lines]) => lines > Math.max(limit, listed[key] ?? 0));
  const stale = Object.keys(listed).filter((key) => (measured.get(key) ?? 0) !== listed[key]);
  return { tooLong, stale: stale.filter((key) => !tooLong.some(([other]) => other === key)) };
}

describe('sizes', () => {
  it(`no function has more than ${FUNCTION_LINES} lines, closures included`, () => {
    const measured = new Map<string, number>();
    for (const source of sources) {
      walk(source.tree, (node) => {
        if (!FUNCTIONS.some((is) => is(node))) return;
        const { first, last } = linesOf(source, node);
        if (last - first >= FUNCTION_LINES) measured.set(`${source.path} ${nameOf(node)}`, last - first + 1);
      });
    }
    expect(faults(measured, FUNCTION_LINES, LONG_FUNCTIONS)).toEqual({ tooLong: [], stale: [] });
  });

  it(`no file has more than ${FILE_LINES} lines`, () => {
    const measured = new Map(sources.map(({ path, lines }) => [path, lines.length - 1]));
    expect(faults(measured, FILE_LINES, LONG_FILES)).toEqual({ tooLong: [], stale: [] });
  });

  it(`no comment is wider than ${COLUMNS} columns`, () => {
    const wide = sources.flatMap(({ path, lines }) =>
      lines.flatMap((line, index) =>
        line.length > COLUMNS && /^\s*(\/\/|\/?\*)/.test(line) && !/https?:\/\/\S{60}/.test(line)
          ? [`${path}:${index + 1}`]
          : [],
      ),
    );
    expect(wide).toEqual([]);
  });
});

describe('names', () => {
  it('no name is exported by two files', () => {
    const owners = new Map<string, string[]>();
    for (const { path, tree } of sources.filter((source) => source.path.startsWith('src/'))) {
      for (const statement of tree.statements) {
        if (!isDeclaration(statement)) continue;
        if (!statement.modifiers?.some(({ kind }) => kind === SyntaxKind.ExportKeyword)) continue;
        const named = isVariableStatement(statement) ? statement.declarationList.declarations : [statement];
        for (const { name } of named) {
          if (name) owners.set(name.getText(), [...new Set([...(owners.get(name.getText()) ?? []), path])]);
        }
      }
    }
    expect(owners.size).toBeGreaterThan(0);
    const doubled = [...owners].filter(([name, paths]) => paths.length > 1 && !PUBLIC_TWICE.has(name));
    expect(doubled).toEqual([]);
  });

  it('no file has a name that says nothing', () => {
    const SAYS_NOTHING =
      /(^|[/_])(utils?|helpers?|common|manager|misc|core|each|show|plain|units|open|turn)\.\w+$/;
    // The command `berth open` has a file of its name.
    const wrong = sources
      .map(({ path }) => path)
      .filter((path) => SAYS_NOTHING.test(path) && !path.startsWith('src/cli/commands/'));
    expect(wrong).toEqual([]);
  });
});

describe('errors', () => {
  it('actors and the front handle only Failures, and never every error', () => {
    const wrong: string[] = [];
    for (const source of sources.filter(({ path }) => /^src\/(actors|front)\//.test(path))) {
      walk(source.tree, (node) => {
        if (!isCallExpression(node) || !isPropertyAccessExpression(node.expression)) return;
        const [handler] = node.arguments;
        if (node.expression.name.text !== 'catch' || !handler || !isArrowFunction(handler)) return;
        if (handler.parameters.length === 0)
          wrong.push(`${source.path}:${linesOf(source, node.expression.name).first}`);
      });
    }
    expect(wrong).toEqual([]);
  });

  it('no reference to an actor names a protocol, as its address does', () => {
    const wrong: string[] = [];
    for (const source of sources.filter(({ path }) => path.startsWith('src/'))) {
      walk(source.tree, (node) => {
        if (!isCallExpression(node) || !node.typeArguments?.length) return;
        const { expression } = node;
        const called = isPropertyAccessExpression(expression) ? expression.name : expression;
        if (isIdentifier(called) && called.text === 'ref')
          wrong.push(`${source.path}:${linesOf(source, node).first}`);
      });
    }
    expect(wrong).toEqual([]);
  });
});
