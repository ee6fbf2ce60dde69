// The compiled code of what runs at every start of the daemon, beside the bundles: to parse and compile them is a third of the
// work of a start. V8 looks whether it is its own (version, flags, length of the source) and compiles as ever if not.
//
// Functions are in it that have run: a daemon of this build is started once, with a state directory of its own, and ended.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const COMPILED = ['daemon', 'workers/services', 'workers/host'];
const KEEP = fileURLToPath(new URL('keep_bytecode.cjs', import.meta.url));
const PATIENCE_MS = 10_000;
const LOOK_MS = 10;

/** What stands in the place of a bundle. The hash in the names: never is one build's code run with another's compiled code. */
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

/** Runs the daemon of `output` until it listens. `children` are those that were started. */
async function runOnce(output, home, children, signal) {
  const state = join(home, 'state');
  const env = { PATH: process.env.PATH, HOME: home, BERTH_STATE_DIR: state, BERTH_PORT: '0' };
  const run = (file, argument) => {
    const child = spawn(process.execPath, ['--require', KEEP, join(output, file), argument], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    return child;
  };
  // The host first: a daemon would start one that does not keep its code.
  const host = run('workers/host.cjs', state);
  const hostEnded = once(host, 'exit');
  while (!existsSync(join(state, 'host/host.sock'))) await pause(LOOK_MS, null, { signal });
  const daemon = run('bin.cjs', 'daemon');
  const daemonEnded = once(daemon, 'exit');
  await Promise.race([once(daemon.stdout, 'data'), daemonEnded]);
  daemon.kill('SIGTERM');
  await Promise.all([daemonEnded, hostEnded]);
}

/** Compiles the daemon of the build in `output`. A machine on which it does not run gets a build that starts slower. */
export async function compile(output) {
  for (const name of COMPILED) splitOff(join(output, `${name}.cjs`));
  const home = mkdtempSync(join(tmpdir(), 'berth-build-'));
  const children = [];
  const late = new AbortController();
  try {
    await Promise.race([
      runOnce(output, home, children, late.signal),
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
