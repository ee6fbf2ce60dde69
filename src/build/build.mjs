// Installs and builds when something is newer than the last build, and does nothing otherwise. With --verify it
// only fails when there is something to build. Uses plain JavaScript and built-in modules only, because it runs
// before anything is installed.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const outputAt = process.argv.indexOf('--out');
const output = outputAt > 0 ? resolve(process.argv[outputAt + 1] ?? 'dist') : join(root, 'dist');
const stamp = join(output, '.built');

const mtime = (path) => (existsSync(path) ? statSync(path).mtimeMs : 0);

function newest(folder) {
  let latest = mtime(folder);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    latest = Math.max(latest, entry.isDirectory() ? newest(path) : mtime(path));
  }
  return latest;
}

function run(command, args) {
  // The build's own messages go to stderr: the daemon's stdout is reserved for its one line.
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

const sources = ['src', 'workers', 'bench'].map((name) => join(root, name)).filter(existsSync);
const changed = Math.max(mtime(join(root, 'package.json')), ...sources.map(newest));
const isStale = changed > mtime(stamp);
if (process.argv.includes('--verify')) {
  if (isStale)
    console.error(`${output} is older than its sources: build it with \`node src/build/build.mjs\``);
  process.exit(isStale ? 1 : 0);
}

const lock = join(root, 'package-lock.json');
// Not `npm ci`: it refuses a lock file without the binaries of other platforms, which some mirrors of the
// registry do not carry. Either way exactly the locked versions are installed.
if (mtime(join(root, 'node_modules', '.package-lock.json')) < mtime(lock))
  run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']);

if (process.argv.includes('--force') || isStale) {
  const began = new Date();
  const { build } = await import('esbuild');
  const { bundles } = await import('./bundles.mjs');
  const { compile } = await import('./bytecode.mjs');
  // Built in a separate folder and then renamed: a concurrent start finds the old build or the new one, never
  // a partial one.
  const fresh = `${output}.${process.pid}`;
  for (const bundle of bundles(root, fresh)) await build(bundle);
  await compile(fresh);
  writeFileSync(join(fresh, '.built'), '');
  // A source that changed during the build is newer than the build.
  utimesSync(join(fresh, '.built'), began, began);
  const old = `${output}.old-${process.pid}`;
  if (existsSync(output)) renameSync(output, old);
  renameSync(fresh, output);
  rmSync(old, { recursive: true, force: true });
}
