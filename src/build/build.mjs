// Installs and builds when something is newer than what is there, and does nothing otherwise. Plain
// JavaScript and node built-ins only, because it runs before anything is installed.
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
  // The build's own messages go to stderr: the daemon's stdout belongs to its one line.
  const done = spawnSync(command, args, { cwd: root, stdio: ['ignore', 2, 2] });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

const lock = join(root, 'package-lock.json');
// Not `npm ci`: it refuses a lock file in which the binaries of other platforms are missing, as they are
// where a mirror of the registry does not carry them. What the lock file has is installed exactly either way.
if (mtime(join(root, 'node_modules', '.package-lock.json')) < mtime(lock))
  run('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error']);

const sources = ['src', 'workers', 'bench'].map((name) => join(root, name)).filter(existsSync);
const changed = Math.max(mtime(join(root, 'package.json')), ...sources.map(newest));
if (process.argv.includes('--force') || changed > mtime(stamp)) {
  const began = new Date();
  const { build } = await import('esbuild');
  const { bundles } = await import('./bundles.mjs');
  const { compile } = await import('./bytecode.mjs');
  // Built beside and put in place at once: whoever starts meanwhile finds the old build or the new one, never
  // half of it.
  const fresh = `${output}.${process.pid}`;
  for (const bundle of bundles(root, fresh)) await build(bundle);
  await compile(fresh);
  writeFileSync(join(fresh, '.built'), '');
  // A source that changed while this ran is newer than the build.
  utimesSync(join(fresh, '.built'), began, began);
  const old = `${output}.old-${process.pid}`;
  if (existsSync(output)) renameSync(output, old);
  renameSync(fresh, output);
  rmSync(old, { recursive: true, force: true });
}
