// The compiled code of what runs at every start of the daemon, beside the bundles: to parse and compile them
// is a third of the work of a start. V8 looks whether it is its own (version, flags, length of the source)
// and compiles as ever if not.
//
// Functions are in it that have run: a daemon of this build is started, with a state directory of its own,
// and ended.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const COMPILED = ['daemon', 'schemas', 'workers/services', 'workers/host'];
const KEEP = fileURLToPath(new URL('keep_bytecode.cjs', import.meta.url));
const PATIENCE_MS = 10_000;
const LOOK_MS = 10;
const JSON_TYPE = { 'Content-Type': 'application/json' };

/**
 * What stands in the place of a bundle. The hash in the names: never is one build's code run with another's
 * compiled code.
 */
const loader = (name) => `'use strict';
const { readFileSync } = require('node:fs');
const { Script } = require('node:vm');
const filename = \`\${__dirname}/${name}.js\`;
const compiled = () => {
  try {
    return readFileSync(\`\${__dirname}/${name}.bytecode\`);
  } catch {
    return undefined;
  }
};
new Script(readFileSync(filename, 'latin1'), { filename, cachedData: compiled() }).runInThisContext()(
  exports, require, module, filename, __dirname,
);
`;

/** Puts a loader in the place of the bundle `path`. */
function splitOff(path) {
  // As Node itself wraps it; esbuild writes ASCII alone, and bytes are read faster than UTF-8.
  const code = `(function (exports, require, module, __filename, __dirname) {${readFileSync(path, 'latin1')}\n})`;
  const hash = createHash('sha256').update(code).digest('hex').slice(0, 12);
  const name = `${basename(path, '.cjs')}-${hash}`;
  writeFileSync(join(path, '..', `${name}.js`), code, 'latin1');
  writeFileSync(path, loader(name));
}

const KEEPING = ['--require', KEEP];

/** Runs the daemon of `output` until its host is there, twice. `children` are those that were started. */
async function runTwice(output, home, children, signal) {
  const state = join(home, 'state');
  const socket = join(state, 'host/host.sock');
  const env = { PATH: process.env.PATH, HOME: home, BERTH_STATE_DIR: state, BERTH_PORT: '0' };
  const run = (flags, file, argument) => {
    const child = spawn(process.execPath, [...flags, join(output, file), argument], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    return { child, ended: once(child, 'exit') };
  };
  const until = async (isThere) => {
    while (isThere !== existsSync(socket)) await pause(LOOK_MS, null, { signal });
  };
  const runDaemon = async (flags) => {
    const { child, ended } = run(flags, 'bin.cjs', 'daemon');
    const [said] = await Promise.race([once(child.stdout, 'data'), ended]);
    await until(true);
    // A registration of nothing: it is refused, and loads what would check one.
    const [, port] = /:(\d+)\n/.exec(said) ?? [];
    await fetch(`http://127.0.0.1:${port}/v1/services`, { method: 'POST', headers: JSON_TYPE, body: '{}' });
    child.kill('SIGTERM');
    await ended;
    await until(false);
  };
  // As most starts are: the host comes last. It is started by the daemon and does not keep its code.
  await runDaemon(KEEPING);
  const host = run(KEEPING, 'workers/host.cjs', state);
  await until(true);
  await runDaemon([]);
  await host.ended;
}

/**
 * Compiles the daemon of the build in `output`. A machine on which it does not run gets a build that starts
 * slower.
 */
export async function compile(output) {
  for (const name of COMPILED) splitOff(join(output, `${name}.cjs`));
  const home = mkdtempSync(join(tmpdir(), 'berth-build-'));
  const children = [];
  const late = new AbortController();
  try {
    await Promise.race([
      runTwice(output, home, children, late.signal),
      pause(PATIENCE_MS, null, { signal: late.signal }).then(() =>
        Promise.reject(new Error('it does not end')),
      ),
    ]);
  } catch (error) {
    console.error(`berth: built without compiled code, a start takes longer: ${error.message}`);
  } finally {
    late.abort();
    for (const child of children) child.kill('SIGKILL');
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  }
}
