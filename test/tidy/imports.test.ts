// Imports point down: the table of layers in ARCHITECTURE.md is what is checked.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './source_tree.ts';

interface File {
  path: string;
  /** What it imports, types included, as written. */
  imports: string[];
  /** Without imports of types alone, which the build removes. */
  loaded: string[];
}

const IMPORT =
  /^(?:import|export)\b[^'"]*?from\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|^import\s+['"]([^'"]+)['"]/gm;

const files: readonly File[] = ['src', 'workers', 'bench'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => {
      const found = [...readFileSync(join(ROOT, path), 'utf8').matchAll(IMPORT)];
      const nameOf = (match: RegExpExecArray): string => match[1] ?? match[2] ?? match[3] ?? '';
      const loaded = found.filter(([statement]) => !statement.startsWith('import type'));
      return { path, imports: found.map(nameOf), loaded: loaded.map(nameOf) };
    }),
);

const targetsOf = ({ path, imports }: File): string[] =>
  imports.filter((name) => name.startsWith('.')).map((name) => normalize(join(dirname(path), name)));

/** The folder of the table that a path belongs to: `src/x`, a file directly in `src`, or the folder at the root. */
const layerOf = (path: string): string => {
  const [top = '', folder, ...rest] = path.split('/');
  return top === 'src' && rest.length > 0 ? `src/${folder}` : top === 'src' ? path : top;
};

/** The rows of the table under "Layers", in order: a folder and the folders it may import. */
const LAYERS: ReadonlyMap<string, readonly string[]> = new Map(
  [
    ...readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8').matchAll(/^\| `([^`]+)` \|.*\| ([^|]*) ?\|$/gm),
  ].map(([, folder = '', names = '']) => [
    folder,
    names
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => `src/${name}`),
  ]),
);

describe('the layers', () => {
  it('are the folders of the source tree, each below what it imports', () => {
    const folders = new Set(files.map(({ path }) => layerOf(path)).filter((layer) => layer !== 'bench'));
    expect([...LAYERS.keys()].sort()).toEqual([...folders].sort());
    const order = [...LAYERS.keys()];
    const upward = [...LAYERS].flatMap(([layer, below]) =>
      below
        .filter((name) => order.indexOf(name) < 0 || order.indexOf(name) >= order.indexOf(layer))
        .map((name) => `${layer} imports ${name}`),
    );
    expect(upward).toEqual([]);
  });

  it('import exactly what the table says', () => {
    const used = new Set<string>();
    const wrong: string[] = [];
    for (const file of files) {
      const from = layerOf(file.path);
      if (from === 'bench') continue;
      for (const target of targetsOf(file)) {
        const to = layerOf(target);
        used.add(`${from} imports ${to}`);
        if (to !== from && !LAYERS.get(from)?.includes(to)) wrong.push(`${file.path} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
    const unused = [...LAYERS].flatMap(([layer, below]) =>
      below.map((name) => `${layer} imports ${name}`).filter((arrow) => !used.has(arrow)),
    );
    expect(unused).toEqual([]);
  });

  it('have no imports between actors', () => {
    const folderOf = (path: string) => /^src\/actors\/([a-z]+)\//.exec(path)?.[1];
    const wrong = files.flatMap((file) => {
      const from = folderOf(file.path);
      return targetsOf(file)
        .filter((target) => from !== undefined && (folderOf(target) ?? from) !== from)
        .map((target) => `${file.path} imports ${target}`);
    });
    expect(wrong).toEqual([]);
  });
});

describe('files', () => {
  it('have no circular imports', () => {
    const edges = new Map(files.map((file) => [file.path, targetsOf(file)]));
    const done = new Set<string>();
    const circles: string[][] = [];
    const visit = (path: string, above: string[]): void => {
      const at = above.indexOf(path);
      if (at >= 0) circles.push([...above.slice(at), path]);
      if (at >= 0 || done.has(path)) return;
      for (const target of edges.get(path) ?? []) visit(target, [...above, path]);
      done.add(path);
    };
    for (const path of edges.keys()) visit(path, []);
    expect(circles).toEqual([]);
  });

  it('import only files that exist', () => {
    const missing = files.flatMap((file) =>
      targetsOf(file)
        .filter((target) => !existsSync(join(ROOT, target)))
        .map((target) => `${file.path} imports ${target}`),
    );
    expect(missing).toEqual([]);
  });

  it('import each package in one file', () => {
    const owners = new Map<string, Set<string>>();
    for (const { path, loaded } of files) {
      if (path.startsWith('bench') || path.startsWith('src/dashboard')) continue;
      for (const name of loaded) {
        if (name.startsWith('.') || name.startsWith('node:') || builtinModules.includes(name)) continue;
        const owner = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
        owners.set(owner, (owners.get(owner) ?? new Set()).add(path));
      }
    }
    const shared = [...owners]
      .filter(([, paths]) => paths.size > 1)
      .map(([name, paths]) => `${name}: ${[...paths].join(', ')}`);
    expect(shared).toEqual([]);
  });
});
