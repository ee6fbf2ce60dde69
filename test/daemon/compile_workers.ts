import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const root = resolve(fileURLToPath(import.meta.url), '../../..');

/** Bundles TypeScript entries into a folder of their own from which packages resolve. `remove` it after the tests. */
export async function compile(entries: string[]): Promise<{ url(entry: string): URL; remove(): void }> {
  const cache = join(root, 'node_modules/.cache/berth-test');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'threads-'));
  await build({
    absWorkingDir: root,
    entryPoints: entries,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    outdir: folder,
    outbase: root,
    entryNames: '[name]',
    outExtension: { '.js': '.mjs' },
    logLevel: 'warning',
  });
  return {
    url: (entry) => pathToFileURL(join(folder, basename(entry).replace(/\.ts$/, '.mjs'))),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
