// The package as npm installs it: what is in it, what it weighs, and that it works from there. Packing and
// installing takes half a minute, so only .ci/run runs this file.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const MAX_MB = 90;
const MAX_PACKAGES = 30;
/** What npm says where there is no way to the registry. */
const NO_REGISTRY = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|network/;

interface Packed {
  /** The tarball. */
  path: string;
  files: string[];
}

function npm(cwd: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('npm', args, { cwd, encoding: 'utf8' });
  if (status !== 0) throw new Error(`npm ${args.join(' ')}: ${stderr}`);
  return stdout;
}

/** A clone of what is committed, in a folder of its own. */
function cloneTree(): string {
  const folder = join(tarballs, 'clone');
  const { status, stderr } = spawnSync('git', ['clone', '--quiet', ROOT, folder], { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return folder;
}

function pack(folder: string, into: string): Packed {
  const said = npm(folder, 'pack', '--silent', '--json', '--pack-destination', into);
  const [{ filename, files }] = JSON.parse(said.slice(said.indexOf('[\n')));
  return { path: join(into, filename), files: files.map((file: { path: string }) => file.path) };
}

const QUIET = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--silent'];

let prefix: string;
let tarballs: string;
let program: Packed;
let hasRegistry = true;

beforeAll(() => {
  tarballs = mkdtempSync(join(tmpdir(), 'berth-tarballs-'));
  prefix = mkdtempSync(join(tmpdir(), 'berth-prefix-'));
  program = pack(ROOT, tarballs);
  try {
    npm(tarballs, 'install', '--global', '--prefix', prefix, ...QUIET, program.path);
  } catch (error) {
    if (!NO_REGISTRY.test(String(error))) throw error;
    hasRegistry = false;
  }
}, 300_000);
afterAll(() => {
  for (const folder of [tarballs, prefix]) rmSync(folder, { recursive: true, force: true });
});

const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));

describe('the package', () => {
  it('holds what a user needs, and nothing of the tests and benches', () => {
    const names = program.files;
    for (const file of [
      'dist/bin.cjs',
      'dist/berth.1',
      'dist/berth.schema.json',
      'dist/THIRD_PARTY_LICENSES',
    ])
      expect(names).toContain(file);
    expect(names).toContain('dist/client-package/index.d.ts');
    expect(names.filter((name) => /bench|^dist\/chunks|^src\/|^test\//.test(name))).toEqual([]);
  });

  it('installs without scripts, in few packages, and names no folder of its builder', (context) => {
    if (!hasRegistry) context.skip('npm does not reach the registry');
    const files = filesIn(prefix);
    const bytes = files.reduce((sum, path) => sum + statSync(path).size, 0);
    const packages = files.filter((path) => /node_modules\/(@[^/]+\/)?[^@/]+\/package\.json$/.test(path));
    console.info(`${packages.length} packages, ${Math.round(bytes / 1e6)} MB`);
    expect(bytes / 1e6).toBeLessThan(MAX_MB);
    expect(packages.length).toBeLessThanOrEqual(MAX_PACKAGES);
    const scripts = packages.filter((path) => {
      const { scripts: own = {} } = JSON.parse(readFileSync(path, 'utf8'));
      return own.install ?? own.preinstall ?? own.postinstall;
    });
    expect(scripts).toEqual([]);
    expect(files.filter((path) => readFileSync(path).includes(ROOT))).toEqual([]);
  });

  it('runs a service and an agent', async (context) => {
    if (!hasRegistry) context.skip('npm does not reach the registry');
    const daemon = await startDaemon({ bin: join(prefix, 'lib/node_modules/@berth-dev/berth/dist/bin.cjs') });
    expect((await daemon.request('GET', '/readyz')).status).toBe(200);
    await daemon.request('POST', '/v1/services', { name: 'web', port: 0, cmd: 'exec sleep 600' });
    const started = await daemon.request('POST', '/v1/services/web/start');
    expect(started.body).toMatchObject({ name: 'web', status: 'running' });
    const agent = { name: 'bot', cmd: 'test -t 1 && echo in a terminal; exec sleep 600' };
    expect((await daemon.request('POST', '/v1/agents/spinup', agent)).status).toBe(201);
    await eventually(async () => {
      const { body } = await daemon.request('GET', '/v1/agents/bot/logs');
      return body.lines.includes('in a terminal');
    });
    await stopDaemon(daemon);
  });
});

describe("the client's package", () => {
  it('is installed alone, and finds the daemon', async () => {
    const project = newFolder();
    writeFileSync(join(project, 'package.json'), '{"type":"module"}');
    mkdirSync(join(project, 'node_modules'));
    const { path } = pack(join(ROOT, 'dist/client-package'), tarballs);
    npm(project, 'install', '--offline', ...QUIET, path);
    expect(readdirSync(join(project, 'node_modules/@berth-dev'))).toEqual(['client']);
    const daemon = await startDaemon();
    const script = `import { connectLocal } from '@berth-dev/client';
const berth = await connectLocal({ url: 'http://127.0.0.1:${daemon.port}', env: {} });
console.log((await berth.version()).pid);`;
    const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      cwd: project,
      encoding: 'utf8',
    });
    expect(Number(stdout)).toBe(daemon.pid);
    await stopDaemon(daemon);
  });
});

describe('a clean clone', () => {
  it('installs from its lock file and passes its checks', (context) => {
    if (!hasRegistry) context.skip('npm does not reach the registry');
    const clone = cloneTree();
    npm(clone, 'ci', '--prefer-offline', '--no-audit', '--no-fund', '--silent');
    npm(clone, 'run', 'check', '--silent');
    expect(spawnSync('git', ['status', '--porcelain'], { cwd: clone, encoding: 'utf8' }).stdout).toBe('');
  }, 600_000);
});
