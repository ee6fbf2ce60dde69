// The compiled code that the build places beside the daemon's bundles (src/build/bytecode.mjs).
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { gzipSync } from 'node:zlib';
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

/** The files below `folder` that contain `text`. */
const filesWith = (folder: string, text: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => readFileSync(path).includes(text));

describe('the build', () => {
  it('names no folder of the machine that made it, not even in compiled code', () => {
    expect(compiledIn(DIST)).not.toEqual([]);
    expect(filesWith(DIST, ROOT)).toEqual([]);
  });

  it('has the licence of every package whose code it contains', () => {
    const licensed = (folder: string): string[] => {
      const text = readFileSync(join(DIST, folder, 'THIRD_PARTY_LICENSES'), 'utf8');
      return [...text.matchAll(/^(\S+) [\d.]+ \(.+\)\n=+$/gm)].map(([, name = '']) => name);
    };
    const names = licensed('.');
    expect(names).toEqual([...new Set(names)].sort());
    expect(names).toEqual(
      expect.arrayContaining([
        '@lydell/node-pty',
        'lmdb',
        'msgpackr',
        'undici',
        'uwebsockets',
        'ws',
        'yaml',
        'zod',
      ]),
    );
    expect(licensed('client-package')).toEqual(['eventsource-parser', 'smol-toml', 'ws']);
  });

  it('contains every package it needs, except the native ones', () => {
    const native = /^(@koromix\/koffi|@lmdb\/lmdb|@lydell\/node-pty)-/;
    const optional = ['@napi-rs/nice', 'bufferutil', 'msgpackr-extract', 'utf-8-validate'];
    const sources = readdirSync(DIST, { recursive: true, encoding: 'utf8' }).filter(
      (name) => /\.c?js$/.test(name) && !/^(bench|chunks)/.test(name),
    );
    const needed = sources.flatMap((name) =>
      [...readFileSync(join(DIST, name), 'latin1').matchAll(/\brequire\(["'`]([^"'`.][^"'`]*)["'`]\)/g)]
        .map(([, needs = '']) => needs)
        .filter(
          (needs) =>
            !needs.startsWith('node:') &&
            !isBuiltin(needs) &&
            !native.test(needs) &&
            !optional.includes(needs),
        )
        .map((needs) => `${name}: ${needs}`),
    );
    expect(needed).toEqual([]);
  });

  it('has packages that are CommonJS by their names, because npm writes no file before another', () => {
    const names = readdirSync(join(DIST, 'packages'));
    expect(names.filter((name) => !name.endsWith('.cjs'))).toEqual([]);
  });
});

it('without its native packages, the build says which are missing', async () => {
  const build = join(newFolder(), 'dist');
  cpSync(DIST, build, { recursive: true });
  const home = newFolder();
  const env = {
    PATH: process.env['PATH'],
    HOME: home,
    BERTH_STATE_DIR: join(home, 'state'),
    BERTH_PORT: '0',
  };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(build, 'bin.cjs'), ...args], { env, encoding: 'utf8' });
  const system = `${process.platform}-${process.arch}`;
  const findings: { state: string; about: string }[] = JSON.parse(run('doctor', '--json').stdout);
  expect(findings.filter(({ state }) => state === 'wrong').map(({ about }) => about)).toEqual(
    ['@koromix/koffi', '@lmdb/lmdb', '@lydell/node-pty'].map(
      (name) => `the package ${name}-${system} is missing`,
    ),
  );
  const { status, stderr } = run('daemon');
  expect(status).toBe(1);
  // Of the newest Node there may be no binary of uWebSockets.js for the libc of this machine.
  expect(stderr.replace(/^berth: uWebSockets\.js does not load here, .*\n/, '')).toBe(
    `berth: @lmdb/lmdb-${system} is missing or does not load: ` +
      'install Berth again on this machine, with its optional packages\n',
  );
});

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
    // A whole build, which has a time limit of its own.
  }, 120_000);

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

  it('is refused when node_modules is a link to other packages', () => {
    const tree = newFolder();
    cpSync(join(ROOT, 'src/build'), join(tree, 'src/build'), { recursive: true });
    const packages = join(tree, 'other');
    mkdirSync(packages);
    writeFileSync(join(packages, 'kept'), '');
    symlinkSync(packages, join(tree, 'node_modules'));
    for (const name of ['package.json', 'package-lock.json']) cpSync(join(ROOT, name), join(tree, name));
    const ran = spawnSync(process.execPath, [join(tree, 'src/build/build.mjs')], { encoding: 'utf8' });
    expect(ran).toMatchObject({
      status: 1,
      stderr:
        'node_modules is a link to packages that differ from package-lock.json: remove it, then build again\n',
    });
    expect(readdirSync(packages)).toEqual(['kept']);
  });
});

it('the dashboard loads at most 250 KiB of compressed script before a terminal is opened', () => {
  const scripts = readdirSync(join(DIST, 'dashboard')).filter(
    (name) => name.endsWith('.js') && name !== 'terminal.js',
  );
  expect(scripts).toContain('page.js');
  const sizes = scripts.map((name) => gzipSync(readFileSync(join(DIST, 'dashboard', name))).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(250 * 1_024);
});
