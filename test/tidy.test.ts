// The rules of the source tree, checked on the tree itself: imports point down, one file owns each package,
// nothing grows past its size, no forbidden names or marks.
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');

function files(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => /\.(ts|tsx|mjs)$/.test(name) && !name.includes('/dist/'));
}

interface Source {
  path: string;
  lines: string[];
  imports: string[];
  /** Without those of types alone, which are gone in the build. */
  loaded: string[];
}

const IMPORT =
  /^(?:import|export)\b[^'"]*?from\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|^import\s+['"]([^'"]+)['"]/gm;

const sources: Source[] = ['src', 'workers', 'bench'].flatMap(files).map((path) => {
  const text = readFileSync(join(root, path), 'utf8');
  const found = [...text.matchAll(IMPORT)];
  const nameOf = (match: RegExpExecArray): string => match[1] ?? match[2] ?? match[3] ?? '';
  const loaded = found.filter(([statement]) => !statement.startsWith('import type')).map(nameOf);
  return { path, lines: text.split('\n'), imports: found.map(nameOf), loaded };
});

/** The folders that each folder may import from, besides itself. */
const MAY_IMPORT: ReadonlyMap<string, readonly string[]> = new Map([
  ['src/settings', []],
  ['src/runtime', []],
  ['src/protocol', ['src/settings', 'src/runtime']],
  ['src/logs', ['src/settings', 'src/runtime', 'src/protocol']],
  ['src/adapters', ['src/settings', 'src/runtime', 'src/protocol']],
  ['src/api', ['src/settings', 'src/protocol', 'src/adapters']],
  ['src/actors', ['src/settings', 'src/runtime', 'src/protocol', 'src/logs', 'src/adapters']],
  ['src/host', ['src/settings', 'src/runtime', 'src/protocol', 'src/logs', 'src/adapters']],
  [
    'src/front',
    ['src/settings', 'src/runtime', 'src/protocol', 'src/logs', 'src/adapters', 'src/api', 'src/project'],
  ],
  ['src/client', ['src/settings', 'src/protocol', 'src/adapters', 'src/api']],
  ['src/project', ['src/settings', 'src/protocol', 'src/adapters']],
  ['src/cli', ['src/settings', 'src/client', 'src/project', 'src/protocol', 'src/adapters', 'src/api']],
  ['src/dashboard', ['src/client', 'src/protocol']],
  [
    'src/daemon',
    ['src/settings', 'src/runtime', 'src/protocol', 'src/adapters', 'src/api', 'src/actors', 'src/front'],
  ],
  ['src', ['src/daemon', 'src/cli']],
  ['workers', ['src/daemon', 'src/host', 'src/settings', 'src/adapters']],
]);

const room = (path: string): string =>
  path
    .split('/')
    .slice(0, path.startsWith('src/') && path.split('/').length > 2 ? 2 : 1)
    .join('/');

/** Files that are tables, or one subject read as a whole. */
const MAY_BE_LONG = new Set<string>(['src/cli/commands.ts']);
/** Functions that are tables: a row per endpoint. */
const MAY_BE_TALL = new Set<string>();
const FILE_LINES = 400;
const FUNCTION_LINES = 60;

/**
 * The functions of a formatted file with their own lines, without those of inner functions: a function begins
 * where a line opens a body and ends at the next line of the same indentation that closes it.
 */
function functionLengths(lines: readonly string[]): { line: number; own: number }[] {
  const opens =
    /(\bfunction\b.*|=>\s*|^\s+(?:async\s+)?(?:get |set |static |override |private )*[A-Za-z_#][\w]*\([^;]*\)(?::\s*[^;{]+)?\s*)\{$/;
  const notFunctions = /^\s*(?:if|for|while|switch|catch|else|try|do|return\s*\{|\} else|\} catch)\b/;
  const found: { line: number; end: number; own: number }[] = [];
  for (const [index, line] of lines.entries()) {
    if (!opens.test(line) || notFunctions.test(line)) continue;
    const indent = /^\s*/.exec(line)?.[0] ?? '';
    const end = lines.findIndex((other, at) => at > index && other.startsWith(`${indent}}`));
    if (end > index) found.push({ line: index, end, own: end - index + 1 });
  }
  for (const inner of found) {
    const outer = found.filter((other) => other.line < inner.line && other.end >= inner.end).at(-1);
    if (outer) outer.own -= inner.end - inner.line + 1;
  }
  return found.map(({ line, own }) => ({ line: line + 1, own }));
}

describe('the source tree', () => {
  it('has imports that point down', () => {
    const wrong: string[] = [];
    for (const source of sources) {
      const from = room(source.path);
      const allowed = MAY_IMPORT.get(from);
      // The build's own scripts name files that they generate.
      if (!allowed || source.path.endsWith('.mjs')) continue;
      for (const name of source.imports.filter((target) => target.startsWith('.'))) {
        const target = relative(root, resolve(root, dirname(source.path), name));
        const to = room(target);
        const fine = to === from || allowed.includes(to);
        if (!fine) wrong.push(`${source.path} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('has actors whose concerns do not import each other', () => {
    const concern = (path: string) => /^src\/actors\/([a-z]+)\//.exec(path)?.[1];
    const wrong = sources.flatMap(({ path, imports }) => {
      const from = concern(path);
      const targets = imports.map((name) => relative(root, resolve(root, dirname(path), name)));
      return targets
        .filter((target) => from !== undefined && (concern(target) ?? from) !== from)
        .map((target) => `${path} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });

  it('imports each package in one file', () => {
    const owners = new Map<string, Set<string>>();
    for (const source of sources.filter(
      ({ path }) => !path.startsWith('bench') && !path.startsWith('src/dashboard'),
    )) {
      for (const name of source.loaded) {
        if (name.startsWith('.') || name.startsWith('node:') || builtinModules.includes(name)) continue;
        const parts = name.split('/');
        const owner = name.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? name);
        owners.set(owner, (owners.get(owner) ?? new Set()).add(source.path));
      }
    }
    const shared = [...owners]
      .filter(([, paths]) => paths.size > 1)
      .map(([name, paths]) => `${name}: ${[...paths].join(', ')}`);
    expect(shared).toEqual([]);
  });

  it('exports no value that has no other user', () => {
    // Types are exempt: a file that exports a function also exports the types of its parameters.
    const EXPORTED = /^export (?:async )?(?:const|function\*?|class) (\w+)/gm;
    const words = [...sources.map(({ path }) => path), ...files('test')].map((path) => {
      const text = readFileSync(join(root, path), 'utf8');
      return { path, text, words: new Set(text.match(/\w+/g)) };
    });
    const alone = words
      .filter(({ path }) => !path.startsWith('test'))
      .flatMap(({ path, text }) =>
        [...text.matchAll(EXPORTED)]
          .map(([, name = '']) => name)
          .filter((name) => !words.some((other) => other.path !== path && other.words.has(name)))
          .map((name) => `${path}: ${name}`),
      );
    expect(alone).toEqual([]);
  });

  it('has no file and no function over the size limit', () => {
    const long = sources.filter(({ path, lines }) => lines.length - 1 > FILE_LINES && !MAY_BE_LONG.has(path));
    expect(long.map(({ path, lines }) => `${path}: ${lines.length - 1}`)).toEqual([]);
    const tall = sources.flatMap(({ path, lines }) =>
      functionLengths(lines)
        .filter(({ own }) => own > FUNCTION_LINES && !MAY_BE_TALL.has(path))
        .map(({ line, own }) => `${path}:${line}: ${own} lines`),
    );
    expect(tall).toEqual([]);
  });

  it('names things for what they are and leaves nothing unfinished', () => {
    const names = sources
      .map(({ path }) => path)
      .filter((path) => /(utils?|helpers?|common|manager|misc)\b/i.test(path));
    expect(names).toEqual([]);
    const marks = new RegExp(
      `\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b|@ts-ignore|@ts-nocheck`,
    );
    const marked = sources.flatMap(({ path, lines }) =>
      lines.flatMap((line, index) => (marks.test(line) ? [`${path}:${index + 1}`] : [])),
    );
    expect(marked).toEqual([]);
  });

  it('cites headings of the reference that exist, and no other document', () => {
    const reference = `docs/${'reference.md'}`;
    const documents = readdirSync(root).filter((name) => name.endsWith('.md'));
    const texts = [
      ...['src', 'workers', 'bench', 'test'].flatMap(files),
      ...documents,
      'bench/README.md',
    ].map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
    const headings = [...readFileSync(join(root, reference), 'utf8').matchAll(/^#+ (.+)$/gm)].map(
      ([, heading = '']) => heading,
    );
    expect(headings.filter((heading, index) => headings.indexOf(heading) !== index)).toEqual([]);
    // A citation is the path and one or more headings: "Heading", "Another". In Markdown the path may be a
    // link.
    const CITATION = new RegExp(`${reference.replace('.', '\\.')}( "[^"\\n]+"(?:, "[^"\\n]+")*)?`, 'g');
    const cited = texts.flatMap(({ path, text }) =>
      [...text.matchAll(CITATION)].flatMap(([, names]) => {
        if (names === undefined) return path.endsWith('.md') ? [] : [{ path, name: '' }];
        return [...names.matchAll(/"([^"]+)"/g)].map(([, name = '']) => ({ path, name }));
      }),
    );
    expect(cited.length).toBeGreaterThan(0);
    expect(cited.filter(({ name }) => !headings.includes(name))).toEqual([]);
    const ELSEWHERE = new RegExp(`\\b(${'con'}tract|${'speci'}fication)s?[ \\n/*]+section`, 'i');
    const checked = [...texts, { path: reference, text: readFileSync(join(root, reference), 'utf8') }];
    expect(checked.filter(({ text }) => ELSEWHERE.test(text)).map(({ path }) => path)).toEqual([]);
  });

  it('marks private members in one way', () => {
    const hashed = sources.filter(({ lines }) => lines.some((line) => /\bthis\.#/.test(line)));
    expect(hashed.map(({ path }) => path)).toEqual([]);
  });

  it("signals no process by a pid that may be missing: 0 is the caller's group", () => {
    const wrong = [...sources.map(({ path }) => path), ...files('test')].flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, index) => (/kill\(.*(\?\?|\|\|) 0/.test(line) ? [`${path}:${index + 1}`] : [])),
    );
    expect(wrong).toEqual([]);
  });

  it('has worker entries of at most 30 lines', () => {
    const tall = sources.filter(({ path, lines }) => path.startsWith('workers/') && lines.length - 1 > 30);
    expect(tall.map(({ path, lines }) => `${path}: ${lines.length - 1}`)).toEqual([]);
  });
});
