import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { MUTANTS } from './mutants.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

it('the text that each mutant replaces occurs exactly once', () => {
  const stale = MUTANTS.filter(
    ({ file, find }) => readFileSync(join(ROOT, file), 'utf8').split(find).length !== 2,
  );
  expect(stale.map(({ id }) => id)).toEqual([]);
});

it('each mutant changes something, has a unique id, and names tests that exist', () => {
  expect(MUTANTS.filter(({ find, replace }) => find === replace)).toEqual([]);
  expect(new Set(MUTANTS.map(({ id }) => id)).size).toBe(MUTANTS.length);
  const missing = MUTANTS.flatMap(({ tests }) => tests).filter((path) => !existsSync(join(ROOT, path)));
  expect(missing).toEqual([]);
});
