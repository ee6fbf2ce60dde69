// docs/reference.md "Cloud server", by the built program.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import {
  type Daemon,
  type DaemonOptions,
  hostPid,
  newFolder,
  startDaemon,
  stopDaemon,
} from '../kit/daemon.ts';
import { type Answer, send } from '../kit/http_request.ts';
import { canBecomeOthers, OTHER_UID, OTHER_USER } from '../kit/other_user.ts';

const KUBECONFIG = `apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: "t"}}]
`;
const CONFIG = '[cloud]\ntoken = "cloud"\nport = 0\nrelay_port = -1\n';

const startServer = (options: DaemonOptions = {}): Promise<Daemon> =>
  startDaemon({ config: CONFIG, ...options, command: ['cloud', 'serve'] });

const ask = (server: Daemon, method: string, path: string, body?: unknown): Promise<Answer> =>
  server.request(method, path, body, { Authorization: 'Bearer cloud' });

/** A start that is refused: its exit code, and what it says. */
function refusedStart(
  words: readonly string[],
  args: readonly string[],
): { code: number | null; said: string } {
  const { status, stderr } = spawnSync(process.execPath, [BIN, ...words, ...args], { encoding: 'utf8' });
  return { code: status, said: stderr };
}

describe('a cloud server', () => {
  it('serves the cloud part, its health, metrics and API document, and nothing of this machine', async () => {
    const server = await startServer();
    expect((await server.request('GET', '/readyz')).status).toBe(200);
    expect((await server.request('GET', '/livez')).status).toBe(200);
    for (const path of ['/k8s/clusters', '/metrics'])
      expect([path, (await server.request('GET', path)).status]).toEqual([path, 401]);
    const headers = { Authorization: 'Bearer cloud' };
    for (const path of ['/v1/services', '/v1/version', '/', '/mcp'])
      expect([path, (await send(server.port, 'GET', path, { headers })).status]).toEqual([path, 404]);
    expect((await ask(server, 'GET', '/k8s/clusters')).body).toEqual([]);
    const { body: document } = await server.request('GET', '/openapi.json');
    const paths = Object.keys(document.paths);
    expect(paths.filter((path) => path.startsWith('/v1'))).toEqual([]);
    expect(paths).toEqual(expect.arrayContaining(['/k8s/workloads', '/livez', '/readyz', '/metrics']));
    const metrics = await ask(server, 'GET', '/metrics');
    expect([metrics.status, metrics.text]).toEqual([200, expect.stringContaining('berth_thread_up')]);
    expect(() => hostPid(server.stateDir)).toThrow('no process host');
    expect(readdirSync(server.stateDir).filter((name) => /agent|env|host|runs|logs/.test(name))).toEqual([]);
    server.signal('SIGTERM');
    expect(await server.exited).toEqual({ code: 0, signal: null });
  });

  it('keeps its clusters after a kill, and locks its state directory', async () => {
    const first = await startServer();
    const added = await ask(first, 'POST', '/k8s/clusters', { name: 'c', kubeconfig: KUBECONFIG });
    expect(added.status).toBe(201);
    const args = ['--state-dir', first.stateDir, '--config', first.configFile];
    for (const words of [['cloud', 'serve'], ['daemon']])
      expect(refusedStart(words, args)).toEqual({
        code: 1,
        said: `berth: a daemon runs already (pid ${first.pid}) with ${first.stateDir}\n`,
      });
    first.signal('SIGKILL');
    await first.exited;
    const second = await startServer({ stateDir: first.stateDir });
    expect((await ask(second, 'GET', '/k8s/clusters')).body).toMatchObject([
      { id: added.body.id, name: 'c' },
    ]);
  });

  it('is not ready with another key than that of its clusters, and reports it', async () => {
    const first = await startServer();
    await ask(first, 'POST', '/k8s/clusters', { name: 'c', kubeconfig: KUBECONFIG });
    await stopDaemon(first);
    writeFileSync(join(first.stateDir, 'cloud.key'), Buffer.alloc(32, 'x'));
    const second = await startServer({ stateDir: first.stateDir });
    const { status, body } = await second.request('GET', '/readyz');
    expect([status, body.message]).toEqual([503, expect.stringContaining('the cloud part is closed')]);
    expect((await ask(second, 'GET', '/k8s/clusters')).body.code).toBe('key_unusable');
  });

  it('refuses what only a daemon can use', () => {
    const config = join(newFolder(), 'config.toml');
    writeFileSync(config, '[cloud]\nremote = "http://127.0.0.1:1"\nremote_token = "t"\n');
    const named = ['--config', config, '--state-dir', join(newFolder(), 'state')];
    expect(refusedStart(['cloud', 'serve'], named)).toEqual({
      code: 2,
      said: 'berth: cloud.remote is for `berth daemon`: a cloud server has clusters of its own\n',
    });
    expect(refusedStart(['cloud', 'serve'], ['--verbose'])).toMatchObject({ code: 2 });
  });

  it('ends with one line when something else is in the place of a file', () => {
    const state = join(newFolder(), 'state');
    mkdirSync(state, { mode: 0o700 });
    const store = join(state, 'store.mdb');
    execFileSync('mkfifo', [store]);
    const config = join(newFolder(), 'config.toml');
    writeFileSync(config, CONFIG);
    expect(refusedStart(['cloud', 'serve'], ['--config', config, '--state-dir', state])).toEqual({
      code: 1,
      said: `berth: ${store}: is a FIFO, and not a file: remove it\n`,
    });
  });

  it('opens no ports of its own', async () => {
    const server = await startServer();
    const path = '/k8s/workloads/01ARZ3NDEKTSV4RRFFQ69G5FAV/tether';
    const { status, body } = await ask(server, 'POST', path, { container_port: 80 });
    expect([status, body.code]).toEqual([409, 'tether_elsewhere']);
  });
});

describe.runIf(canBecomeOthers)('volumes as Kubernetes mounts them', () => {
  const mounted: string[] = [];
  afterEach(() => {
    for (const path of mounted.splice(0)) execFileSync('umount', ['-l', path]);
  });

  /** A volume of root's that everybody may write to. */
  function volume(): string {
    // Where another user may look.
    const path = join(newFolder(), 'volume');
    mkdirSync(path);
    chmodSync(join(path, '..'), 0o755);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64m,mode=777', 'tmpfs', path]);
    mounted.push(path);
    return path;
  }

  /** A Secret: links to a file that its group may read. */
  function secret(bytes: Buffer, mode: number): string {
    const folder = join(newFolder(), 'secret');
    mkdirSync(join(folder, '..2026'), { recursive: true, mode: 0o755 });
    chmodSync(join(folder, '..'), 0o755);
    const file = join(folder, '..2026', 'key');
    writeFileSync(file, bytes);
    chownSync(file, 0, OTHER_UID);
    chmodSync(file, mode);
    symlinkSync('..2026', join(folder, '..data'));
    symlinkSync('..data/key', join(folder, 'key'));
    return join(folder, 'key');
  }

  /** What a server of another user prints until it serves or ends. */
  async function serve(state: string, key: string): Promise<{ stdout: string; stderr: string }> {
    const env = { PATH: process.env['PATH'] ?? '', BERTH_CONFIG: configFile(), BERTH_CLOUD_KEY_FILE: key };
    const as = { uid: OTHER_UID, gid: OTHER_UID, cwd: tmpdir(), env };
    const child = spawn(process.execPath, [BIN, 'cloud', 'serve', '--state-dir', state], as);
    const said = { stdout: '', stderr: '' };
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said.stderr += text;
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said.stdout += text;
      child.kill('SIGTERM');
    });
    await once(child, 'close');
    return said;
  }
  function configFile(): string {
    const path = join(newFolder(), 'config.toml');
    chmodSync(join(path, '..'), 0o755);
    writeFileSync(path, CONFIG);
    return path;
  }

  it(`are used by a server (skipped unless root, as ${OTHER_USER})`, async () => {
    const key = secret(Buffer.alloc(32, 'k'), 0o440);
    const { stdout, stderr } = await serve(join(volume(), 'state'), key);
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^berth: listening on /), '']);
  });

  it('work for a user without a name, as in container images', () => {
    const nameless = 54_321;
    const { stderr } = spawnSync(process.execPath, [BIN, 'cloud', 'migrate'], {
      ...{ uid: nameless, gid: nameless, cwd: '/', encoding: 'utf8' },
      env: { PATH: process.env['PATH'] ?? '', HOME: '/' },
    });
    expect(stderr).toContain('cloud.database_url is not set');
  });

  it('are refused if everybody may read the secret', async () => {
    const key = secret(Buffer.alloc(32, 'k'), 0o444);
    const { stderr } = await serve(join(volume(), 'state'), key);
    expect(stderr).toContain(
      `the cloud part is closed: ${key}: others can read it: mount it with the mode 0440`,
    );
  });
});
