import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { portHolderOf } from '../../../src/actors/ports/port_holder.ts';
import { portsActor } from '../../../src/actors/ports/ports.ts';
import { nextRecord } from '../../../src/actors/registry/registration_rules.ts';
import { processRow } from '../../../src/adapters/process/process_table.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import type { EventsProtocol } from '../../../src/protocol/events.ts';
import type { HostProtocol, LedgerRun } from '../../../src/protocol/host.ts';
import type { PortsProtocol, PortUse } from '../../../src/protocol/ports.ts';
import type { RunEnd } from '../../../src/protocol/service.ts';
import { Failure, isFailure, type Ref } from '../../../src/runtime/actor.ts';
import {
  afterThisTest,
  realTime,
  type Stand,
  settle,
  type TestClock,
  tempDir,
  virtualClock,
  type World,
  world,
} from '../../kit/actors.ts';
import { freePort, ownPorts } from '../../kit/free_ports.ts';
import { must } from '../../kit/must.ts';
import { canBecomeOthers, listenAsOther, OTHER_USER } from '../../kit/other_user.ts';
import { input } from '../../kit/service_inputs.ts';

async function started(clock: TestClock = realTime): Promise<{
  ports: Ref<PortsProtocol>;
  world: World;
  again(): Promise<void>;
  put(name: string, port: number): Promise<void>;
  host: Stand<HostProtocol>;
  /** The host's current run of a service, and its last ended run. */
  live: Map<string, string>;
  /** Every run of the host. */
  runs: LedgerRun[];
  /** What happens before the host tells the run of a service. */
  before: { runOf: () => Promise<void> };
  ended(name: string, run: string): Promise<void>;
  /** Every event, as JSON. */
  events(): unknown[];
}> {
  const store = openStore(join(tempDir(), 'store.mdb'));
  afterThisTest(() => store.close());
  const w = world({ clock });
  const live = new Map<string, string>();
  const runs: LedgerRun[] = [];
  const before = { runOf: async () => {} };
  const runOf = (service: string): LedgerRun | null => {
    const run = live.get(service);
    return run === undefined ? null : ({ service, run } as LedgerRun);
  };
  const host = await w.stand<HostProtocol>('host', {
    runOf: async ({ service }) => {
      await before.runOf();
      return { run: runOf(service) };
    },
    runs: () => ({ runs }),
  });
  const journal = await w.stand<EventsProtocol>('events');
  const watched = new Map<string, PortUse>();
  return {
    host,
    live,
    runs,
    before,
    events: () => journal.of('append').flatMap(({ events }) => events.map(({ data }) => JSON.parse(data))),
    ended: (name, run) =>
      store
        .table('ends')
        .put(name, { run, status: 'crashed', exitCode: 1, signal: null, exitUnknown: false, at: 0 }),
    ports: await w.start('ports', portsActor, { store, watched }),
    world: w,
    async again() {
      await w.node.end('ports');
      await w.start('ports', portsActor, { store, watched });
    },
    put: (name, port) =>
      store.table('services').put(name, nextRecord(input(name), port, undefined, Buffer.alloc(32))),
  };
}

/** Listens in this process; resolves with the port. */
async function listen(host: string, port = 0): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.on('error', reject);
    server.listen({ host, port, exclusive: true }, resolve);
  });
  afterThisTest(() => new Promise((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}

const SERVER = `require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })`;

/** A separate program that listens; it prints its port first. */
async function listenApart(
  command: string,
  args: string[],
  options: { env?: NodeJS.ProcessEnv; uid?: number } = {},
): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'], detached: true, ...options });
  const { stdout } = child;
  await once(child, 'spawn');
  afterThisTest(async () => {
    const ended = new Promise((resolve) => child.on('close', resolve));
    process.kill(-must(child.pid), 'SIGKILL');
    await ended;
  });
  const port = await new Promise<number>((resolve, reject) => {
    stdout?.on('data', (text) => resolve(Number(text)));
    child.on('close', () => reject(new Error('it ended')));
  });
  return { child, port };
}

const commOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim();

describe('claims', () => {
  it('list the others that claim the port, in order of their claims', async () => {
    const { ports: ref } = await started();
    const claim = async (owner: string, port: number) =>
      (await ref.ask('claim', { owner, port, protocol: 'http' })).others;
    expect(await claim('web', 8000)).toEqual([]);
    expect(await claim('api', 8000)).toEqual(['web']);
    expect(await claim('web', 8000)).toEqual(['api']);
    expect(await claim('db', 8000)).toEqual(['web', 'api']);
    expect(await claim('web', 8001)).toEqual([]);
    expect(await claim('web', 8000)).toEqual(['api', 'db']);
    await ref.ask('release', { owner: 'api' });
    await ref.ask('release', { owner: 'nobody' });
    expect(await claim('new', 8000)).toEqual(['db', 'web']);
  });

  it('are listed for registered services, with what they speak there', async () => {
    const { ports: ref } = await started();
    const listed = async () => JSON.parse((await ref.ask('claims', { prefix: 'shop--' })).json);
    for (const [owner, port] of Object.entries({ 'shop--web': 8000, 'shop--job': null, other: 8001 }))
      await ref.ask('claim', { owner, port, protocol: 'http' });
    await ref.ask('lease', { owner: 'shop--web/inner', from: 200, to: 200, keep: null });
    const job = { name: 'shop--job', port: null, protocol: 'http' };
    expect(await listed()).toEqual([job, { name: 'shop--web', port: 8000, protocol: 'http' }]);
    await ref.ask('claim', { owner: 'shop--web', port: 8000, protocol: 'tcp' });
    await ref.ask('lease', { owner: 'shop--web', from: 8000, to: 8000, keep: 8000 });
    expect(await listed()).toEqual([job, { name: 'shop--web', port: 8000, protocol: 'tcp' }]);
    await ref.ask('release', { owner: 'shop--web' });
    expect(await listed()).toEqual([job]);
  });

  it('are restored from the registered services after a restart', async () => {
    const it = await started();
    await it.ports.ask('lease', { owner: 'never-registered', from: 200, to: 200, keep: null });
    await it.put('web', 201);
    await it.again();
    const lease = async () =>
      (await it.ports.ask('lease', { owner: 'x', from: 200, to: 202, keep: null })).port;
    expect(await lease()).toBe(200);
    expect(await it.ports.ask('claim', { owner: 'new', port: 201, protocol: 'http' })).toEqual({
      others: ['web'],
    });
  });

  it('are restored for what runs behind doors, whether it listens yet or not, until it is released', async () => {
    const it = await started();
    const run = (service: string, port: number, over: Partial<LedgerRun> = {}, memo = {}): void =>
      void it.runs.push({ service, end: null, memo: { port, doorPort: 80, ...memo }, ...over } as LedgerRun);
    run('web', 200);
    run('ended', 201, { end: {} as RunEnd });
    run('plain', 202, {}, { doorPort: undefined });
    run('api', 203);
    await it.again();
    const lease = async (owner: string, keep: number | null = null) =>
      (await it.ports.ask('lease', { owner, from: 200, to: 206, keep })).port;
    // The run of api ends while the host is asked.
    it.ports.tell('release', { owner: 'api/inner' });
    expect(await Promise.all(['a', 'b', 'c', 'd'].map((owner) => lease(owner)))).toEqual([
      201, 202, 203, 204,
    ]);
    expect(await lease('web/inner', 200)).toBe(200);
    await it.ports.ask('release', { owner: 'web/inner' });
    expect(await lease('e')).toBe(200);
  });

  it('are restored as soon as the host answers', async () => {
    const it = await started();
    const lease = async (owner: string) =>
      (await it.ports.ask('lease', { owner, from: 200, to: 206, keep: null })).port;
    it.host.answer({
      runs: () => {
        throw new Failure('gone', 'no host');
      },
    });
    expect(await lease('a')).toBe(200);
    it.host.answer({ runs: () => ({ runs: it.runs }) });
    it.runs.push({ service: 'web', end: null, memo: { port: 201, doorPort: 80 } } as LedgerRun);
    expect(await lease('b')).toBe(202);
  });
});

describe('a lease', () => {
  it('is the lowest port that is neither registered nor in use', async () => {
    const { ports: ref } = await started();
    const [from, to] = ownPorts(6);
    const busy = await listen('127.0.0.1', from + 2);
    const lease = async (owner: string, keep: number | null = null) =>
      (await ref.ask('lease', { owner, from, to, keep })).port;
    await ref.ask('claim', { owner: 'service', port: from, protocol: 'http' });
    expect(await lease('a')).toBe(from + 1);
    expect(await lease('b')).toBe(busy + 1);
    expect(await lease('b', busy + 1)).toBe(busy + 1);
    expect(await lease('b', busy)).toBe(busy + 1);
    expect(await lease('c', to + 1)).toBe(to + 1);
    await ref.ask('release', { owner: 'a' });
    expect(await lease('d')).toBe(from + 1);
  });

  it.each(['0.0.0.0', '::', '::1', '127.0.0.2'])('skips a port with a listener on %s', async (host) => {
    const { ports: ref } = await started();
    const busy = await listen(host);
    const one = ref.ask('lease', { owner: 'a', from: busy, to: busy, keep: null });
    await expect(one).rejects.toMatchObject({
      code: 'port_in_use',
      message: `port ${busy} is taken: pid ${process.pid} (${commOf(process.pid)}) listens on it`,
    });
    expect(
      (await ref.ask('lease', { owner: 'a', from: busy, to: busy + 50, keep: busy })).port,
    ).toBeGreaterThan(busy);
  });

  it("fails with a reason when none is left, and keeps the owner's port", async () => {
    const { ports: ref } = await started();
    const lease = (owner: string, from: number, to: number) =>
      ref.ask('lease', { owner, from, to, keep: null });
    await lease('a', 200, 201);
    await lease('b', 200, 201);
    await expect(lease('c', 200, 201)).rejects.toMatchObject({
      code: 'port_in_use',
      message: 'no port from 200 to 201 is free',
    });
    await expect(lease('b', 200, 200)).rejects.toMatchObject({
      code: 'port_in_use',
      message: 'port 200 is taken: a has registered it',
    });
    expect(await ref.ask('claim', { owner: 'x', port: 201, protocol: 'http' })).toEqual({ others: ['b'] });
  });

  it('is never given twice, also to simultaneous requests', async () => {
    const owner = fc.constantFrom(...'abcdefgh');
    const call = fc.record({
      owner,
      keep: fc.option(fc.integer({ min: 200, max: 206 })),
      release: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 40 }), async (calls) => {
        const { ports: ref, world: w } = await started();
        const answers = await Promise.all(
          calls.map(({ owner: name, keep, release }) =>
            release
              ? ref.ask('release', { owner: name }).then(() => ({ port: null }))
              : ref.ask('lease', { owner: name, from: 200, to: 204, keep }).catch(isFailure),
          ),
        );
        const have = new Map<string, number>();
        for (const [index, { owner: name }] of calls.entries()) {
          const answer = answers[index];
          if (typeof answer !== 'object') {
            const others = new Set([...have].filter(([other]) => other !== name).map(([, port]) => port));
            for (let port = 200; port <= 204; port += 1) expect(others.has(port)).toBe(true);
          } else if (answer.port === null) have.delete(name);
          else {
            have.set(name, answer.port);
            expect(new Set(have.values()).size).toBe(have.size);
          }
        }
        await w.node.stop();
      }),
      { numRuns: 30 },
    );
  });
});

describe('the holder of a port', () => {
  it('is null for a free port', async () => {
    const { ports: ref } = await started();
    expect(await ref.ask('listener', { port: freePort() })).toEqual({ listener: null });
  });

  it.each(['127.0.0.1', '0.0.0.0', '::1', '::'])('on %s is a process with pid and name', async (host) => {
    const { ports: ref } = await started();
    const port = await listen(host);
    const holder = `pid ${process.pid} (${commOf(process.pid)})`;
    expect(await ref.ask('listener', { port })).toEqual({ listener: { pid: process.pid, holder } });
    // A service without a door that is registered on a port of the daemon.
    await ref.ask('claim', { owner: 'web', port, protocol: 'http' });
    expect(await ref.ask('listener', { port })).toEqual({ listener: { pid: process.pid, holder } });
  });

  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  it.runIf(outside)('is null when the listener has another address of the machine', async () => {
    const { ports: ref } = await started();
    const port = await listen(outside ?? '');
    expect(await ref.ask('listener', { port })).toEqual({ listener: null });
  });

  it('is a service by name only when the run is of this daemon, since another may use the same name', async () => {
    const { ports: ref, live, ended } = await started();
    const env = { ...process.env, BERTH_SERVICE: 'web', BERTH_RUN: 'r1' };
    const { child, port } = await listenApart(process.execPath, ['-e', SERVER], { env });
    const named = async () => (await ref.ask('listener', { port })).listener;
    const foreign = { pid: child.pid, holder: `pid ${child.pid} (${commOf(must(child.pid))})` };
    live.set('web', 'r1');
    expect(await named()).toEqual(foreign);
    await ref.ask('claim', { owner: 'web', port: 1, protocol: 'http' });
    expect(await named()).toEqual({ pid: child.pid, holder: 'web' });
    live.set('web', 'r2');
    expect(await named()).toEqual(foreign);
    live.clear();
    expect(await named()).toEqual(foreign);
    await ended('web', 'r1');
    expect(await named()).toEqual({ pid: child.pid, holder: 'web' });
  });

  it('is a service by name when its run ends while the host is asked for it', async () => {
    const { ports: ref, before, ended } = await started();
    const env = { ...process.env, BERTH_SERVICE: 'web', BERTH_RUN: 'r1' };
    const { child, port } = await listenApart(process.execPath, ['-e', SERVER], { env });
    await ref.ask('claim', { owner: 'web', port: 1, protocol: 'http' });
    before.runOf = () => ended('web', 'r1');
    expect((await ref.ask('listener', { port })).listener).toEqual({ pid: child.pid, holder: 'web' });
  });

  it('is a service by the environment of its parent process when the process has no mark', async () => {
    const { ports: ref, live } = await started();
    await ref.ask('claim', { owner: 'web', port: 1, protocol: 'http' });
    live.set('web', 'r1');
    const script = `env -i ${process.execPath} -e "${SERVER}" & wait`;
    const { port } = await listenApart('sh', ['-c', script], {
      env: { ...process.env, BERTH_SERVICE: 'web', BERTH_RUN: 'r1' },
    });
    expect((await ref.ask('listener', { port })).listener?.holder).toBe('web');
  });

  it('is a service by its first process when that has overwritten its environment, and by its session', async () => {
    const { ports: ref, runs } = await started();
    const { child, port } = await listenApart('sh', [
      '-c',
      `env -i ${process.execPath} -e "${SERVER}" & wait`,
    ]);
    const { startTicks } = must(processRow(must(child.pid)));
    const run = (over: Partial<LedgerRun>): LedgerRun =>
      ({ service: 'redis', run: 'r1', pid: must(child.pid), startTicks, end: null, ...over }) as LedgerRun;
    const holder = async () => (await ref.ask('listener', { port })).listener?.holder;
    const foreign = await holder();
    // Newer versions of Node call themselves MainThread.
    expect(foreign).toMatch(/^pid \d+ \((?:node|MainThread)\)$/);
    runs.push(run({ pid: 1 }), run({ end: {} as RunEnd }));
    expect(await holder()).toBe(foreign);
    runs.push(run({}));
    expect(await holder()).toBe('redis');
    const use = {
      owner: 'web',
      run: 'r2',
      pid: must((await listenApart('sh', ['-c', 'echo 1; sleep 600'])).child.pid),
      port,
    };
    expect(await ref.ask('foreignHolder', use)).toEqual({ holder: 'redis' });
    expect(await ref.ask('foreignHolder', { ...use, owner: 'redis' })).toEqual({ holder: null });
  });

  it.runIf(process.getuid?.() === 0)('is another user, by name', async () => {
    const { ports: ref } = await started();
    const uid = Number(/^nobody:[^:]*:(\d+)/m.exec(readFileSync('/etc/passwd', 'utf8'))?.[1]);
    const { port } = await listenApart(process.execPath, ['-e', SERVER], { uid });
    expect(await ref.ask('listener', { port })).toEqual({ listener: { pid: null, holder: 'user nobody' } });
  });

  it('is unknown when no process with the socket is found', async () => {
    const row = { port: 8000, address: '127.0.0.1', uid: process.getuid?.() ?? 0, inode: 1 };
    expect(await portHolderOf(8000, [row])).toEqual({ pid: null, label: 'unknown', mark: null, line: [] });
  });
});

describe('a foreign holder of the port of a run', () => {
  /** A run whose first process is `pid`; by default one that starts nothing. */
  async function useOf(port: number, pid?: number): Promise<PortUse> {
    const first = pid ?? must((await sleeper()).pid);
    return { owner: 'web', run: 'r1', pid: first, port };
  }
  async function sleeper(): Promise<ChildProcess> {
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    await once(child, 'spawn');
    afterThisTest(() => void child.kill('SIGKILL'));
    return child;
  }
  const otherFamily = (host: string): string => (host === '::1' ? '127.0.0.1' : '::1');

  it('is null if only the run itself listens, or nobody does', async () => {
    const { ports: ref } = await started();
    expect(await ref.ask('foreignHolder', await useOf(freePort()))).toEqual({ holder: null });
    const port = await listen('127.0.0.1');
    expect(await ref.ask('foreignHolder', await useOf(port, process.pid))).toEqual({ holder: null });
  });

  it('is null for a server of this user that has left the process tree of the run', async () => {
    const { ports: ref, live } = await started();
    await ref.ask('claim', { owner: 'web', port: 1, protocol: 'http' });
    live.set('web', 'r1');
    const unmarked = await listenApart(process.execPath, ['-e', SERVER]);
    const env = { ...process.env, BERTH_SERVICE: 'web', BERTH_RUN: 'r1' };
    const marked = await listenApart(process.execPath, ['-e', SERVER], { env });
    for (const { port } of [unmarked, marked])
      expect(await ref.ask('foreignHolder', await useOf(port))).toEqual({ holder: null });
  });

  it('is another service of this daemon, and not one of another daemon', async () => {
    const { ports: ref, live } = await started();
    const env = { ...process.env, BERTH_SERVICE: 'api', BERTH_RUN: 'r7' };
    const { child, port } = await listenApart(process.execPath, ['-e', SERVER], { env });
    expect(await ref.ask('foreignHolder', await useOf(port))).toEqual({ holder: null });
    await ref.ask('claim', { owner: 'api', port: 1, protocol: 'http' });
    live.set('api', 'r7');
    expect(await ref.ask('foreignHolder', await useOf(port))).toEqual({ holder: 'api' });
    // What a run has started is of it, whatever mark it bears.
    expect(await ref.ask('foreignHolder', await useOf(port, child.pid))).toEqual({ holder: null });
    expect(await ref.ask('foreignHolder', await useOf(port, process.pid))).toEqual({ holder: null });
  });

  describe.runIf(canBecomeOthers)('of another user', () => {
    it.each(['127.0.0.1', '::1', '0.0.0.0'])('is named on %s, alone or beside the run', async (host) => {
      const { ports: ref } = await started();
      // A port that port 0 gets is free on one address only.
      const { port, pid } = await listenAsOther(host, freePort());
      const use = await useOf(port);
      expect(await ref.ask('foreignHolder', use)).toEqual({ holder: OTHER_USER });
      if (host !== '0.0.0.0') {
        await listen(otherFamily(host), port);
        expect(await ref.ask('foreignHolder', use)).toEqual({ holder: OTHER_USER });
      }
      expect(await ref.ask('foreignHolder', await useOf(port, pid))).toEqual({ holder: null });
    });

    it.each(['127.0.0.1', '::1'])(
      'that begins to listen on %s while it runs is reported once',
      async (host) => {
        const clock = virtualClock();
        const { ports: ref, events, again } = await started(clock);
        const own = await listen(otherFamily(host), freePort());
        const use = await useOf(own);
        await ref.ask('watch', use);
        await ref.ask('watch', { ...use, owner: 'api', run: 'r2', port: freePort() });
        await clock.advance(10_000);
        expect(events()).toEqual([]);
        await listenAsOther(host, own);
        await again();
        await clock.advance(10_000);
        await settle();
        expect(events()).toEqual([{ port: own, claimedBy: 'web', holder: OTHER_USER }]);
      },
    );

    it('that begins to listen after the end of the run is not reported', async () => {
      const clock = virtualClock();
      const { ports: ref, events } = await started(clock);
      const use = await useOf(freePort());
      await ref.ask('watch', use);
      await ref.ask('unwatch', { run: use.run });
      await listenAsOther('127.0.0.1', use.port);
      await clock.advance(10_000);
      await settle();
      expect(events()).toEqual([]);
    });
  });
});
