// The compiled code that the build places beside the daemon's bundles (src/build/bytecode.mjs).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newFolder } from '../kit/daemon.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const DIST = join(ROOT, 'dist');

const compiledIn = (folder: string): string[] =>
  ['', 'workers'].flatMap((part) =>
    readdirSync(join(folder, part))
      .filter((name) => name.endsWith('.bytecode'))
      .map((name) => join(folder, part, name)),
  );

const namesOf = (paths: readonly string[]): string[] =>
  paths.map((path) => path.replace(/.*\/(\w+)-[0-9a-f]+\.bytecode$/, '$1')).sort();

/** Starts the daemon of a build; resolves with its exit code after it has listened and was asked to end. */
async function startAndEnd(build: string): Promise<number> {
  const home = newFolder();
  const child = spawn(process.execPath, [join(build, 'bin.cjs'), 'daemon'], {
    env: { PATH: process.env['PATH'], HOME: home, BERTH_STATE_DIR: join(home, 'state'), BERTH_PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stdout, 'data'), ended]);
  child.kill('SIGTERM');
  const [code] = await ended;
  return code;
}

describe('the compiled code of the build', () => {
  it('exists for everything that each start of the daemon runs, and V8 accepts it', async () => {
    // The build under test may come from another Node, with another V8.
    const build = join(ROOT, `dist.${process.pid}`);
    onTestFinished(() => rmSync(build, { recursive: true, force: true }));
    const [code] = await once(
      spawn(process.execPath, ['src/build/build.mjs', '--out', build], { cwd: ROOT, stdio: 'inherit' }),
      'exit',
    );
    expect(code).toBe(0);
    const compiled = compiledIn(build);
    expect(namesOf(compiled)).toEqual(['daemon', 'host', 'schemas', 'services']);
    for (const path of compiled) {
      const code = readFileSync(path.replace(/\.bytecode$/, '.js'), 'latin1');
      const script = new Script(code, { cachedData: readFileSync(path) });
      expect(script.cachedDataRejected, path).toBe(false);
    }
  });

  it('is optional: a daemon starts with damaged compiled code, and without any', async () => {
    const build = join(newFolder(), 'dist');
    cpSync(DIST, build, { recursive: true });
    symlinkSync(join(ROOT, 'node_modules'), join(build, '../node_modules'));
    for (const path of compiledIn(build)) {
      const bytes = readFileSync(path);
      writeFileSync(path, path.includes('host') ? bytes.subarray(0, bytes.length >> 1) : bytes.fill(0x5a));
    }
    expect(await startAndEnd(build)).toBe(0);

    for (const path of compiledIn(build)) writeFileSync(path, '');
    expect(await startAndEnd(build)).toBe(0);
  });
});
