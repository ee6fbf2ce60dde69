// Installs packages and builds if a source is newer than the last build, and does nothing otherwise. With
// --verify, it builds nothing, and fails if the build is out of date. Uses plain JavaScript and built-in
// modules only, because it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isLinked, needsInstall } from './install.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const outputAt = process.argv.indexOf('--out');
const output = outputAt > 0 ? resolve(process.argv[outputAt + 1] ?? 'dist') : join(root, 'dist');
const isPackage = process.argv.includes('--package');
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

if (needsInstall(root)) {
  if (isLinked(root)) {
    console.error(
      'node_modules is a link to packages that differ from package-lock.json: remove it, then build again',
    );
    process.exit(1);
  }
  run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** The output of the hidden command `name` of the program in `output`. */
function said(output, name) {
  const { status, stdout } = spawnSync(process.execPath, [join(output, 'bin.cjs'), name], {
    stdio: ['ignore', 'pipe', 2],
  });
  if (status !== 0) process.exit(1);
  return stdout;
}

/** Writes everything into the folder `fresh`. */
async function buildInto(fresh) {
  const { build } = await import('esbuild');
  const { bundles } = await import('./bundles.mjs');
  const { compile } = await import('./bytecode.mjs');
  const { writeClientPackage } = await import('./client_package.mjs');
  const { thirdPartyLicences } = await import('./licences.mjs');
  const { copyBinaries } = await import('./uws_binaries.mjs');
  const groups = bundles(root, fresh);
  const inputs = { program: [], client: [], benches: [] };
  for (const [group, list] of Object.entries(groups))
    for (const bundle of list) inputs[group].push(...Object.keys((await build(bundle)).metafile.inputs));
  writeClientPackage(root, fresh, thirdPartyLicences(root, inputs.client));
  copyBinaries(root, fresh);
  cpSync(join(root, 'src/agent-rules'), join(fresh, 'agent-rules'), { recursive: true });
  // The binaries come from a package that no bundle imports.
  const contained = [...inputs.program, ...inputs.client, 'node_modules/uWebSockets.js'];
  writeFileSync(join(fresh, 'THIRD_PARTY_LICENSES'), thirdPartyLicences(root, contained));
  writeFileSync(join(fresh, 'berth.1'), said(fresh, '__man'));
  writeFileSync(join(fresh, 'berth.schema.json'), said(fresh, '__schema'));
  await compile(fresh);
  // Only a package needs the types, and writing them takes longer than the rest of the build.
  if (isPackage) (await import('./client_types.mjs')).writeClientTypes(root, fresh);
}

if (process.argv.includes('--force') || isPackage || isStale) {
  const began = new Date();
  // Built in a separate folder and then renamed: a concurrent start finds the old build or the new one, never
  // a partial one.
  const fresh = `${output}.${process.pid}`;
  await buildInto(fresh);
  writeFileSync(join(fresh, '.built'), '');
  // The stamp has the time of the build's start, so a source that changed during the build is newer than it.
  utimesSync(join(fresh, '.built'), began, began);
  const old = `${output}.old-${process.pid}`;
  if (existsSync(output)) renameSync(output, old);
  renameSync(fresh, output);
  rmSync(old, { recursive: true, force: true });
}
