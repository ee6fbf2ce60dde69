// docs/reference.md "Watch": the whole way, from real files over a real daemon to real processes.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Daemon, eventually, hostPid, newFolder, startDaemon } from '../kit/daemon.ts';

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@localhost', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });

function put(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

const read = async (daemon: Daemon, name = 'web') =>
  (await daemon.request('GET', `/v1/services/${name}`)).body;

/** A service that watches `cwd`, running, once all of it is watched. */
async function watching(daemon: Daemon, cwd: string, more: object = {}): Promise<number> {
  const watch = { paths: ['**'], ...more };
  const spec = { name: 'web', port: null, cmd: 'exec sleep 1000', cwd, watch };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  const { body } = await daemon.request('POST', '/v1/services/web/start');
  await watched(daemon);
  return body.pid;
}

const watched = (daemon: Daemon): Promise<number> =>
  eventually(async () => (await daemon.request('GET', '/v1/services/web/explain')).body.watching?.folders);

const changes = async (daemon: Daemon): Promise<string[][]> =>
  (await daemon.request('GET', '/v1/events/history?types=service.changed')).body.events.map(
    ({ data }: { data: { paths: string[] } }) => data.paths,
  );

describe('files that a service watches', () => {
  it('restart it once for a checkout of 2,000 of them, and never for what git ignores', async () => {
    const root = newFolder();
    git(root, 'init', '-q', '-b', 'main');
    put(root, '.gitignore', 'out/\n');
    const fill = (text: string): void => {
      for (let index = 0; index < 2_000; index += 1) put(root, `d${index % 40}/f${index}.ts`, text);
    };
    fill('one');
    git(root, 'add', '-A');
    git(root, 'commit', '-qm', 'one');
    git(root, 'checkout', '-qb', 'other');
    fill('two');
    git(root, 'commit', '-qam', 'two');
    put(root, 'node_modules/a/index.js', '');
    put(root, 'out/x.js', '');
    const daemon = await startDaemon();
    const first = await watching(daemon, root);
    // The root and its 40 folders.
    expect(await watched(daemon)).toBe(41);
    put(root, 'node_modules/a/index.js', 'changed');
    put(root, 'out/x.js', 'changed');
    git(root, 'checkout', '-q', 'main');
    const second = await eventually(async () => {
      const { pid, status } = await read(daemon);
      return status === 'running' && pid !== first ? pid : undefined;
    });
    // A file written now is told after everything before it.
    put(root, 'last.ts', '');
    await eventually(async () => (await changes(daemon)).some((paths) => paths.includes('last.ts')));
    const all = await changes(daemon);
    expect(all.map((paths) => paths.length)).toEqual([5, 1]);
    expect(all.flat().filter((path) => /^(node_modules|out|\.git)\//.test(path))).toEqual([]);
    expect(second).not.toBe(first);
    expect((await read(daemon)).restarts).toBe(0);
  });

  it('restart it when they changed while no daemon was running', async () => {
    const root = newFolder();
    put(root, 'a.ts', '');
    const first = await startDaemon();
    const pid = await watching(first, root);
    first.signal('SIGKILL');
    await first.exited;
    const second = await startDaemon({ stateDir: first.stateDir });
    // Nothing has changed: it is adopted.
    expect(await read(second)).toMatchObject({ status: 'running', pid });
    await watched(second);
    expect((await read(second)).pid).toBe(pid);
    second.signal('SIGKILL');
    await second.exited;
    put(root, 'a.ts', 'while nobody looked');
    const third = await startDaemon({ stateDir: first.stateDir });
    await eventually(async () => {
      const now = await read(third);
      return now.status === 'running' && now.pid !== pid;
    });
    expect(await changes(third)).toEqual([['a.ts']]);
  });

  it.each(['host', 'daemon'])(
    'restart all that depend on it, also when the %s is killed meanwhile',
    async (killed) => {
      const root = newFolder();
      const stateDir = newFolder();
      const daemon = await startDaemon({ stateDir });
      const go = join(root, 'go');
      const slow = `trap 'while ! test -e ${go}; do sleep 0.05; done; exit 0' TERM; while :; do sleep 0.1; done`;
      const before = new Map([['web', await watching(daemon, root, { paths: ['*.ts'], cascade: true })]]);
      for (const [name, dependsOn, cmd] of [
        ['api', 'web', slow],
        ['ui', 'api', 'exec sleep 1000'],
      ] as const) {
        const spec = { name, port: null, cmd, dependsOn: [dependsOn] };
        expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
        before.set(name, (await daemon.request('POST', `/v1/services/${name}/start`)).body.pid);
      }
      put(root, 'a.ts', 'changed');
      await eventually(async () => (await read(daemon, 'api')).status === 'stopping');
      let last = daemon;
      if (killed === 'host') process.kill(hostPid(stateDir), 'SIGKILL');
      else {
        daemon.signal('SIGKILL');
        await daemon.exited;
        last = await startDaemon({ stateDir });
      }
      writeFileSync(go, '');
      const seen: Record<string, unknown> = {};
      await eventually(
        async () => {
          for (const name of before.keys()) seen[name] = await read(last, name);
          return [...before].every(([name, pid]) => {
            const now = seen[name] as { status: string; pid: number };
            return now.status === 'running' && now.pid !== pid;
          });
        },
        () => seen,
      );
    },
  );

  it('restart all that depend on it when the daemon is killed while it starts', async () => {
    const root = newFolder();
    const stateDir = newFolder();
    const daemon = await startDaemon({ stateDir });
    const go = join(root, 'go');
    writeFileSync(go, '');
    const cmd = `echo begun; while ! test -e ${go}; do sleep 0.05; done; echo up; exec sleep 1000`;
    const watch = { paths: ['*.ts'], debounceMs: 50, cascade: true };
    const spec = { name: 'web', port: null, cmd, cwd: root, ready: { log: '^up' }, watch };
    expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
    const { pid } = (await daemon.request('POST', '/v1/services/web/start')).body;
    await watched(daemon);
    const before = new Map<string, number>();
    for (const [name, dependsOn] of [
      ['api', 'web'],
      ['ui', 'api'],
    ] as const) {
      const dependent = { name, port: null, cmd: 'exec sleep 1000', dependsOn: [dependsOn] };
      expect((await daemon.request('POST', '/v1/services', dependent)).status).toBe(201);
      before.set(name, (await daemon.request('POST', `/v1/services/${name}/start`)).body.pid);
    }
    rmSync(go);
    put(root, 'a.ts', 'changed');
    await eventually(async () => {
      const now = await read(daemon);
      return now.status === 'starting' && now.pid !== pid;
    });
    daemon.signal('SIGKILL');
    await daemon.exited;
    const next = await startDaemon({ stateDir });
    for (const [name, known] of before) expect((await read(next, name)).pid).toBe(known);
    writeFileSync(go, '');
    await eventually(async () => {
      const all = await Promise.all(
        [...before].map(async ([name, known]) => [await read(next, name), known]),
      );
      return all.every(([now, known]) => now.status === 'running' && now.pid !== known);
    });
    // They are restarted once, and not by a further daemon.
    const after = new Map(
      await Promise.all(
        [...before.keys()].map(async (name) => [name, (await read(next, name)).pid] as const),
      ),
    );
    next.signal('SIGKILL');
    await next.exited;
    const last = await startDaemon({ stateDir });
    await watched(last);
    for (const [name, known] of after) expect((await read(last, name)).pid).toBe(known);
  });

  it('restart it while it starts, and whoever waits for the start gets its result', async () => {
    const root = newFolder();
    const daemon = await startDaemon();
    const go = join(root, 'go');
    const cmd = `while ! test -e ${go}; do sleep 0.05; done; echo up; exec sleep 1000`;
    const watch = { paths: ['*.ts'], debounceMs: 50 };
    const web = { name: 'web', port: null, cmd, cwd: root, ready: { log: '^up' }, watch, group: 'site' };
    const api = { name: 'api', port: null, cmd: 'exec sleep 1000', dependsOn: ['web'], group: 'site' };
    for (const spec of [web, api])
      expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
    const starts = ['services/web', 'groups/site'].map((one) => daemon.request('POST', `/v1/${one}/start`));
    await watched(daemon);
    const { pid } = await read(daemon);
    put(root, 'a.ts', 'changed');
    await eventually(async () => {
      const now = await read(daemon);
      return now.status === 'starting' && now.pid && now.pid !== pid;
    });
    writeFileSync(go, '');
    const [alone, group] = await Promise.all(starts);
    expect(alone).toMatchObject({ status: 200, body: { status: 'running', pid: (await read(daemon)).pid } });
    expect(group?.status).toBe(200);
    expect((await read(daemon, 'api')).status).toBe('running');
  });

  it('leave a task alone that depends on it, and restart the rest', async () => {
    const root = newFolder();
    const daemon = await startDaemon();
    await watching(daemon, root, { cascade: true });
    const task = { name: 'job', kind: 'task', port: null, cmd: 'exec sleep 1000', dependsOn: ['web'] };
    const api = { name: 'api', port: null, cmd: 'exec sleep 1000', dependsOn: ['job'] };
    for (const spec of [task, api]) {
      expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
      await daemon.request('POST', `/v1/services/${spec.name}/start?wait=false`);
    }
    const pids = async () => [(await read(daemon, 'job')).pid, (await read(daemon, 'api')).pid];
    await eventually(async () => (await pids()).every(Boolean));
    const [job, before] = await pids();
    put(root, 'a.ts', 'changed');
    // It is restarted after what it depends on.
    await eventually(async () => {
      const now = await read(daemon, 'api');
      return now.status === 'running' && now.pid !== before;
    });
    expect(await read(daemon, 'job')).toMatchObject({ status: 'running', pid: job });
  });

  it.each([
    ['has crashed', 'exit 1'],
    ['has ended by itself', 'exit 0'],
  ])('start it under the next daemon when it %s', async (_, end) => {
    const root = newFolder();
    const stateDir = newFolder();
    const daemon = await startDaemon({ stateDir });
    const cmd = `test -e ok || ${end}; exec sleep 1000`;
    const watch = { paths: ['*'], debounceMs: 50 };
    const status = async (from: Daemon): Promise<string> =>
      (await from.request('GET', '/v1/services')).body.services[0].status;
    const spec = { name: 'web', port: null, cmd, cwd: root, watch, restart: 'no' };
    expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
    await daemon.request('POST', '/v1/services/web/start');
    await eventually(async () => ['crashed', 'stopped'].includes(await status(daemon)));
    daemon.signal('SIGKILL');
    await daemon.exited;
    put(root, 'ok', 'while nobody looked');
    const next = await startDaemon({ stateDir });
    await eventually(async () => (await status(next)) === 'running');
    // Nobody has asked for the service itself. One that was stopped stays so.
    await next.request('POST', '/v1/services/web/stop');
    next.signal('SIGKILL');
    await next.exited;
    put(root, 'ok', 'again');
    const last = await startDaemon({ stateDir });
    expect((await last.request('GET', '/v1/services/web/explain')).body.watching).toBeNull();
    expect(await status(last)).toBe('stopped');
  });

  it('send it a signal if that is configured', async () => {
    const root = newFolder();
    put(root, 'app.conf', '');
    const daemon = await startDaemon();
    const cmd = `trap 'echo reload >> ${join(root, 'out.log')}' HUP; while :; do sleep 0.05; done`;
    const watch = { paths: ['*.conf'], action: 'SIGHUP', debounceMs: 50 };
    await daemon.request('POST', '/v1/services', { name: 'web', port: null, cmd, cwd: root, watch });
    const { body } = await daemon.request('POST', '/v1/services/web/start');
    await watched(daemon);
    put(root, 'app.conf', 'x');
    await eventually(
      () => readFileSync(join(root, 'out.log'), { encoding: 'utf8', flag: 'a+' }) === 'reload\n',
    );
    expect((await read(daemon)).pid).toBe(body.pid);
  });

  it('are refused in an invalid watch field', async () => {
    const daemon = await startDaemon();
    const spec = { name: 'web', port: null, cmd: 'x' };
    const wrong = [{}, { paths: [] }, { paths: ['a['] }, { paths: ['!a'] }, { paths: ['a'], action: 'stop' }];
    for (const watch of [...wrong, { paths: ['a'], debounceMs: -1 }, { paths: ['a'], more: 1 }, 'src'])
      expect(await daemon.request('POST', '/v1/services', { ...spec, watch })).toMatchObject({
        status: 400,
        body: { code: 'invalid_spec', details: [{ path: expect.stringMatching(/^watch/) }] },
      });
  });
});
