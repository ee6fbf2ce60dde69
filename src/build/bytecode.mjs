// Stores compiled code beside the bundles that every start of the daemon runs: parsing and compiling them
// takes a third of a start. V8 checks that the compiled code matches (version, flags, length of the source),
// and compiles as usual if it does not.
//
// Only functions that have run are included, so this starts and stops a daemon of this build, with its own
// state directory.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const COMPILED = ['daemon', 'schemas', 'workers/services', 'workers/host'];
const KEEP = fileURLToPath(new URL('keep_bytecode.cjs', import.meta.url));
/** A busy machine takes seconds; a daemon that cannot start exits by itself. */
const TIMEOUT_MS = 60_000;
const POLL_MS = 10;
const JSON_TYPE = { 'Content-Type': 'application/json' };

/**
 * The loader that replaces a bundle. The file names contain a hash, so one build's code never runs with
 * another's compiled code. V8 keeps the name of a script in its compiled code, so that name is the path
 * within the build: stack traces show `berth/daemon-<hash>.js` wherever the bundle was built.
 */
const loader = (folder, name) => `'use strict';
const { readFileSync } = require('node:fs');
const { Script } = require('node:vm');
const file = \`\${__dirname}/${name}.js\`;
const compiled = () => {
  try {
    return readFileSync(\`\${__dirname}/${name}.bytecode\`);
  } catch {
    return undefined;
  }
};
const options = { filename: 'berth/${join(folder, name)}.js', cachedData: compiled() };
new Script(readFileSync(file, 'latin1'), options).runInThisContext()(exports, require, module, file, __dirname);
`;

/** esbuild escapes characters in strings only. Others would be read as different ones, but for comments. */
function checkIsAscii(source, bundle) {
  const isWrong = (line) => /[\x80-\xff]/.test(line) && !/^\s*(\/\/|\/?\*)/.test(line);
  const wrong = source.split('\n').find(isWrong);
  if (wrong) throw new Error(`${bundle}: escape the characters that are not ASCII in: ${wrong.trim()}`);
}

/** Replaces the bundle `bundle` of the build in `output` with a loader. */
function splitOff(output, bundle) {
  const path = join(output, `${bundle}.cjs`);
  // The same wrapper as Node's. latin1 is faster to read than UTF-8.
  const source = readFileSync(path, 'latin1');
  checkIsAscii(source, bundle);
  const code = `(function (exports, require, module, __filename, __dirname) {${source}\n})`;
  const hash = createHash('sha256').update(code).digest('hex').slice(0, 12);
  const name = `${basename(bundle)}-${hash}`;
  writeFileSync(join(path, '..', `${name}.js`), code, 'latin1');
  writeFileSync(path, loader(dirname(bundle), name));
}

const KEEPING = ['--require', KEEP];

/**
 * Runs the daemon of `output` twice, each time until its host is up. Adds the started processes to
 * `children`.
 */
async function runTwice(output, home, children, signal) {
  const state = join(home, 'state');
  const socket = join(state, 'host/host.sock');
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    BERTH_STATE_DIR: state,
    BERTH_PORT: '0',
    BERTH_KEEP_BYTECODE_IN: output,
  };
  const run = (flags, file, argument) => {
    const child = spawn(process.execPath, [...flags, join(output, file), argument], {
      env,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.push(child);
    return { child, ended: once(child, 'exit') };
  };
  const until = async (isThere) => {
    while (isThere !== existsSync(socket)) await pause(POLL_MS, null, { signal });
  };
  const runDaemon = async (flags) => {
    const { child, ended } = run(flags, 'bin.cjs', 'daemon');
    const died = ended.then(([code]) => Promise.reject(new Error(`it ends with ${code}`)));
    const [said] = await Promise.race([once(child.stdout, 'data'), died]);
    await until(true);
    // The daemon refuses an empty registration, but loads the code that validates registrations.
    const [, port] = /:(\d+)\n/.exec(said) ?? [];
    await fetch(`http://127.0.0.1:${port}/v1/services`, { method: 'POST', headers: JSON_TYPE, body: '{}' });
    child.kill('SIGTERM');
    await ended;
    await until(false);
  };
  // As in most starts, the host comes last. A host started by the daemon does not store its code.
  await runDaemon(KEEPING);
  const host = run(KEEPING, 'workers/host.cjs', state);
  await until(true);
  await runDaemon([]);
  await host.ended;
}

/**
 * Compiles the daemon of the build in `output`. If this machine cannot run the daemon, the build works but
 * starts slower.
 */
export async function compile(output) {
  for (const name of COMPILED) splitOff(output, name);
  const home = mkdtempSync(join(tmpdir(), 'berth-build-'));
  const children = [];
  const late = new AbortController();
  try {
    await Promise.race([
      runTwice(output, home, children, late.signal),
      pause(TIMEOUT_MS, null, { signal: late.signal }).then(() =>
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
