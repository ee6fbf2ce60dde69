// Compiles the other files of this folder. Each line that must not compile is marked; a mark on a line that
// compiles is an error too.
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const here = dirname(fileURLToPath(import.meta.url));
const tsc = join(here, '../../node_modules/typescript/bin/tsc');

it('code that must compile does, and code that must not does not', async () => {
  const compiled = promisify(execFile)(process.execPath, [tsc, '--noEmit', '-p', here], { cwd: here });
  const output = await compiled.then(
    ({ stdout }) => stdout,
    (error: { stdout: string }) => error.stdout,
  );
  expect(output).toBe('');
});
