// docs/reference.md "Damaged store", through the real daemon and the real command.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openStore } from '../../src/adapters/storage/store.ts';
import { writeStoreCopy } from '../../src/adapters/storage/store_copy.ts';
import type { Store } from '../../src/adapters/storage/store_tables.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, isAlive, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

/** What `berth` prints, and its exit code. */
function outcome(args: string[], script = BIN): { code: number | null; stdout: string; stderr: string } {
  const {
    status: code,
    stdout,
    stderr,
  } = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  return { code, stdout, stderr };
}

const CONFIG = 'port = 0\n[gateway]\nport = 0\n';

/** A state directory with the service `web`, whose daemon has ended in order. */
async function usedState(): Promise<string> {
  const daemon = await startDaemon();
  const spec = { name: 'web', port: 0, cmd: 'echo "it is $SECRET"; exec sleep 100', env: { SECRET: 'safe' } };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  await stopDaemon(daemon);
  return daemon.stateDir;
}

const start = (daemon: Daemon) => daemon.request('POST', '/v1/services/web/start');

/** Gives the table of services a page that is not there. lmdb has its root 50 bytes after its name. */
function misplaceServices(path: string): void {
  const bytes = readFileSync(path);
  const name = 'services\0';
  for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1))
    bytes.writeUInt32LE(0xffff_0000, at + 50);
  writeFileSync(path, bytes);
}

it.each([
  ['is missing', (path: string) => rmSync(path)],
  ['is damaged', (path: string) => writeFileSync(path, 'rubbish'.repeat(5_000))],
  // What lmdb finds out only as it reads: only the two meta pages are left.
  ['is damaged: MDB_', (path: string) => writeFileSync(path, readFileSync(path).fill(0, 8_192))],
  ['is damaged: MDB_', misplaceServices],
])(
  'a store that %s ends the start with exit code 1 and one line that says how to recover',
  async (why, harm) => {
    const state = await usedState();
    harm(join(state, 'store.mdb'));
    const config = join(newFolder(), 'config.toml');
    writeFileSync(config, CONFIG);
    const { code, stderr } = outcome(['daemon', '--state-dir', state, '--config', config]);
    // Where uWebSockets.js does not load, a line before says so; lmdb has its own line for a wrong page.
    const lines = stderr
      .trimEnd()
      .split('\n')
      .filter(
        (line) =>
          !/node:http serves|^internal error, index points to a 00 page|^page \d+ not found/.test(line),
      );
    expect([code, lines]).toEqual([1, [expect.stringContaining(why)]]);
    const command = /`berth (daemon --restore-store)`/.exec(stderr)?.[1];
    expect(command).toBeDefined();
  },
);

it('a copy that is damaged too ends the start with one line, and without it the store begins empty', async () => {
  const stateDir = await usedState();
  const [store, copy] = [join(stateDir, 'store.mdb'), join(stateDir, 'store.copy')];
  for (const path of [store, copy]) writeFileSync(path, 'x'.repeat(20_000));
  const config = join(newFolder(), 'config.toml');
  writeFileSync(config, CONFIG);
  for (const more of [[], ['--restore-store']]) {
    const { code, stderr } = outcome(['daemon', '--state-dir', stateDir, '--config', config, ...more]);
    expect([code, stderr.split(copy)]).toEqual([
      1,
      [expect.any(String), expect.stringMatching(/^: is damaged; [^\n]+\n$/)],
    ]);
  }
  rmSync(copy);
  const daemon = await startDaemon({ stateDir, args: ['--restore-store'] });
  expect((await daemon.request('GET', '/v1/services')).body).toEqual({ services: [] });
});

it('an environment whose key is lost is listed, does not start, and starts when the key is back', async () => {
  const stateDir = await usedState();
  const key = join(stateDir, 'env.key');
  expect(readFileSync(join(stateDir, 'store.mdb')).includes('safe')).toBe(false);
  renameSync(key, `${key}.away`);
  const daemon = await startDaemon({ stateDir });
  const listed = (await daemon.request('GET', '/v1/services/web')).body;
  expect(listed).toMatchObject({ name: 'web', envKeys: ['SECRET'] });
  expect(await start(daemon)).toMatchObject({
    status: 500,
    body: { code: 'key_unusable', hint: expect.stringContaining('env.key') },
  });
  renameSync(`${key}.away`, key);
  expect((await start(daemon)).status).toBe(200);
  const { lines } = (await daemon.request('GET', '/v1/services/web/logs')).body;
  expect(lines).toEqual(['it is safe']);
});

it('a restart leaves the running service and group alone while the store or its key is away, and only then', async () => {
  const config = '[shutdown]\nservices = "keep"\n';
  const first = await startDaemon({ config });
  const { stateDir } = first;
  const [key, store] = [join(stateDir, 'env.key'), join(stateDir, 'store.mdb')];
  const spec = { name: 'web', port: null, group: 'site', cmd: 'exec sleep 100', env: { SECRET: 'safe' } };
  expect((await first.request('POST', '/v1/services', spec)).status).toBe(201);
  let { pid } = (await start(first)).body;
  await stopDaemon(first);
  renameSync(key, `${key}.away`);
  const daemon = await startDaemon({ stateDir, config });
  const expectRefusals = async (code: string): Promise<void> => {
    for (const one of ['services/web', 'groups/site']) {
      const refused = await daemon.request('POST', `/v1/${one}/restart`);
      expect(refused).toMatchObject({ status: 500, body: { code } });
      const { body } = await daemon.request('GET', '/v1/services/web');
      expect(body).toMatchObject({ status: 'running', pid });
    }
  };
  await expectRefusals('key_unusable');
  renameSync(`${key}.away`, key);
  expect((await daemon.request('POST', '/v1/groups/site/restart')).status).toBe(200);
  const before = pid;
  ({ pid } = (await daemon.request('POST', '/v1/services/web/restart')).body);
  expect(pid).not.toBe(before);
  renameSync(store, `${store}.away`);
  await expectRefusals('storage_lost');
  // The end of this test stops the service.
  renameSync(`${store}.away`, store);
  expect((await daemon.request('POST', '/v1/services/web/stop')).status).toBe(200);
});

it('a removal leaves services, agents, stacks and logs alone while the store is away', async () => {
  const daemon = await startDaemon();
  const { stateDir } = daemon;
  const place = { project: 'shop', path: newFolder(), worktree: null, branch: null, name: 'shop' };
  expect((await daemon.request('POST', '/v1/stacks', place)).status).toBe(201);
  const hookMark = join(newFolder(), 'removed');
  const web = { port: null, cmd: 'echo precious; exec sleep 100' };
  const hook = { port: null, kind: 'task', stack: 'shop', cmd: `touch '${hookMark}'` };
  for (const spec of [
    { ...web, name: 'web' },
    { ...web, name: 'shop--web', stack: 'shop' },
    { ...hook, name: 'shop--hook-remove' },
  ])
    expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  for (const name of ['web', 'shop--web']) await daemon.request('POST', `/v1/services/${name}/start`);
  await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: web.cmd });
  const names = ['web', 'shop--web', 'bot'];
  const known = () =>
    Promise.all(
      names.map(async (name) => {
        const { status, pid } = (await daemon.request('GET', `/v1/services/${name}`)).body;
        const { lines } = (await daemon.request('GET', `/v1/services/${name}/logs`)).body;
        return { status, pid, lines };
      }),
    );
  const before = await eventually(async () => {
    const rows = await known();
    return rows.every(({ lines, status }) => status === 'running' && lines[0] === 'precious') && rows;
  });
  const store = join(stateDir, 'store.mdb');
  renameSync(store, `${store}.away`);
  const removals = ['services/web', 'services/bot', 'agents/bot', 'stacks/shop', 'stacks/shop?force=true'];
  for (const one of removals)
    expect(await daemon.request('DELETE', `/v1/${one}`)).toMatchObject({
      status: 500,
      body: { code: 'storage_lost' },
    });
  expect(await known()).toEqual(before);
  expect(existsSync(hookMark)).toBe(false);
  // The end of this test stops the services.
  renameSync(`${store}.away`, store);
  for (const one of ['services/web', 'agents/bot', 'stacks/shop'])
    expect((await daemon.request('DELETE', `/v1/${one}`)).status).toBe(200);
  expect(existsSync(hookMark)).toBe(true);
});

it('the removal of a stack without services runs no hook while the store is away', async () => {
  const daemon = await startDaemon();
  const place = { project: 'shop', path: newFolder(), worktree: null, branch: null, name: 'shop' };
  expect((await daemon.request('POST', '/v1/stacks', place)).status).toBe(201);
  const mark = join(newFolder(), 'removed');
  const hook = { name: 'shop--hook-remove', port: null, kind: 'task', stack: 'shop', cmd: `touch '${mark}'` };
  expect((await daemon.request('POST', '/v1/services', hook)).status).toBe(201);
  const store = join(daemon.stateDir, 'store.mdb');
  renameSync(store, `${store}.away`);
  expect(await daemon.request('DELETE', '/v1/stacks/shop')).toMatchObject({
    status: 500,
    body: { code: 'storage_lost' },
  });
  expect(existsSync(mark)).toBe(false);
  renameSync(`${store}.away`, store);
  expect((await daemon.request('DELETE', '/v1/stacks/shop')).status).toBe(200);
  expect(existsSync(mark)).toBe(true);
});

/** Flips a bit of the row that has `text`, in every page that has a version of it. */
function damageRow(stateDir: string, text: string): void {
  const path = join(stateDir, 'store.mdb');
  const bytes = readFileSync(path);
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1))
    bytes[at] = (bytes[at] ?? 0) ^ 1;
  writeFileSync(path, bytes);
}

const doctor = ({ stateDir, configFile }: Daemon): string =>
  outcome(['--state-dir', stateDir, '--config', configFile, 'doctor']).stdout;

it('a damaged row is named by the log and by doctor, and the other rows are used', async () => {
  const stateDir = await usedState();
  damageRow(stateDir, 'it is $SECRET');
  const daemon = await startDaemon({ stateDir });
  expect((await daemon.request('GET', '/v1/services')).body).toEqual({ services: [] });
  expect(daemon.stderr()).toContain('store: the row web of services is damaged and was left out');
  expect(doctor(daemon)).toContain('damaged or lost rows of the store were left out: services.web');
});

const KEPT = { name: 'kept', port: null, cmd: 'echo precious; exec sleep 100' };

/** A state directory with the running service `kept`, whose daemon was killed. */
async function killedState(): Promise<{ stateDir: string; pid: number }> {
  const daemon = await startDaemon();
  expect((await daemon.request('POST', '/v1/services', KEPT)).status).toBe(201);
  const { pid } = (await daemon.request('POST', '/v1/services/kept/start')).body;
  daemon.signal('SIGKILL');
  await daemon.exited;
  return { stateDir: daemon.stateDir, pid };
}

const keptLines = async (daemon: Daemon) =>
  (await daemon.request('GET', '/v1/services/kept/logs')).body.lines;

it.each([
  ['the copy lacks', true],
  ['there is no copy for', false],
])('a restored store leaves alone what runs and %s', async (_, hasCopy) => {
  const { stateDir, pid } = await killedState();
  const store = join(stateDir, 'store.mdb');
  if (hasCopy) await writeStoreCopy(join(stateDir, 'store.copy'), []);
  truncateSync(store, 8_192);
  const first = await startDaemon({ stateDir, args: ['--restore-store'] });
  expect((await first.request('GET', '/v1/services')).body).toEqual({ services: [] });
  expect(first.stderr()).toContain('whose processes and logs stay until they are registered: kept');
  expect(doctor(first)).toContain('rows of the store were left out: services.kept');
  await stopDaemon(first);
  const daemon = await startDaemon({ stateDir });
  expect((await daemon.request('POST', '/v1/services', KEPT)).status).toBe(201);
  await eventually(async () => (await daemon.request('GET', '/v1/services/kept')).body.pid === pid);
  expect(await keptLines(daemon)).toEqual(['precious']);
});

it('a spinup takes over an agent that a restored store lacks, with its log', async () => {
  const first = await startDaemon();
  const { stateDir } = first;
  const spec = { name: 'bot', cmd: 'echo precious; exec sleep 100' };
  // Its port is not the first one that is free.
  await first.request('POST', '/v1/agents/spinup', { ...spec, name: 'before' });
  const { pid, port } = (await first.request('POST', '/v1/agents/spinup', spec)).body;
  const listens = `require('node:net').createServer().listen(process.env.PORT, () => console.log('up'))`;
  const server = { name: 'server', cmd: `exec '${process.execPath}' -e "${listens}"`, port: freePort() };
  const { body: made } = await first.request('POST', '/v1/agents/spinup', server);
  await eventually(
    async () => (await first.request('GET', '/v1/services/server/logs')).body.lines[0] === 'up',
  );
  first.signal('SIGKILL');
  await first.exited;
  truncateSync(join(stateDir, 'store.mdb'), 8_192);
  const daemon = await startDaemon({ stateDir, args: ['--restore-store'] });
  expect(await daemon.request('POST', '/v1/agents/spinup', spec)).toMatchObject({
    status: 201,
    body: { pid, port },
  });
  expect(await daemon.request('POST', '/v1/agents/spinup', server)).toMatchObject({
    status: 201,
    body: { pid: made.pid, port: server.port },
  });
  const { lines } = (await daemon.request('GET', '/v1/services/bot/logs')).body;
  expect(lines).toEqual(['precious']);
});

it('a damaged row of a running service is that of the copy again, with its process and logs', async () => {
  const { stateDir, pid } = await killedState();
  const store = openStore(join(stateDir, 'store.mdb'));
  await writeStoreCopy(join(stateDir, 'store.copy'), store.rows());
  await store.close();
  damageRow(stateDir, 'echo precious');
  const daemon = await startDaemon({ stateDir });
  const kept = (await daemon.request('GET', '/v1/services/kept')).body;
  expect(kept).toMatchObject({ status: 'running', pid, cmd: KEPT.cmd });
  expect(await keptLines(daemon)).toEqual(['precious']);
  expect(daemon.stderr()).toContain('the row kept of services is damaged and is now that of the copy of');
  expect(doctor(daemon)).toContain(
    'damaged or lost rows of the store are now those of its last copy: services.kept',
  );
});

it('a damaged row without a copy leaves process and logs to the next registration', async () => {
  const { stateDir, pid } = await killedState();
  damageRow(stateDir, 'echo precious');
  const first = await startDaemon({ stateDir });
  expect((await first.request('GET', '/v1/services')).body).toEqual({ services: [] });
  first.signal('SIGKILL');
  await first.exited;
  const daemon = await startDaemon({ stateDir });
  expect((await daemon.request('POST', '/v1/services', KEPT)).status).toBe(201);
  const isTakenOver = async () => (await daemon.request('GET', '/v1/services/kept')).body.pid === pid;
  await eventually(isTakenOver);
  expect(await keptLines(daemon)).toEqual(['precious']);
});

it('what runs without a row in an older store that was put back stays, and is taken over', async () => {
  const empty = await startDaemon();
  await stopDaemon(empty);
  const { stateDir } = empty;
  const [store, older] = [join(stateDir, 'store.mdb'), join(newFolder(), 'older.mdb')];
  copyFileSync(store, older);
  const before = await startDaemon({ stateDir });
  await before.request('POST', '/v1/services', KEPT);
  const { pid } = (await before.request('POST', '/v1/services/kept/start')).body;
  before.signal('SIGKILL');
  await before.exited;
  copyFileSync(older, store);
  const daemon = await startDaemon({ stateDir });
  const said = 'whose processes and logs stay until they are registered: kept';
  await eventually(() => daemon.stderr().includes(said));
  expect(doctor(daemon)).toContain('rows of the store were left out: services.kept');
  expect((await daemon.request('POST', '/v1/services', KEPT)).status).toBe(201);
  await eventually(async () => (await daemon.request('GET', '/v1/services/kept')).body.pid === pid);
  expect(await keptLines(daemon)).toEqual(['precious']);
});

it('a restore refuses an undamaged store, and leaves it', async () => {
  const stateDir = await usedState();
  const config = join(newFolder(), 'config.toml');
  writeFileSync(config, CONFIG);
  const args = ['daemon', '--state-dir', stateDir, '--config', config, '--restore-store'];
  const { code, stderr } = outcome(args);
  expect([code, stderr]).toEqual([1, expect.stringContaining('is undamaged, so --restore-store leaves it')]);
  expect(existsSync(join(stateDir, 'store.mdb.old'))).toBe(false);
  const daemon = await startDaemon({ stateDir });
  expect((await daemon.request('GET', '/v1/services/web')).status).toBe(200);
});

it.each([
  ['has a misplaced page', false],
  ['ends whatever reads it', true],
])('a restore replaces a store that %s', async (_, isFatal) => {
  const stateDir = await usedState();
  const store = openStore(join(stateDir, 'store.mdb'));
  await writeStoreCopy(join(stateDir, 'store.copy'), store.rows());
  await store.close();
  const fault = join(newFolder(), 'fault.cjs');
  writeFileSync(fault, "if (/store_check/.test(process.argv[1])) process.kill(process.pid, 'SIGBUS');");
  if (!isFatal) misplaceServices(join(stateDir, 'store.mdb'));
  const env = isFatal ? { NODE_OPTIONS: `--require ${fault}` } : {};
  const daemon = await startDaemon({ stateDir, args: ['--restore-store'], env });
  expect((await daemon.request('GET', '/v1/services/web')).status).toBe(200);
  expect(existsSync(join(stateDir, 'store.mdb.old'))).toBe(true);
});

/** Puts rows into the store of a state directory, writes its copy, and damages it. */
async function damagedWith(stateDir: string, putRows: (store: Store) => Promise<unknown>): Promise<void> {
  const path = join(stateDir, 'store.mdb');
  const store = openStore(path);
  await putRows(store);
  await writeStoreCopy(join(stateDir, 'store.copy'), store.rows());
  await store.close();
  truncateSync(path, 8_192);
}

it.each(['stop', undefined] as const)(
  'a restore does not repeat the call of a group that the copy holds (%s)',
  async (verb) => {
    const first = await startDaemon();
    const { stateDir } = first;
    for (const name of ['a', 'b'])
      await first.request('POST', '/v1/services', { name, port: null, group: 'site', cmd: 'exec sleep 100' });
    const pidsOf = async (daemon: Daemon): Promise<number[]> => {
      const { body } = await daemon.request('POST', '/v1/groups/site/start');
      return body.services.map(({ pid }: { pid: number }) => pid);
    };
    const pids = await pidsOf(first);
    first.signal('SIGKILL');
    await first.exited;
    const call = { verb, step: 'stop', graceMs: null, timeoutMs: null, at: Date.now() } as const;
    await damagedWith(stateDir, (store) => store.table('restarts').put('site', call));
    const daemon = await startDaemon({ stateDir, args: ['--restore-store'] });
    // A repeated call would come first.
    expect(await pidsOf(daemon)).toEqual(pids);
  },
);

it('a restore runs no scheduled time again', async () => {
  const first = await startDaemon();
  const { stateDir } = first;
  const schedule = { cron: '0 0 1 1 *', catchUp: true };
  const job = { name: 'job', port: null, kind: 'task', cmd: 'echo ran', schedule };
  expect((await first.request('POST', '/v1/services', job)).status).toBe(201);
  await stopDaemon(first);
  await damagedWith(stateDir, async (store) => {
    const rows = store.table('schedules');
    for (const [name, row] of rows.all()) await rows.put(name, { ...row, slot: 0 });
  });
  const daemon = await startDaemon({ stateDir, args: ['--restore-store'] });
  const jobNow = async () => (await daemon.request('GET', '/v1/services/job')).body;
  // Known once no run is due.
  await eventually(async () => (await jobNow()).nextRunAt !== null);
  expect(await jobNow()).toMatchObject({ status: 'stopped' });
});

it('what belongs to a row that was left out ends when it is registered and removed', async () => {
  const { stateDir, pid } = await killedState();
  damageRow(stateDir, 'echo precious');
  const first = await startDaemon({ stateDir });
  expect(doctor(first)).toContain(`Then remove ${join(stateDir, 'damaged')}.`);
  const { code, stderr } = outcome(['--state-dir', stateDir, 'rm', 'kept']);
  expect(code).toBe(1);
  expect(stderr).toContain('kept: its record was damaged or lost');
  expect([isAlive(pid), existsSync(join(stateDir, 'logs', 'kept'))]).toEqual([true, true]);
  first.signal('SIGKILL');
  await first.exited;
  rmSync(join(stateDir, 'damaged'), { recursive: true });
  const daemon = await startDaemon({ stateDir });
  await eventually(() => existsSync(join(stateDir, 'damaged', 'services.kept')));
  expect([isAlive(pid), existsSync(join(stateDir, 'logs', 'kept'))]).toEqual([true, true]);
  expect((await daemon.request('POST', '/v1/services', KEPT)).status).toBe(201);
  expect((await daemon.request('DELETE', '/v1/services/kept')).status).toBe(200);
  expect([isAlive(pid), existsSync(join(stateDir, 'logs', 'kept'))]).toEqual([false, false]);
});

it('berth daemon start says how to recover when the daemon crashes on its mapped store', async () => {
  const script = join(newFolder(), 'berth.cjs');
  // The command line starts the daemon as itself.
  const fault = "if (!process.argv.includes('start')) process.kill(process.pid, 'SIGBUS');";
  writeFileSync(script, `${fault}\nrequire(${JSON.stringify(BIN)});`);
  const { code, stderr } = outcome(['--state-dir', join(newFolder(), 'state'), 'daemon', 'start'], script);
  expect(code).toBe(5);
  expect(stderr).toContain('ended with SIGBUS');
  expect(stderr).toContain('`berth daemon --restore-store`');
});
