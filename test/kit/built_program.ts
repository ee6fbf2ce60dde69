// The built program that tests run as users do.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const verified = spawnSync(
  process.execPath,
  [fileURLToPath(new URL('../../src/build/build.mjs', import.meta.url)), '--verify'],
  { encoding: 'utf8' },
);
// A test of an old build says nothing about the sources beside it.
if (verified.status !== 0) throw new Error(verified.stderr.trim());

/** The command `berth`, built from the sources as they are. */
export const BIN = fileURLToPath(new URL('../../dist/bin.cjs', import.meta.url));
