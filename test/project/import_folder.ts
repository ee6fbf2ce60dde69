// A folder of each test for the files of other tools, where docker is not found: it changes what is imported.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, vi } from 'vitest';

/** The folder of the current test. */
export let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-import-'));
  vi.stubEnv('PATH', folder);
  for (const name of ['COMPOSE_FILE', 'COMPOSE_PATH_SEPARATOR', 'COMPOSE_SHELL']) vi.stubEnv(name, undefined);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a file, and returns its path. */
export function put(name: string, text: string): string {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  return path;
}
