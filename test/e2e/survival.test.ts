// docs/reference.md "Resilience": what survives what, on the real daemon.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { otherUsers } from '../../src/adapters/process/users.ts';
import { connect } from '../../src/client/index.ts';
import { rotatedFileName, rotatedStarts } from '../../src/logs/format.ts';
import { statePaths } from '../../src/settings/state_paths.ts';
import { BIN } from '../kit/built_program.ts';
import {
  type Daemon,
  eventually,
  hostPid,
  isAlive,
  newFolder,
  type SseEvent,
  startDaemon,
  stopDaemon,
} from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';
import { endThread, INSPECTABLE } from './inspector.ts';

async function kill9(daemon: Daemon): Promise<void> {
  daemon.signal('SIGKILL');
  await daemon.exited;
}

const run = async (daemon: Daemon, name: string, cmd: string, more: object = {}) => {
  const registered = await daemon.request('POST', '/v1/services', { name, port: freePort(), cmd, ...more });
  expect(registered.status).toBe(201);
  const started = await daemon.request('POST', `/v1/services/${name}/start`);
  expect(started.body).toMatchObject({ name, status: 'running' });
  return started.body.pid as number;
};
const get = async (daemon: Daemon, name: string) =>
  (await daemon.request('GET', `/v1/services/${name}`)).body;

/**
 * Resolves when the service has printed the line. `stopping` is shown before the process host has the request,
 * and a host that never gets it leaves the process running: tests that kill the daemon in a stop wait for a
 * line of the process that the signal has reached.
 */
const said = (daemon: Daemon, name: string, line: string) =>
  eventually(async () =>
    (await daemon.request('GET', `/v1/services/${name}/logs`)).body.lines.includes(line),
  );

/** Whether the process has a handler for the signal. */
const catches = (pid: number, signal: NodeJS.Signals): boolean => {
  const mask = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return ((BigInt(`0x${mask}`) >> BigInt(constants.signals[signal] - 1)) & 1n) === 1n;
};

describe('kill -9 of the daemon', () => {
  it('stops no service, and the next daemon shows it running with the same pid and start', async () => {
    const first = await startDaemon();
    const pid = await run(first, 'web', 'exec sleep 600');
    const before = await get(first, 'web');
    await kill9(first);
    expect(isAlive(pid)).toBe(true);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'web')).toMatchObject({ status: 'running', pid, startedAt: before.startedAt });
    const stopped = await second.request('POST', '/v1/services/web/stop');
    expect(stopped.body).toMatchObject({ signal: 'SIGTERM', portFree: true });
    expect(isAlive(pid)).toBe(false);
  });

  it('loses no line of a service that keeps printing, and duplicates none', async () => {
    const first = await startDaemon({ config: '[logs]\nmax_bytes = 200000\nkeep = 100\n' });
    const script = join(newFolder(), 'count.sh');
    const total = 50_000;
    writeFileSync(
      script,
      `i=0; while [ $i -lt ${total} ]; do i=$((i+1)); echo line $i; done; exec sleep 600\n`,
    );
    const pid = await run(first, 'count', `exec sh ${script}`);
    await kill9(first);
    const second = await startDaemon({
      stateDir: first.stateDir,
      config: '[logs]\nmax_bytes = 200000\nkeep = 100\n',
    });
    expect((await get(second, 'count')).pid).toBe(pid);
    await eventually(async () => {
      const { body } = await second.request('GET', '/v1/services/count/logs?lines=1');
      return body.lines[0] === `line ${total}`;
    });
    const folder = join(first.stateDir, 'logs', 'count');
    // Rotated files carry the offset of their first byte in their names.
    const rotated = rotatedStarts(folder).map((start) => rotatedFileName(start, 'log'));
    expect(rotated.length).toBeGreaterThan(0);
    const text = [...rotated, 'out.log'].map((name) => readFileSync(join(folder, name), 'latin1')).join('');
    const expected = Array.from({ length: total }, (_, index) => `line ${index + 1}\n`).join('');
    // Not toEqual: the difference of two texts of half a megabyte takes minutes.
    expect(text === expected).toBe(true);
    const { body } = await second.request('GET', '/v1/services/count/logs?lines=1000');
    expect(body.lines).toEqual(Array.from({ length: 1000 }, (_, index) => `line ${total - 999 + index}`));
  });

  it('loses no line for a follower of many services, and shows none twice', async () => {
    const first = await startDaemon();
    const names = ['one', 'two', 'three'];
    const total = 3_000;
    const count = `i=0; while [ $i -lt ${total} ]; do i=$((i+1)); echo $i; done; exec sleep 600`;
    for (const name of names) await run(first, name, count);
    const got = new Map(names.map((name): [string, string[]] => [name, []]));
    let after: string | undefined;
    const follow = async ({ port }: Daemon, isEnough: () => boolean): Promise<void> => {
      const ended = new AbortController();
      const client = connect({ url: `http://127.0.0.1:${port}` });
      const options = { names, since: '1970-01-01T00:00:00Z', follow: true, signal: ended.signal };
      // The client that comes back has the id of the entry that it has seen last, and nothing else.
      for await (const entry of client.streamLogs({ ...options, lastEventId: after })) {
        after = entry.id;
        if ('text' in entry) got.get(entry.name)?.push(entry.text);
        if (isEnough()) ended.abort();
      }
    };
    const lines = (): number => [...got.values()].reduce((sum, one) => sum + one.length, 0);
    await follow(first, () => lines() >= 500);
    await kill9(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    await follow(second, () => lines() >= names.length * total);
    const expected = Array.from({ length: total }, (_, index) => String(index + 1));
    for (const name of names) expect(got.get(name), name).toEqual(expected);
  });

  it('keeps the exit code of a service that ended meanwhile, and its event', async () => {
    const first = await startDaemon();
    const gate = join(newFolder(), 'gate');
    await run(first, 'job', `while [ ! -e ${gate} ]; do sleep 0.02; done; exit 7`);
    const before = await first.events();
    await first.request('POST', '/v1/services', { name: 'mark', port: 9, cmd: 'true' });
    const mark = await before.until((event) => event.data.name === 'mark');
    const pid = (await get(first, 'job')).pid as number;
    await kill9(first);
    writeFileSync(gate, '');
    await eventually(() => !isAlive(pid));
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'job')).toMatchObject({ status: 'crashed', exitCode: 7 });
    const stream = await second.events('', { 'Last-Event-ID': String(mark.id) });
    const crashed = await stream.until((event) => event.event === 'service.crashed');
    expect(crashed.data).toEqual({ name: 'job', exitCode: 7, signal: null });
    expect(crashed.id).toBeGreaterThan(mark.id ?? 0);
  });

  it('completes a start and a stop that were under way', async () => {
    const first = await startDaemon();
    const gate = join(newFolder(), 'gate');
    const port = freePort();
    const late = `while [ ! -e ${gate} ]; do sleep 0.02; done; exec python3 -m http.server ${port} --bind 127.0.0.1`;
    await first.request('POST', '/v1/services', {
      name: 'late',
      port,
      cmd: late,
      ready: `http://127.0.0.1:${port}/`,
    });
    void first.request('POST', '/v1/services/late/start').catch(() => undefined);
    // An end with code 3 that nobody asked for would be a crash.
    const stubborn = await run(
      first,
      'stubborn',
      `trap 'echo told' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 3`,
    );
    await said(first, 'stubborn', 'deaf');
    void first.request('POST', '/v1/services/stubborn/stop?grace=60000').catch(() => undefined);
    await said(first, 'stubborn', 'told');
    await eventually(async () => (await get(first, 'late')).status === 'starting');
    await kill9(first);
    writeFileSync(gate, '');
    const second = await startDaemon({ stateDir: first.stateDir });
    await eventually(async () => (await get(second, 'late')).status === 'running');
    await eventually(async () => (await get(second, 'stubborn')).status === 'stopped');
    expect(isAlive(stubborn)).toBe(false);
  });

  it('completes the restart of a service and of a group that were under way', async () => {
    const first = await startDaemon();
    const gate = join(newFolder(), 'gate');
    const stubborn = `trap 'echo told' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 3`;
    const names = ['alone', 'db', 'web'];
    const pids = new Map<string, number>();
    for (const name of names) {
      const rest = name === 'alone' ? {} : { group: 'site', dependsOn: name === 'web' ? ['db'] : [] };
      // All but `db` end only once there is a gate; what follows does not wait for one.
      const deaf = name === 'db' ? 'echo deaf;' : `if [ ! -e ${gate} ]; then ${stubborn}; fi;`;
      const cmd = `${deaf} exec sleep 1000`;
      await first.request('POST', '/v1/services', { name, port: null, cmd, ...rest });
      pids.set(name, (await first.request('POST', `/v1/services/${name}/start`)).body.pid);
      await said(first, name, 'deaf');
    }
    const restart = (path: string): void =>
      void first.request('POST', `${path}/restart?grace=60000`).catch(() => undefined);
    restart('/v1/services/alone');
    restart('/v1/groups/site');
    // Of the group, one member is being stopped, and the other waits for that.
    for (const name of ['alone', 'web']) await said(first, name, 'told');
    await kill9(first);
    writeFileSync(gate, '');
    const second = await startDaemon({ stateDir: first.stateDir });
    for (const name of names)
      await eventually(async () => {
        const { pid, status } = await get(second, name);
        return status === 'running' && pid !== pids.get(name);
      });
    const { body } = await second.request('GET', '/v1/events/history?types=service.started,service.stopped');
    const told = body.events.map(
      ({ type, data }: { type: string; data: { name: string } }) => `${data.name} ${type.split('.')[1]}`,
    );
    for (const name of names)
      expect(told.filter((line: string) => line.startsWith(name))).toEqual(
        ['started', 'stopped', 'started'].map((what) => `${name} ${what}`),
      );
  });

  it.each(['start', 'restart'])(
    'leaves out what a client has stopped meanwhile when it completes the %s of a group',
    async (verb) => {
      const first = await startDaemon();
      const gate = join(newFolder(), 'gate');
      const cmd = `while [ ! -e ${gate} ]; do sleep 0.02; done; echo up; exec sleep 1000`;
      const dependencies = { db: [], mail: ['db'], web: ['db'], api: ['web'] };
      for (const [name, dependsOn] of Object.entries(dependencies)) {
        const rest = name === 'db' ? { cmd, ready: { log: 'up' } } : { cmd: 'exec sleep 1000' };
        await first.request('POST', '/v1/services', { name, port: null, group: 'site', dependsOn, ...rest });
      }
      void first.request('POST', `/v1/groups/site/${verb}`).catch(() => undefined);
      await eventually(async () => (await get(first, 'db')).status === 'starting');
      expect((await first.request('POST', '/v1/services/web/stop')).status).toBe(200);
      await kill9(first);
      const second = await startDaemon({ stateDir: first.stateDir });
      writeFileSync(gate, '');
      // It starts together with `web`, or with nothing.
      let seen: unknown[] = [];
      await eventually(
        async () => {
          seen = await Promise.all(Object.keys(dependencies).map((name) => get(second, name)));
          return (await get(second, 'mail')).status === 'running';
        },
        () => [seen, second.stderr()],
      );
      for (const name of ['web', 'api']) expect((await get(second, name)).status).toBe('stopped');
      // It is no longer left out afterwards.
      await eventually(async () => (await second.request('POST', '/v1/groups/site/start')).status === 200);
      for (const name of ['web', 'api']) expect((await get(second, name)).status).toBe('running');
    },
  );

  it('leaves alone what a client has started since the restart of a group had stopped it', async () => {
    const first = await startDaemon();
    const folder = newFolder();
    const [gate, runs] = [join(folder, 'gate'), join(folder, 'runs')];
    const wait = `while [ ! -e ${gate} ]; do sleep 0.02; done`;
    const specs = {
      db: {
        cmd: `if [ ! -e ${gate} ]; then trap 'echo told' TERM; echo deaf; ${wait}; exit 0; fi; exec sleep 600`,
      },
      web: { cmd: 'exec sleep 600', dependsOn: ['db'] },
      load: { cmd: `echo run >> ${runs}; ${wait}`, kind: 'task', dependsOn: ['db'] },
    };
    for (const [name, spec] of Object.entries(specs))
      await first.request('POST', '/v1/services', { name, port: null, group: 'site', ...spec });
    const start = async (name: string): Promise<number> =>
      (await first.request('POST', `/v1/services/${name}/start?wait=false`)).body.pid;
    const dbPid = await start('db');
    await start('web');
    await said(first, 'db', 'deaf');
    void first.request('POST', '/v1/groups/site/restart?grace=60000').catch(() => undefined);
    await said(first, 'db', 'told');
    const webPid = await start('web');
    await start('load');
    await eventually(() => existsSync(runs));
    await kill9(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    writeFileSync(gate, '');
    await eventually(async () => {
      const { pid, status } = await get(second, 'db');
      return status === 'running' && pid !== dbPid;
    });
    await eventually(async () => (await get(second, 'load')).status === 'completed');
    expect(await get(second, 'web')).toMatchObject({ status: 'running', pid: webPid });
    expect(readFileSync(runs, 'utf8')).toBe('run\n');
  });

  it('completes the restart of a group for the members that it had when it began', async () => {
    const first = await startDaemon();
    const gate = join(newFolder(), 'gate');
    const deaf = `trap 'echo told' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 0`;
    const specOf = (name: string, group: string) => {
      const cmd = `if [ ! -e ${gate} ]; then ${deaf}; fi; exec sleep 600`;
      return { name, port: null, cmd, group, dependsOn: name === 'web' ? ['db'] : [] };
    };
    const pids = new Map<string, number>();
    for (const name of ['db', 'web']) {
      await first.request('POST', '/v1/services', specOf(name, 'site'));
      pids.set(name, (await first.request('POST', `/v1/services/${name}/start`)).body.pid);
      await said(first, name, 'deaf');
    }
    void first.request('POST', '/v1/groups/site/restart?grace=60000').catch(() => undefined);
    await said(first, 'web', 'told');
    await first.request('POST', '/v1/services', specOf('web', 'other'));
    await first.request('POST', '/v1/services', specOf('new', 'site'));
    await kill9(first);
    writeFileSync(gate, '');
    const second = await startDaemon({ stateDir: first.stateDir });
    // `web` starts last.
    for (const name of ['db', 'web'])
      await eventually(async () => {
        const { pid, status } = await get(second, name);
        return status === 'running' && pid !== pids.get(name);
      });
    expect((await get(second, 'new')).status).toBe('stopped');
  });

  it.each([false, true])(
    'completes the restart of a group when the process host is killed too (daemon killed first: %s)',
    async (isTakenOver) => {
      const first = await startDaemon();
      const gate = join(newFolder(), 'gate');
      // What runs before there is a gate ends only then.
      const deaf = `trap 'echo told' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 0`;
      const cmd = `if [ ! -e ${gate} ]; then ${deaf}; fi; exec sleep 600`;
      const names = ['db', 'api', 'web'];
      const pids = new Map<string, number>();
      for (const [index, name] of names.entries()) {
        const dependsOn = names.slice(Math.max(0, index - 1), index);
        const spec = { name, port: null, cmd, group: 'site', dependsOn };
        await first.request('POST', '/v1/services', spec);
        pids.set(name, (await first.request('POST', `/v1/services/${name}/start`)).body.pid);
        await said(first, name, 'deaf');
      }
      const answered = first.request('POST', '/v1/groups/site/restart?grace=60000').catch(() => null);
      // The last of the chain is stopped first.
      await said(first, 'web', 'told');
      let last = first;
      if (isTakenOver) {
        await kill9(first);
        last = await startDaemon({ stateDir: first.stateDir });
        await eventually(async () => (await get(last, 'web')).status === 'stopping');
      }
      writeFileSync(gate, '');
      process.kill(hostPid(first.stateDir), 'SIGKILL');
      for (const name of names)
        await eventually(async () => {
          const { pid, status } = await get(last, name);
          return status === 'running' && pid !== pids.get(name);
        });
      expect((await answered)?.status).toBe(isTakenOver ? undefined : 200);
    },
  );

  it('completes the restart of a service when the process host is killed in its stop command', async () => {
    const daemon = await startDaemon();
    const [mark, gate] = [join(newFolder(), 'mark'), join(newFolder(), 'gate')];
    const stop = `touch ${mark}; while [ ! -e ${gate} ]; do sleep 0.02; done`;
    const pid = await run(daemon, 'web', 'exec sleep 600', { stop });
    const restarted = daemon.request('POST', '/v1/services/web/restart?grace=60000');
    await eventually(() => existsSync(mark));
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    writeFileSync(gate, '');
    expect((await restarted).body).toMatchObject({ status: 'running' });
    expect((await get(daemon, 'web')).pid).not.toBe(pid);
    const { events } = (
      await daemon.request('GET', '/v1/events/history?types=service.started,service.stopped')
    ).body;
    const types = events.map(({ type }: SseEvent['data']) => type);
    expect(types).toEqual(['service.started', 'service.stopped', 'service.started']);
  });

  it.each(['sleep', 'stop', 'restart sleep'])(
    'completes a restart that was requested while the process ended after %s',
    async (before) => {
      const first = await startDaemon();
      const gate = join(newFolder(), 'gate');
      const deaf = `trap '' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 0`;
      const cmd = `if [ ! -e ${gate} ]; then ${deaf}; fi; exec sleep 600`;
      await run(first, 'web', cmd, { stopGrace: 60_000, sleep: { afterMinutes: 60 } });
      const { pid } = await get(first, 'web');
      await said(first, 'web', 'deaf');
      for (const verb of `${before} restart`.split(' ')) {
        void first.request('POST', `/v1/services/web/${verb}`).catch(() => undefined);
        await eventually(async () => {
          const { status, next } = (await first.request('GET', '/v1/services/web/explain')).body;
          return status === 'stopping' && next.endsWith('started again.') === (verb === 'restart');
        });
      }
      // Its record is on disk after those of the requests above.
      await first.request('POST', '/v1/services', { name: 'mark', port: null, cmd: 'true' });
      await kill9(first);
      const second = await startDaemon({ stateDir: first.stateDir });
      writeFileSync(gate, '');
      await eventually(async () => {
        const now = await get(second, 'web');
        return now.status === 'running' && now.pid !== pid;
      });
    },
  );

  it('loses no acknowledged registration', async () => {
    const first = await startDaemon();
    const names = Array.from({ length: 500 }, (_, index) => `s${index}`);
    const answers = await Promise.all(
      names.map((name, index) =>
        first.request('POST', '/v1/services', { name, port: 30_000 + index, cmd: 'true' }),
      ),
    );
    await kill9(first);
    expect(answers.map((answer) => answer.status)).toEqual(names.map(() => 201));
    const second = await startDaemon({ stateDir: first.stateDir });
    const { services } = (await second.request('GET', '/v1/services')).body;
    expect(services.map((service: { name: string }) => service.name)).toEqual([...names].sort());
  });

  it('keeps the events and their ids, and continues them', async () => {
    const first = await startDaemon();
    const one = await first.events();
    await first.request('POST', '/v1/services', { name: 'a', port: 9, cmd: 'true' });
    const before = await one.until((event) => event.data.name === 'a');
    await kill9(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    const two = await second.events('', { 'Last-Event-ID': String((before.id ?? 1) - 1) });
    expect((await two.until((event) => event.data.name === 'a')).id).toBe(before.id);
    await second.request('POST', '/v1/services', { name: 'b', port: 9, cmd: 'true' });
    expect((await two.until((event) => event.data.name === 'b')).id).toBeGreaterThan(before.id ?? 0);
    expect(two.events.filter((event) => event.event === 'stream.reset')).toEqual([]);
  });
});

describe('a crash of the services thread', () => {
  it('affects no service, and ends the daemon with 1 when it repeats', async () => {
    const first = await startDaemon({ env: INSPECTABLE });
    const pid = await run(first, 'web', 'exec sleep 600');
    let ended: object | undefined;
    void first.exited.then((end) => {
      ended = end;
    });
    const isServed = async (): Promise<boolean> =>
      (await first.request('GET', '/v1/services/web/explain').catch(() => undefined))?.body.status ===
      'running';
    await endThread(first, 'services-0');
    await eventually(isServed);
    expect((await get(first, 'web')).pid).toBe(pid);
    while ((await eventually(async () => (ended ? 'ended' : (await isServed()) && 'served'))) !== 'ended')
      await endThread(first, 'services-0');
    expect(ended, first.stderr()).toEqual({ code: 1, signal: null });
    // Its last line may still be in the pipe when it has ended.
    await eventually(() => first.stderr().includes('the next daemon has them'));
    expect(isAlive(pid)).toBe(true);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'web')).toMatchObject({ status: 'running', pid });
  });
});

it.each([
  ['cut off', (ledger: string) => truncateSync(ledger, 10)],
  ['emptied', (ledger: string) => truncateSync(ledger)],
])(
  'services run on under the next daemon and host when the ledger was %s, which the log says',
  async (_, harm) => {
    const first = await startDaemon();
    const ledger = join(first.stateDir, 'host', 'ledger');
    const pid = await run(first, 'web', 'exec sleep 600');
    const worker = await run(first, 'worker', 'exec sleep 600', { port: null });
    const host = hostPid(first.stateDir);
    await kill9(first);
    process.kill(host, 'SIGKILL');
    await eventually(() => !isAlive(host));
    harm(ledger);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(second.stderr()).toContain(`${ledger}: is missing or damaged`);
    expect(await get(second, 'web')).toMatchObject({ status: 'running', pid, url: expect.any(String) });
    expect(await get(second, 'worker')).toMatchObject({
      status: 'running',
      pid: worker,
      port: null,
      url: null,
    });
    const log = readFileSync(statePaths(first.stateDir).hostLog, 'utf8');
    expect(log).toContain(`the ledger had lost worker (pid ${worker})`);
  },
);

describe('kill -9 of the process host', () => {
  it('stops no service; the next host adopts it with its output', async () => {
    const daemon = await startDaemon();
    const pid = await run(daemon, 'talk', 'i=0; while :; do i=$((i+1)); echo line $i; sleep 0.02; done');
    await eventually(
      async () => (await daemon.request('GET', '/v1/services/talk/logs')).body.lines.length > 3,
    );
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    const read = async (): Promise<number> => {
      const { body } = await daemon.request('GET', '/v1/services/talk/logs?lines=1');
      return Number(body?.lines?.[0]?.split(' ')[1] ?? 0);
    };
    const at = await read();
    await eventually(async () => (await read()) > at + 20);
    expect(await get(daemon, 'talk')).toMatchObject({ status: 'running', pid });
    const stream = await daemon.events();
    process.kill(pid, 'SIGKILL');
    await stream.until((event) => event.event === 'service.crashed' || event.event === 'service.stopped');
    expect(await get(daemon, 'talk')).toMatchObject({ exitCode: null, exitUnknown: true });
  });

  it('fails no live-check that runs a command', async () => {
    const daemon = await startDaemon();
    const probes = join(newFolder(), 'probes');
    const count = (): number => (existsSync(probes) ? readFileSync(probes, 'utf8').length : 0);
    // A command is under way most of the time.
    const live = { exec: `printf x >> ${probes}; sleep 0.9`, interval: 1_000, failures: 1 };
    const pid = await run(daemon, 'web', 'exec sleep 600', { port: null, live });
    await eventually(() => count() > 0);
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    const before = count();
    await eventually(() => count() > before + 1);
    expect(await get(daemon, 'web')).toMatchObject({ status: 'running', pid });
    const { events } = (await daemon.request('GET', '/v1/events/history?types=service.unhealthy')).body;
    expect(events).toEqual([]);
  });
});

describe('a process host that is slow to return', () => {
  it('is found as soon as it listens, by a daemon that has already tried', async () => {
    const daemon = await startDaemon();
    const pid = await run(daemon, 'web', 'exec sleep 600');
    const folder = join(daemon.stateDir, 'host');
    // The cause does not matter: here its folder is missing.
    renameSync(folder, `${folder}.away`);
    writeFileSync(folder, '');
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    await eventually(() => daemon.stderr().includes('cannot be had yet'));
    rmSync(folder);
    renameSync(`${folder}.away`, folder);
    await eventually(async () => (await daemon.request('POST', '/v1/services/web/stop')).status === 200);
    expect(isAlive(pid)).toBe(false);
    expect(daemon.stderr().match(/cannot be had yet/g)).toHaveLength(1);
  });
});

describe('the daemon', () => {
  it('refuses to run as the second on a state directory, naming the first', async () => {
    const first = await startDaemon();
    await expect(startDaemon({ stateDir: first.stateDir })).rejects.toThrow(
      new RegExp(`\\(1\\).*${first.pid}`, 's'),
    );
    expect((await first.request('GET', '/readyz')).status).toBe(200);
  });

  it('is the only one of several that start at once on a new state directory', async () => {
    const stateDir = join(newFolder(), 'state');
    const starts = await Promise.allSettled(Array.from({ length: 3 }, () => startDaemon({ stateDir })));
    const [one, ...more] = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    expect(more).toEqual([]);
    const { pid } = must(one);
    for (const start of starts)
      if (start.status === 'rejected')
        expect(String(start.reason)).toMatch(new RegExp(`\\(1\\).*pid ${pid}\\)? (has|with) .*state`, 's'));
  });

  it('accepts changes as soon as it listens, before its process host is ready', async () => {
    const stateDir = newFolder();
    const folder = join(stateDir, 'host');
    mkdirSync(folder, { mode: 0o700 });
    // The host waits for the lock of one that seems to be ending.
    const script = ['sh', '-c', 'echo held; exec sleep 600'];
    const holder = spawn('flock', ['--exclusive', '--no-fork', join(folder, 'lock'), ...script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder.stdout, 'data');
    const daemon = await startDaemon({ stateDir });
    const spec = { name: 'web', port: freePort(), cmd: 'exec sleep 600' };
    expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
    const { body } = await daemon.request('GET', '/v1/services/web/explain');
    expect(body.waitingFor).toBe('the process host');
    holder.kill('SIGKILL');
    const start = () => daemon.request('POST', '/v1/services/web/start');
    await eventually(async () => (await start()).status === 200);
    expect(isAlive((await get(daemon, 'web')).pid)).toBe(true);
  });

  it('refuses a port in use, naming the holder', async () => {
    const first = await startDaemon();
    await expect(startDaemon({ config: `port = ${first.port}\n` })).rejects.toThrow(
      new RegExp(`\\(1\\).*${first.port}.*${first.pid}`, 's'),
    );
  });

  it('stops all services, in reverse dependency order, and leaves nothing behind', async () => {
    const daemon = await startDaemon();
    const stream = await daemon.events();
    const db = await run(daemon, 'db', 'exec sleep 600');
    const web = await run(daemon, 'web', 'exec sleep 600', { dependsOn: ['db'] });
    const host = hostPid(daemon.stateDir);
    daemon.signal('SIGTERM');
    expect(await daemon.exited).toEqual({ code: 0, signal: null });
    await stream.closed;
    expect(stream.events.filter((e) => e.event === 'service.stopped').map((e) => e.data.name)).toEqual([
      'web',
      'db',
    ]);
    expect([isAlive(db), isAlive(web)]).toEqual([false, false]);
    expect(existsSync(join(daemon.stateDir, 'daemon.json'))).toBe(false);
    await eventually(() => !isAlive(host));
  });

  it('prints events with --verbose, also while it shuts down', async () => {
    const daemon = await startDaemon({ args: ['--verbose'] });
    const pid = await run(daemon, 'web', 'exec sleep 600');
    daemon.signal('SIGINT');
    await daemon.exited;
    const lines = daemon.stderr().split('\n');
    expect(lines).toContainEqual(expect.stringMatching(`^berth: service.started .*"pid":${pid}`));
    expect(lines).toContainEqual(expect.stringMatching(/^berth: service\.stopped \{"name":"web"/));
    expect(daemon.stderr()).not.toContain('service.stats');
  });

  it('ends at once by a signal a second after the first, but not by one that npm passed on', async () => {
    const first = await startDaemon();
    const pid = await run(first, 'stubborn', "trap '' TERM; while :; do sleep 0.2; done", {
      stopGrace: 60_000,
    });
    first.signal('SIGTERM');
    await eventually(async () => (await first.request('GET', '/readyz')).status === 503);
    const since = Date.now();
    first.signal('SIGTERM');
    await eventually(() => Date.now() - since > 1_200);
    expect((await get(first, 'stubborn')).status).toBe('stopping');
    first.signal('SIGINT');
    expect(await first.exited).toEqual({ code: null, signal: 'SIGINT' });
    expect(isAlive(pid)).toBe(true);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'stubborn')).toMatchObject({ status: 'stopping', pid });
    process.kill(pid, 'SIGKILL');
    await eventually(async () => (await get(second, 'stubborn')).status === 'stopped');
  });

  it('prints once why it does not start, also after an earlier signal to end', async () => {
    const stateDir = newFolder();
    const config = join(stateDir, 'fifo.toml');
    execFileSync('mkfifo', ['-m', '600', config]);
    const child = spawn(process.execPath, [BIN, 'daemon', '--config', config, '--state-dir', stateDir]);
    let stderr = '';
    child.stderr.on('data', (text) => {
      stderr += text;
    });
    const exited = once(child, 'close');
    // It waits for its settings, and has its handlers: the SIGHUP handler is the last, and Node itself has
    // none.
    await eventually(() => catches(must(child.pid), 'SIGHUP'));
    child.kill('SIGTERM');
    expect(await exited).toEqual([2, null]);
    expect(stderr.trim().split('\n')).toEqual([
      `berth: ${config}: cannot be read: the daemon was asked to end before anybody wrote it`,
    ]);
  });

  it('reads its settings from a pipe only at its start', async () => {
    const config = join(newFolder(), 'fifo.toml');
    execFileSync('mkfifo', ['-m', '600', config]);
    const starting = startDaemon({ args: ['--config', config] });
    writeFileSync(config, 'port = 0\n[gateway]\nport = 0\n[auth]\ntoken = "comes-through-a-pipe-0123"\n');
    const daemon = await starting;
    const status = async (): Promise<number> => (await daemon.request('GET', '/v1/services')).status;
    expect(await status()).toBe(401);
    daemon.signal('SIGHUP');
    await eventually(() => daemon.stderr().includes('it is a FIFO, and not a file'));
    expect(await status()).toBe(401);
  });

  it('keeps the status of a crashed service when it shuts down', async () => {
    const first = await startDaemon();
    await first.request('POST', '/v1/services', { name: 'bad', port: freePort(), cmd: 'exit 3' });
    await first.request('POST', '/v1/services/bad/start');
    await eventually(async () => (await get(first, 'bad')).status === 'crashed');
    await stopDaemon(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'bad')).toMatchObject({ status: 'crashed', exitCode: 3 });
    expect((await second.request('POST', '/v1/services/bad/stop')).body.status).toBe('stopped');
    expect(await get(second, 'bad')).toMatchObject({ status: 'stopped' });
  });

  it('leaves services running when asked to keep them', async () => {
    const config = '[shutdown]\nservices = "keep"\n';
    const first = await startDaemon({ config });
    const pid = await run(first, 'web', 'exec sleep 600');
    await stopDaemon(first);
    expect(isAlive(pid)).toBe(true);
    const second = await startDaemon({ stateDir: first.stateDir });
    expect(await get(second, 'web')).toMatchObject({ status: 'running', pid });
    await stopDaemon(second);
    expect(isAlive(pid)).toBe(false);
  });

  it('leaves the restart of a group to the next one when asked to keep services', async () => {
    const config = '[shutdown]\nservices = "keep"\n';
    const first = await startDaemon({ config });
    const gate = join(newFolder(), 'gate');
    const cmd = `while [ ! -e ${gate} ]; do sleep 0.02; done; echo up; exec sleep 600`;
    const specs = [
      { name: 'db', cmd, ready: { log: 'up' }, startTimeout: 60_000 },
      { name: 'web', cmd: 'exec sleep 600', dependsOn: ['db'] },
    ];
    for (const spec of specs)
      await first.request('POST', '/v1/services', { ...spec, port: null, group: 'site' });
    void first.request('POST', '/v1/groups/site/restart').catch(() => undefined);
    await eventually(async () => (await get(first, 'db')).status === 'starting');
    await stopDaemon(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    const { pid } = await get(second, 'db');
    writeFileSync(gate, '');
    await eventually(async () => (await get(second, 'web')).status === 'running');
    expect(await get(second, 'db')).toMatchObject({ status: 'running', pid });
  });

  it('starts autostart services, in order', async () => {
    const first = await startDaemon();
    const port = freePort();
    const services = [
      { name: 'b', port: freePort(), cmd: 'exec sleep 600', autostart: true, dependsOn: ['a'] },
      // Were b not to wait for it, b would be up long before it is ready.
      {
        ...{ name: 'a', port, ready: `tcp://localhost:${port}`, autostart: true },
        cmd: 'sleep 0.5; exec python3 -m http.server $PORT --bind 127.0.0.1',
      },
      { name: 'c', port: freePort(), cmd: 'exec sleep 600' },
    ];
    for (const spec of services) expect((await first.request('POST', '/v1/services', spec)).status).toBe(201);
    await stopDaemon(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    const started = await eventually(async () => {
      const { body } = await second.request('GET', '/v1/events/history?types=service.started');
      return body.events.length >= 2 && body.events;
    });
    expect(started.map(({ data }: { data: { name: string } }) => data.name)).toEqual(['a', 'b']);
    expect((await get(second, 'c')).status).toBe('stopped');
  });

  it('starts an autostart service whose stop has outlasted the daemon before, and what depends on it', async () => {
    const first = await startDaemon();
    const gate = join(newFolder(), 'gate');
    // The first run of db ends only once there is a gate.
    const deaf = `trap 'echo told' TERM; echo deaf; while [ ! -e ${gate} ]; do sleep 0.02; done; exit 0`;
    const cmd = `if [ ! -e ${gate} ]; then ${deaf}; fi; exec sleep 600`;
    const auto = { autostart: true, stopGrace: 60_000 };
    await run(first, 'db', cmd, auto);
    await run(first, 'web', 'exec sleep 600', { ...auto, dependsOn: ['db'] });
    await said(first, 'db', 'deaf');
    first.signal('SIGTERM');
    await said(first, 'db', 'told');
    await kill9(first);
    const second = await startDaemon({ stateDir: first.stateDir });
    await eventually(async () => {
      const { body } = await second.request('GET', '/v1/services/db/explain');
      return body.status === 'stopping' && body.next.endsWith('Then it is started again.');
    });
    writeFileSync(gate, '');
    for (const name of ['db', 'web'])
      await eventually(async () => (await get(second, name)).status === 'running');
  });

  it('warns in one line at its start if it has no token and other users can log in', async () => {
    const warnings = async (config: string): Promise<number> => {
      const daemon = await startDaemon({ config });
      const closed = once(daemon.process, 'close');
      daemon.signal('SIGTERM');
      await closed;
      return daemon.stderr().match(/^berth: no auth\.token is set: .*$/gm)?.length ?? 0;
    };
    expect(await warnings('')).toBe(otherUsers().length > 0 ? 1 : 0);
    expect(await warnings('[auth]\ntoken = "one"\n')).toBe(0);
  });

  it('rereads the token at SIGHUP', async () => {
    const daemon = await startDaemon({ config: '[auth]\ntoken = "one"\n' });
    const status = async (token: string): Promise<number> =>
      (await daemon.request('GET', '/v1/services', undefined, { Authorization: `Bearer ${token}` })).status;
    expect([await status('one'), await status('two')]).toEqual([200, 401]);
    writeFileSync(daemon.configFile, 'port = 0\n[gateway]\nport = 0\n[auth]\ntoken = "two"\n');
    daemon.signal('SIGHUP');
    await eventually(async () => (await status('two')) === 200);
    expect(await status('one')).toBe(401);
  });

  it('runs from a folder with blanks and non-ASCII letters in its name', async () => {
    const folder = join(newFolder(), 'my füll däemon');
    cpSync(dirname(BIN), join(folder, 'dist'), { recursive: true });
    symlinkSync(join(dirname(BIN), '../node_modules'), join(folder, 'node_modules'));
    const daemon = await startDaemon({ bin: join(folder, 'dist/bin.cjs') });
    await run(daemon, 'web', 'exec sleep 600');
    await stopDaemon(daemon);
  });

  it('continues when it cannot write its address, and writes it as soon as it can', async () => {
    const stateDir = join(newFolder(), 'state');
    // As on a full disk: the file cannot be created.
    mkdirSync(join(stateDir, 'daemon.json.new'), { recursive: true, mode: 0o700 });
    const daemon = await startDaemon({ stateDir });
    const file = join(stateDir, 'daemon.json');
    expect(
      (await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 600' })).status,
    ).toBe(201);
    expect(
      daemon.stderr().match(/the command line cannot find this daemon until there is room/g),
    ).toHaveLength(1);
    expect(existsSync(file)).toBe(false);
    rmSync(join(stateDir, 'daemon.json.new'), { recursive: true });
    await eventually(() => existsSync(file));
    const { gatewayPort } = (await daemon.request('GET', '/v1/version')).body;
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ port: daemon.port, gatewayPort });
  });

  it('keeps to the log limits read at SIGHUP, whatever happens to the process host', async () => {
    const daemon = await startDaemon();
    writeFileSync(
      daemon.configFile,
      'port = 0\n[gateway]\nport = 0\n[logs]\nmax_bytes = 65536\nkeep = 1000\n',
    );
    daemon.signal('SIGHUP');
    await eventually(() => daemon.stderr().includes('log limits were read again'));
    process.kill(hostPid(daemon.stateDir), 'SIGKILL');
    const cmd = 'i=0; while [ $i -lt 100 ]; do i=$((i+1)); seq 10000; sleep 0.05; done; exec sleep 600';
    await daemon.request('POST', '/v1/services', { name: 'count', port: freePort(), cmd });
    // Until the next host is ready it answers that it is busy. All output would fit in the log of before.
    await eventually(async () => (await daemon.request('POST', '/v1/services/count/start')).status === 200);
    const folder = join(daemon.stateDir, 'logs', 'count');
    await eventually(() => readdirSync(folder).filter((name) => /^out.*log/.test(name)).length > 2);
  });

  it('answers livez, readyz and version', async () => {
    const daemon = await startDaemon();
    expect((await daemon.request('GET', '/livez')).status).toBe(200);
    expect((await daemon.request('GET', '/readyz')).status).toBe(200);
    const { body } = await daemon.request('GET', '/v1/version');
    expect(body).toMatchObject({ name: 'berth', pid: daemon.pid, stateDir: daemon.stateDir, apiLevel: 1 });
    expect(JSON.parse(readFileSync(join(daemon.stateDir, 'daemon.json'), 'utf8'))).toMatchObject({
      pid: daemon.pid,
      port: daemon.port,
    });
    expect(daemon.stdout()).toBe(`berth: listening on http://127.0.0.1:${daemon.port}\n`);
  });
});
