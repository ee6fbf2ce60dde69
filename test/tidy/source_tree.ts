// The source tree as the compiler sees it: every file of src, workers and bench with its syntax tree.
import { relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Node, SourceFile } from 'typescript/unstable/ast';
import { API } from 'typescript/unstable/sync';

export const ROOT = resolve(fileURLToPath(import.meta.url), '../../..');

/** One file of the product or its benchmarks. */
export interface Source {
  /** From the repository's root. */
  path: string;
  tree: SourceFile;
  lines: string[];
}

/** Every TypeScript file of the product and its benchmarks, parsed by the compiler that checks them. */
export function loadSources(): { sources: readonly Source[]; close(): void } {
  const api = new API({ cwd: ROOT });
  const [project] = api.updateSnapshot({ openProjects: ['tsconfig.json'] }).getProjects();
  if (!project) throw new Error('the compiler finds no project');
  const sources = project.rootFiles
    .map((file) => ({ file, path: relative(ROOT, file) }))
    .filter(({ path }) => /^(src|workers|bench)\//.test(path))
    .map(({ file, path }) => {
      const tree = project.program.getSourceFile(file);
      if (!tree) throw new Error(`the compiler has not read ${path}`);
      return { path, tree, lines: tree.text.split('\n') };
    });
  return { sources, close: () => api.close() };
}

/** Calls `visit` for `node` and everything below it, parents first. */
export function walk(node: Node, visit: (node: Node) => void): void {
  visit(node);
  node.forEachChild((child) => {
    walk(child, visit);
    return undefined;
  });
}

/** The first and the last line of a node, counted from 1, without the comments before it. */
export function linesOf({ tree }: Source, node: Node): { first: number; last: number } {
  const line = (position: number): number => tree.getLineAndCharacterOfPosition(position).line + 1;
  return { first: line(node.getStart(tree)), last: line(node.end) };
}
