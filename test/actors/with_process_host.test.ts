// The supervisor with the real process host, the real store and journal, real processes and sockets.

import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventsActor } from '../../src/actors/events/events.ts';
import { groupsActor } from '../../src/actors/groups/groups.ts';
import { portsActor } from '../../src/actors/ports/ports.ts';
import { registryActor } from '../../src/actors/registry/registry.ts';
import { askHost } from '../../src/actors/service/check_probes.ts';
import { serviceActor } from '../../src/actors/service/service.ts';
import type { ServiceConfig } from '../../src/actors/service/service_parts.ts';
import { connectHost } from '../../src/adapters/host/host_connection.ts';
import { bootId } from '../../src/adapters/process/process_table.ts';
import { limitProbes, socketProbe } from '../../src/adapters/ready_probe.ts';
import { openStore } from '../../src/adapters/storage/store.ts';
import { mayAsk } from '../../src/protocol/address.ts';
import type { GroupsProtocol } from '../../src/protocol/groups.ts';
import type { RegistryProtocol } from '../../src/protocol/registry.ts';
import type { ServiceProtocol, ServiceSpec, ServiceState } from '../../src/protocol/service.ts';
import type { StatsProtocol } from '../../src/protocol/stats.ts';
import type { ViewsProtocol } from '../../src/protocol/views.ts';
import { actor, Failure, type Node, type Ref } from '../../src/runtime/actor.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { createNode } from '../../src/runtime/node.ts';
import { CHECK } from '../../src/settings/limits.ts';
import { freePort, ownPorts } from '../kit/free_ports.ts';
import { must } from '../kit/must.ts';
import { after, entry, eventually, hostsOf, isRunning, newState, useHost } from '../kit/process_host.ts';
import { screensHere, statesHere } from '../kit/screens.ts';
import { spec } from '../kit/service_inputs.ts';

useHost();

interface Daemon {
  node: Node;
  registry: Ref<RegistryProtocol>;
  groups: Ref<GroupsProtocol>;
  of(name: string): Ref<ServiceProtocol>;
  state(name: string): ServiceState | undefined;
  /** Type, name and data of every event but registrations. */
  events(): Promise<[type: string, data: Record<string, unknown>][]>;
  add(over: Partial<ServiceSpec>): Promise<Ref<ServiceProtocol>>;
  /** As a kill -9 of the daemon: nobody is notified. */
  die(): Promise<void>;
}

/** A services thread of a daemon, and its messages to the front. */
async function daemon(stateDir: string): Promise<Daemon> {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const crashes: unknown[] = [];
  const node = createNode({
    name: 'services-0',
    clock: systemClock,
    nodeOf: (address) => (address === 'host' ? 'host' : 'services-0'),
    mayAsk,
    onCrash: (address, error) => crashes.push([address, error]),
  });
  // The host takes a second daemon in this process for the first one, returned: the same pid is alive.
  const who = { version: 'test', session: 'one', node: node.name };
  let isOver = false;
  const connect = async (): Promise<void> => {
    const { pipe } = await connectHost({ stateDir, entry, identity: who, withinMs: 20_000 });
    if (isOver) pipe.close();
    else node.connect('host', pipe);
  };
  await connect();
  const store = openStore(join(stateDir, 'store.mdb'));
  const die = async (): Promise<void> => {
    if (isOver) return;
    isOver = true;
    node.disconnect('host');
    await node.stop();
    await store.close();
    expect(crashes).toEqual([]);
  };
  after(die);
  const states = new Map<string, ServiceState>();
  const nothing = (): null => null;
  const views = actor<ViewsProtocol, null>('views', () => ({
    snapshot: nothing,
    specs: nothing,
    removed: nothing,
    stats: nothing,
    events: nothing,
    grew: nothing,
    schedules: nothing,
    agents: nothing,
    states: ({ rows }) => {
      for (const row of rows) states.set(row.name, row);
      return null;
    },
  }));
  await node.start('views', views, null);
  await node.start(
    'stats',
    actor<StatsProtocol, null>('stats', () => ({
      track: nothing,
      forget: nothing,
      history: () => ({ points: [] }),
    })),
    null,
  );
  const folder = join(stateDir, 'events');
  const marks = store.table('marks');
  const report = (): void => {};
  await node.start('events', eventsActor, { folder, marks, boot: bootId(), report, subscribed: false });
  await node.start('ports', portsActor, { store, watched: new Map() });
  const environment: [string, string][] = [
    ['PATH', process.env['PATH'] ?? ''],
    ['BERTH_TEST', stateDir],
  ];
  const probe = limitProbes(socketProbe(systemClock), systemClock);
  const config: ServiceConfig = {
    store,
    environment,
    agentAccess: () => [],
    umask: 0o022,
    probe,
    hashInputs: async () => '',
    execProbe: limitProbes(askHost, systemClock, CHECK.maxConcurrentExecs),
    bootedAt: 0,
    ports: [21_000, 21_100],
    logs: join(stateDir, 'logs'),
    screens: screensHere,
    states: statesHere(systemClock),
    viewersInThread: { count: 0 },
    commandsWaiting: { count: 0 },
  };
  node.family('service:', serviceActor, () => config);
  await node.start('groups', groupsActor, { store, bootedAt: 0 });
  const ranges = { service: [21_000, 21_100], agent: [21_101, 21_200] } as const;
  const records = await node.start('registry', registryActor, {
    store,
    ports: ranges,
    bootedAt: 0,
    report: () => {},
    leaveOut: () => {},
  });
  await records.ask('boot', { autostart: true });
  node.onPeerLost((peer) => {
    if (peer !== 'host' || isOver) return;
    void connect().then(async () => {
      for (const name of states.keys()) await node.ref(`service:${name}`).ask('adopt', {});
    });
  });
  const of = (name: string): Ref<ServiceProtocol> => node.ref(`service:${name}`);
  return {
    node,
    registry: records,
    groups: node.ref('groups'),
    of,
    state: (name) => states.get(name),
    async events() {
      const query = { types: null, names: null, since: null, limit: 1_000 };
      const { events } = await node.ref('events').ask('history', query);
      return events
        .filter(({ type }) => type !== 'service.registered')
        .map(({ type, data }) => [type, JSON.parse(data)]);
    },
    async add(over) {
      const { env, ...rest } = spec({ port: freePort(), ...over });
      await records.ask('register', { input: { ...rest, env: env.length > 0 ? env : null } });
      return of(rest.name);
    },
    die,
  };
}

const failure = async (answer: Promise<unknown>): Promise<Failure> => {
  const error = await answer.then(
    (value) => new Error(`answered ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  if (error instanceof Failure) return error;
  throw error;
};
const hint = ({ detail }: Failure): string => (detail as { hint: string }).hint;
const start = (of: Ref<ServiceProtocol>, timeoutMs: number | null = null) =>
  of.ask('start', { timeoutMs, wait: true });
const stop = (of: Ref<ServiceProtocol>, graceMs: number | null = null) => of.ask('stop', { graceMs });

/** A web server that begins to listen on $PORT after `delay` ms. */
const server = (delay = 0): string =>
  `exec ${process.execPath} -e "setTimeout(() => require('http').createServer((q, r) => r.end('hi')).listen(process.env.PORT, '127.0.0.1'), ${delay}); console.log('up')"`;

describe('one service', () => {
  it('is started, becomes ready and is stopped, after which its process is gone and its port is free', async () => {
    const { add, events, state } = await daemon(newState());
    const port = freePort();
    const web = await add({ port, cmd: server(200), ready: `http://localhost:${port}/` });
    const { status, pid } = await start(web);
    expect(status).toBe('running');
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).toContain('createServer');
    expect(state('web')).toMatchObject({
      status: 'running',
      process: { pid, port, rssMB: expect.any(Number) },
    });
    // The memory of the server itself: at its spawn it was a shell of 2 MB.
    expect(state('web')?.process?.rssMB).toBeGreaterThan(10);
    const proof = await stop(web);
    expect(proof).toMatchObject({
      status: 'stopped',
      signal: 'SIGTERM',
      escalated: false,
      left: [],
      portFree: true,
    });
    expect(isRunning(must(pid))).toBe(false);
    expect(await events()).toEqual([
      ['service.started', { name: 'web', pid, url: `http://localhost:${port}` }],
      ['service.stopped', { name: 'web', exitCode: null, signal: 'SIGTERM' }],
    ]);
    expect(state('web')).toMatchObject({ status: 'stopped', process: null });
  });

  it('fails to start with its last lines when it does not become ready', async () => {
    const { add, state } = await daemon(newState());
    const port = freePort();
    const web = await add({
      port,
      cmd: 'echo still thinking; exec sleep 600',
      ready: `http://localhost:${port}/`,
    });
    const error = await failure(start(web, 300));
    expect(error).toMatchObject({ code: 'ready_timeout' });
    expect(hint(error)).toContain('refused');
    expect(hint(error)).toContain(`Nothing listens on port ${port}`);
    expect(hint(error)).toContain('still thinking');
    expect(state('web')?.status).toBe('stopped');
  });

  it.each([
    ['echo broken; exit 3', 'crashed', 'ended with exit code 3', 'broken'],
    ['exit 0', 'stopped', 'ended with exit code 0', 'Its log is empty'],
    ['no-such-program', 'crashed', 'exit code 127 (the shell did not find the command)', 'not found'],
    ['kill -9 $$', 'crashed', 'was ended by SIGKILL', 'short of memory'],
  ])('that ends at once (%s) is %s', async (cmd, status, message, says) => {
    const { add, state } = await daemon(newState());
    const web = await add({ cmd, ready: 'http://localhost:1/' });
    const error = await failure(start(web));
    expect(error.code).toBe('start_failed');
    expect(error.message).toContain(message);
    expect(hint(error)).toContain(says);
    expect(state('web')?.status).toBe(status);
  });

  it('names a missing working directory', async () => {
    const { add } = await daemon(newState());
    const error = await failure(start(await add({ cwd: '/no/such/folder' })));
    expect([error.code, error.message]).toEqual(['start_failed', expect.stringContaining('/no/such/folder')]);
  });

  it('is not started on a port that is in use', async () => {
    const { add, events } = await daemon(newState());
    const port = freePort();
    const holder = spawn('python3', ['-m', 'http.server', String(port), '--bind', '127.0.0.1'], {
      stdio: 'ignore',
    });
    after(() => void holder.kill('SIGKILL'));
    const web = await add({ port, cmd: 'exec sleep 600' });
    await eventually(async () => (await web.ask('explain', {})).portHolder !== null);
    const error = await failure(start(web));
    expect([error.code, error.message]).toEqual([
      'port_in_use',
      expect.stringContaining(`pid ${holder.pid} (python3)`),
    ]);
    expect(await events()).toEqual([
      ['port.conflict', { port, claimedBy: 'web', holder: `pid ${holder.pid} (python3)` }],
    ]);
  });

  it('is restarted although its killed shell left a child on its port', async () => {
    const { add, state } = await daemon(newState());
    const port = freePort();
    const ready = `tcp://127.0.0.1:${port}`;
    const web = await add({ port, ready, cmd: `python3 -m http.server ${port} --bind 127.0.0.1; true` });
    const { pid } = await start(web);
    process.kill(must(pid), 'SIGKILL');
    await eventually(() => state('web')?.status === 'crashed');
    // A host that takes half a second to answer leaves the holder a pid without a name.
    await eventually(async () => (await web.ask('explain', {})).portHolder === 'web');
    expect(await start(web)).toMatchObject({ status: 'running' });
    expect(await stop(web)).toMatchObject({ portFree: true, left: [] });
  });

  it('is restarted after a crash as its policy says, until it is stopped', async () => {
    const { add, state, events } = await daemon(newState());
    const web = await add({ cmd: 'exec sleep 600', restart: 'on-failure' });
    const { pid } = await start(web);
    process.kill(must(pid), 'SIGKILL');
    await eventually(() => state('web')?.restarts === 1 && state('web')?.status === 'running');
    expect(state('web')?.process?.pid).not.toBe(pid);
    await stop(web);
    expect((await events()).map(([type]) => type)).toEqual([
      'service.started',
      'service.crashed',
      'service.started',
      'service.stopped',
    ]);
  });

  it('runs in a terminal if it is an agent, and its exit is reported as an event', async () => {
    const { add, state, events } = await daemon(newState());
    const agent = { agentType: null, hostname: 'ai.agents.localhost', cols: 100, rows: 30 };
    const web = await add({ name: 'ai', group: 'Agents', agent, cmd: 'tty; stty size; sleep 0.3; exit 4' });
    const { status, pid } = await web.ask('start', { timeoutMs: null, wait: false });
    expect([status, pid]).toEqual(['starting', expect.any(Number)]);
    await eventually(() => state('ai')?.status === 'crashed');
    const query = { lines: 10, stream: null, timestamps: false, raw: false };
    const lines = await web.ask('logs', query);
    expect(Buffer.from(lines).toString()).toMatch(/^\["\/dev\/pts\/\d+","30 100"\]$/);
    expect((await events()).at(-1)).toEqual(['service.crashed', { name: 'ai', exitCode: 4, signal: null }]);
  });
});

describe('processes left behind by a run', () => {
  /** Leaves a process behind, prints its pid, and fails. */
  const LEAVES = 'sleep 600 & echo $!; exit 1';
  const left = async (web: Ref<ServiceProtocol>): Promise<number[]> => {
    const query = { lines: 10, stream: null, timestamps: false, raw: false };
    return JSON.parse(Buffer.from(await web.ask('logs', query)).toString()).map(Number);
  };

  it('are ended by a stop, and before the next run, whether a policy or a client starts it', async () => {
    const { add } = await daemon(newState());
    const web = await add({ name: 'web', cmd: LEAVES, restart: 'always' });
    await start(web).catch(() => {});
    await eventually(async () => (await left(web)).length >= 3);
    await stop(web);
    expect((await left(web)).filter(isRunning)).toEqual([]);
    const other = await add({ name: 'other', cmd: LEAVES });
    for (let time = 1; time <= 2; time += 1) {
      await start(other).catch(() => {});
      await eventually(async () => (await left(other)).length === time);
    }
    const pids = await left(other);
    expect(pids.map(isRunning)).toEqual([false, true]);
    await stop(other);
    expect(pids.filter(isRunning)).toEqual([]);
  });
});

describe('a group', () => {
  it('of 100 is started and stopped', async () => {
    const { add, groups, events } = await daemon(newState());
    const [from] = ownPorts(100);
    for (let index = 0; index < 100; index += 1)
      await add({
        name: `s${index}`,
        port: from + index,
        group: 'many',
        cmd: 'exec sleep 600',
        dependsOn: index % 10 ? [`s${index - 1}`] : [],
      });
    const started = await groups.ask('start', { name: 'many', timeoutMs: null });
    expect(started.services.filter(({ status }) => status === 'running')).toHaveLength(100);
    const stopped = await groups.ask('stop', { name: 'many', graceMs: null });
    expect(stopped.services.filter(({ status }) => status === 'stopped')).toHaveLength(100);
    for (const { pid } of started.services) expect(isRunning(must(pid))).toBe(false);
    expect(await events()).toHaveLength(200);
  });

  it('is stopped completely when the daemon shuts down', async () => {
    const { add, groups } = await daemon(newState());
    const names = ['db', 'api', 'web'];
    const pids: number[] = [];
    for (const [index, name] of names.entries()) {
      const of = await add({
        name,
        cmd: 'exec sleep 600',
        dependsOn: names.slice(0, index),
        restart: 'always',
      });
      pids.push(must((await start(of)).pid));
    }
    await groups.ask('shutdown', {});
    expect(pids.filter(isRunning)).toEqual([]);
  });
});

describe('a later daemon', () => {
  it('finds running processes with their pids and ended ones with their exit codes, and continues starts', async () => {
    const stateDir = newState();
    const first = await daemon(stateDir);
    const port = freePort();
    const lives = await first.add({ name: 'lives', cmd: 'exec sleep 600' });
    const ends = await first.add({
      name: 'ends',
      cmd: 'read x < $FIFO; exit 5',
      env: [['FIFO', join(stateDir, 'go')]],
    });
    const starts = await first.add({
      name: 'starts',
      port,
      cmd: server(1_500),
      ready: `http://localhost:${port}/`,
    });
    execFileSync('mkfifo', [join(stateDir, 'go')]);
    const { pid } = await start(lives);
    await start(ends);
    const startedAt = first.state('lives')?.process?.startedAt;
    const starting = start(starts).catch((error: unknown) => error);
    await eventually(() => first.state('starts')?.process);
    await first.die();
    await starting;
    const ended = must(first.state('ends')?.process?.pid);
    await new Promise((resolve) => spawn('sh', ['-c', `echo > ${join(stateDir, 'go')}`]).on('exit', resolve));
    await eventually(() => !isRunning(ended));
    const second = await daemon(stateDir);
    expect(second.state('lives')).toMatchObject({ status: 'running', process: { pid, startedAt } });
    await eventually(() => second.state('ends')?.status === 'crashed');
    expect(second.state('ends')?.end).toMatchObject({ exitCode: 5, exitUnknown: false });
    await eventually(() => second.state('starts')?.status === 'running');
    const types = async () => (await second.events()).map(([type, { name }]) => `${type} ${name}`).sort();
    // A service is shown as running before its event is in the journal.
    await expect
      .poll(types)
      .toEqual([
        'service.crashed ends',
        'service.started ends',
        'service.started lives',
        'service.started starts',
      ]);
  });
});

describe('a killed process host', () => {
  it('leaves services running, requests are answered meanwhile, and the daemon finds the next host', async () => {
    const stateDir = newState();
    const { add, state, events } = await daemon(stateDir);
    const web = await add({ cmd: 'exec sleep 600' });
    const other = await add({ name: 'other', cmd: 'exec sleep 600' });
    const { pid } = await start(web);
    for (const host of hostsOf(stateDir)) process.kill(host, 'SIGKILL');
    const answer = await start(other).then(
      ({ status }) => status,
      ({ code }: Failure) => code,
    );
    expect(['running', 'daemon_busy']).toContain(answer);
    await eventually(() =>
      start(other).then(
        () => true,
        ({ code }: Failure) => code === 'already_running',
      ),
    );
    expect(isRunning(must(pid))).toBe(true);
    expect(state('web')).toMatchObject({ status: 'running', process: { pid } });
    process.kill(must(pid), 'SIGTERM');
    await eventually(() => state('web')?.status === 'crashed');
    expect(state('web')?.end).toMatchObject({ exitCode: null, exitUnknown: true });
    expect((await events()).filter(([, { name }]) => name === 'web')).toEqual([
      ['service.started', expect.anything()],
      ['service.crashed', { name: 'web', exitCode: null, signal: null }],
    ]);
    await stop(other);
  });
});
