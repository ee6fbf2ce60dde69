// Bundles TypeScript for tests that run it in its own process or thread. Packages stay outside the bundle.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Below node_modules, so that packages resolve. */
const CACHE = join(ROOT, 'node_modules', '.cache');

let folder: string | undefined;
afterAll(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
});

/**
 * Bundles the TypeScript file `source`, a path from the repository's root, and resolves with the path of the
 * module, which is removed after the tests of the file. The module cannot resolve the package `missing`.
 */
export async function bundle(source: string, missing?: string): Promise<string> {
  mkdirSync(CACHE, { recursive: true });
  folder ??= mkdtempSync(join(CACHE, 'berth-test-'));
  // Tests find the process host in command lines by the name `workers-host`.
  const name = [source.replace(/\.ts$/, '').replaceAll(/[^\w]+/g, '-'), missing].filter(Boolean).join('-');
  const outfile = join(folder, `${name}.mjs`);
  await build({
    absWorkingDir: ROOT,
    entryPoints: [source],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    packages: 'external',
    alias: missing ? { [missing]: 'no-such-package' } : {},
    define: { BERTH_VERSION: '"test"' },
    logLevel: 'warning',
  });
  return outfile;
}
