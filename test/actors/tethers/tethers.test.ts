// The records of tethers and their ports, with a real store and real listeners. There is no cluster:
// workloads are a stand-in.
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tetherActor } from '../../../src/actors/tethers/tether.ts';
import { tethersActor } from '../../../src/actors/tethers/tethers.ts';
import { openLoopbackPeers } from '../../../src/adapters/process/loopback_peers.ts';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import { embeddedCloudStore } from '../../../src/adapters/storage/embedded_cloud.ts';
import { openStore } from '../../../src/adapters/storage/store.ts';
import { tetherItem } from '../../../src/front/views/cloud_json.ts';
import type { WorkloadsProtocol } from '../../../src/protocol/cloud.ts';
import type { CloudViewsProtocol } from '../../../src/protocol/cloud_views.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { PrincipalsProtocol } from '../../../src/protocol/principals.ts';
import { type StoredTether, type TethersProtocol, tetherSettings } from '../../../src/protocol/tethers.ts';
import type { ThreadsProtocol } from '../../../src/protocol/threads.ts';
import type { WorkloadKind } from '../../../src/protocol/workload_kinds.ts';
import { Failure, type Ref } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import {
  afterThisTest,
  realTime,
  type Stand,
  settle,
  tempDir,
  virtualClock,
  type World,
  world,
} from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { ownPorts } from '../../kit/free_ports.ts';
import { kubeDouble } from '../../kit/kube_double.ts';
import { type Client, client, heldConnections, RULE, STORED, UNUSED } from './tether_kit.ts';

interface Part {
  world: World;
  tethers: Ref<TethersProtocol>;
  threads: Stand<ThreadsProtocol>;
  workloads: Stand<WorkloadsProtocol>;
  /** The records as the front shows them. */
  shown(): Record<string, unknown>[];
  stop(): Promise<void>;
}

/** The tethers of a daemon with its state in `folder`. `saving` is awaited before a record is saved. */
async function part(
  folder: string,
  ports: [number, number],
  saving: (tether: StoredTether) => Promise<void> = async () => undefined,
  maxTethers = 0,
): Promise<Part> {
  const space = world({ clock: virtualClock() });
  const store = openStore(join(folder, 'store'));
  const peers = await openLoopbackPeers();
  const stop = async (): Promise<void> => {
    await space.node.stop();
    await store.close();
    peers.close();
  };
  let stopped: Promise<void> | null = null;
  const stopOnce = (): Promise<void> => {
    stopped ??= stop();
    return stopped;
  };
  afterThisTest(stopOnce);
  const unknown = ({ id }: { id: string }): never => {
    throw fail('unknown_workload', `There is no workload ${id}.`);
  };
  const workloads = await space.stand<WorkloadsProtocol>('workloads', {
    referenceOf: unknown,
    tetherTarget: unknown,
  });
  const views = await space.stand<CloudViewsProtocol>('cloudviews');
  const threads = await space.stand<ThreadsProtocol>('threads');
  space.node.family('tether:', tetherActor, () => ({
    rule: RULE,
    peers,
    networkClock: realTime,
    held: heldConnections(),
    link: null,
  }));
  const cloudStore = embeddedCloudStore(store);
  const saveTether: CloudStore['saveTether'] = async (tether) => {
    await saving(tether);
    return cloudStore.saveTether(tether);
  };
  const ref = await space.start('tethers', tethersActor, {
    store: { ...cloudStore, saveTether },
    ports,
    hasRelay: false,
    remote: null,
    isServer: false,
    quotas: { tethers: maxTethers },
  });
  return {
    world: space,
    tethers: ref,
    threads,
    workloads,
    stop: stopOnce,
    shown() {
      const rows = new Map<string, Record<string, unknown>>();
      for (const { kind, message } of views.received) {
        if (kind === 'tethers') {
          const { rows: reported, all } = message as Parameters<CloudViewsProtocol['tethers']>[0];
          if (all) rows.clear();
          for (const row of reported) rows.set(row.id, tetherItem(row));
        } else if (kind === 'tethersRemoved') {
          for (const id of (message as { ids: string[] }).ids) rows.delete(id);
        }
      }
      return [...rows.values()];
    },
  };
}

/** A workload of a cluster that does not answer: connections are held for some time. */
const known = (
  workloads: Stand<WorkloadsProtocol>,
  clusterId = 'C1',
  kind: WorkloadKind = 'Deployment',
): void =>
  workloads.answer({
    referenceOf: () => ({ clusterId, kind, namespace: 'n', name: 'w' }),
    tetherTarget: () => ({
      clusterId,
      access: {
        server: 'https://127.0.0.1:1',
        ca: null,
        tlsServerName: null,
        credential: { kind: 'token', token: 't' },
      },
      workload: { id: 'W1', kind: 'Deployment', namespace: 'n', name: 'w', selector: 'app=w' },
      state: 'awake',
      replicas: 1,
    }),
  });

const input = { workloadId: 'W1', containerPort: 80, label: 'web', wake: true, ...tetherSettings({}) };
function occupy(port: number, host = '127.0.0.1'): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  afterThisTest(() => void server.close());
  return new Promise((resolve) => server.listen(port, host, () => resolve(server)));
}

const canConnect = async (port: number, host?: string): Promise<boolean> => {
  const { socket } = client(port, '', host);
  const answer = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  });
  // Connections that stay would be refused at last, because there are too many.
  socket.destroy();
  return answer;
};

describe('tethers', () => {
  it('are limited for each token by its quota, and unlimited for callers without a quota', async () => {
    const { tethers: ref, workloads } = await part(tempDir(), ownPorts(8), undefined, 2);
    known(workloads);
    const create = (...owners: string[]) =>
      ref.ask('create', owners.length > 0 ? { ...input, owners } : input);
    const { tether_id: id } = await create('token:ci', 'group:devs');
    await create('token:ci', 'group:devs');
    await expect(create('token:ci', 'group:devs')).rejects.toMatchObject({ code: 'quota_exceeded' });
    await create('user:anna', 'group:devs');
    for (let count = 0; count < 3; count += 1) await create();
    await ref.ask('remove', { id });
    await create('token:ci', 'group:devs');
  });

  it('end when the right to them is lost while they are created', async () => {
    const { world: space, tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(4));
    known(workloads);
    const principals = await space.stand<PrincipalsProtocol>('principals', {
      mayKeep: ({ owners }) => ({ isAllowed: !owners.includes('token:revoked') }),
    });
    await ref.ask('create', { ...input, owners: ['token:ci'] });
    const created = ref.ask('create', { ...input, owners: ['token:revoked'] });
    await expect(created).rejects.toMatchObject({ code: 'forbidden' });
    expect(shown()).toHaveLength(1);
    await ref.ask('create', input);
    expect(principals.of('mayKeep')).toHaveLength(2);
  });

  it('wake a workload that was gone and is there again, however long the wake takes', async () => {
    const { world: space, tethers: ref, workloads } = await part(tempDir(), ownPorts(1));
    known(workloads);
    const { tether_id: tether, local_port: port } = await ref.ask('create', input);
    await ref.ask('activate', { id: tether });
    workloads.answer({
      tetherTarget: ({ id }) => {
        throw fail('unknown_workload', `there is no workload ${id}`);
      },
    });
    const early = client(port, 'x');
    expect(await early.ended).toBe('ECONNRESET');
    known(workloads);
    const target = await space.ref<WorkloadsProtocol>('workloads').ask('tetherTarget', { id: 'W1' });
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    const woken = deferred<{ replicas: number }>();
    workloads.answer({
      tetherTarget: () => ({ ...target, access: double.access, state: 'asleep' as const, replicas: 0 }),
      wake: () => woken.promise,
    });
    const late = client(port, 'x');
    let end = '';
    void late.ended.then((how) => {
      end = how;
    });
    await eventually(async () => {
      await space.clock.advance(TETHER.probeDelayMs);
      return workloads.of('wake').length > 0;
    });
    // The connections that wait are reviewed. A reset would have arrived before the next connection is accepted.
    for (let turn = 0; turn < 3; turn += 1) {
      await space.clock.advance(TETHER.tickIntervalMs);
      expect(await canConnect(port)).toBe(true);
    }
    expect(end).toBe('');
    woken.resolve({ replicas: 1 });
  });

  it('take the lowest free port, and report when there is none', async () => {
    const [from, to] = ownPorts(4);
    const { tethers: ref, workloads, shown } = await part(tempDir(), [from, to]);
    known(workloads);
    await occupy(from + 1);
    const first = await ref.ask('create', input);
    const second = await ref.ask('create', { ...input, label: null });
    const third = await ref.ask('create', input);
    expect([first, second, third].map(({ local_port }) => local_port - from)).toEqual([0, 2, 3]);
    await expect(ref.ask('create', input)).rejects.toMatchObject({ code: 'port_in_use' });
    expect(shown()).toHaveLength(3);
    expect(shown()[0]).toEqual({
      tether_id: first.tether_id,
      workload_id: 'W1',
      workload: { kind: 'Deployment', namespace: 'n', name: 'w' },
      container_port: 80,
      label: 'web',
      local_port: from,
      state: 'idle',
      connections: 0,
      bytes_in: 0,
      bytes_out: 0,
      last_error: null,
      previous_port: null,
      wake: true,
      pod: null,
      allow_not_ready: false,
      half_closed_timeout: 60_000,
    });
    expect(await canConnect(from)).toBe(false);
  });

  it('get different ports when created and opened simultaneously', async () => {
    const [from, to] = ownPorts(6);
    const { tethers: ref, workloads } = await part(tempDir(), [from, to]);
    known(workloads);
    const returned = await ref.ask('create', input);
    await ref.ask('deactivate', { id: returned.tether_id });
    const made = await Promise.all([
      ref.ask('create', input),
      ref.ask('activate', { id: returned.tether_id }),
      ref.ask('create', input),
    ]);
    expect(made.map(({ local_port }) => local_port - from).sort()).toEqual([0, 1, 2]);
  });

  it('do not wait for operations on another tether, and run operations on one tether in order', async () => {
    const saved = deferred<void>();
    const slow = { id: '' };
    const { tethers: ref, workloads } = await part(tempDir(), ownPorts(3), ({ id }) =>
      id === slow.id ? saved.promise : Promise.resolve(),
    );
    known(workloads);
    slow.id = (await ref.ask('create', input)).tether_id;
    const { tether_id: id } = await ref.ask('create', input);
    const order: string[] = [];
    const first = ref.ask('activate', { id: slow.id }).then(() => order.push('activate'));
    const removed = ref.ask('remove', { id: slow.id }).then(() => order.push('remove'));
    await ref.ask('activate', { id });
    expect(order).toEqual([]);
    saved.resolve();
    await Promise.all([first, removed]);
    expect(order).toEqual(['activate', 'remove']);
    await expect(ref.ask('activate', { id: slow.id })).rejects.toMatchObject({ code: 'unknown_tether' });
  });

  it('connect only to the named pod of a StatefulSet', async () => {
    const { tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(2));
    known(workloads);
    const wrong = (pod: string) => ref.ask('create', { ...input, pod });
    await expect(wrong('w-0')).rejects.toMatchObject({
      code: 'invalid_spec',
      detail: { details: [{ path: 'pod', message: expect.stringContaining('Deployment') }] },
    });
    known(workloads, 'C1', 'StatefulSet');
    for (const pod of ['w', 'w-', 'w-x', 'other-0', 'w-0-1'])
      await expect(wrong(pod)).rejects.toMatchObject({ code: 'invalid_spec' });
    await wrong('w-0');
    expect(shown()).toMatchObject([{ pod: 'w-0', allow_not_ready: false, half_closed_timeout: 60_000 }]);
  });

  it('of an earlier version get defaults for the settings that they lack', async () => {
    const folder = tempDir();
    const store = openStore(join(folder, 'store'));
    const {
      pod: _,
      allowNotReady: __,
      halfClosedTimeoutMs: ___,
      ...old
    } = { ...STORED, ...tetherSettings({}) };
    await embeddedCloudStore(store).saveTether(old);
    await store.close();
    const { tethers: ref, shown } = await part(folder, ownPorts(1));
    await ref.ask('boot', {});
    expect(shown()).toMatchObject([{ pod: null, allow_not_ready: false, half_closed_timeout: 60_000 }]);
  });

  it('are created only for existing workloads', async () => {
    const { tethers: ref, shown } = await part(tempDir(), ownPorts(2));
    await expect(ref.ask('create', input)).rejects.toMatchObject({ code: 'unknown_workload' });
    expect(shown()).toEqual([]);
    for (const kind of ['activate', 'deactivate', 'remove'] as const)
      await expect(ref.ask(kind, { id: 'X' })).rejects.toMatchObject({ code: 'unknown_tether' });
  });

  it('listen on both loopback addresses when active; a second activation does no harm', async () => {
    const { tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(2));
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    for (let round = 0; round < 2; round += 1)
      expect(await ref.ask('activate', { id })).toEqual({ tether_id: id, local_port: port, state: 'active' });
    expect(await canConnect(port)).toBe(true);
    expect(await canConnect(port, '::1')).toBe(true);
    expect(shown()[0]).toMatchObject({ state: 'active', local_port: port });
  });

  it('start their thread only when they are activated', async () => {
    const folder = tempDir();
    const ports = ownPorts(4);
    const { tethers: ref, threads, workloads, stop } = await part(folder, ports);
    known(workloads);
    const [used, unused] = [await ref.ask('create', input), await ref.ask('create', input)];
    await ref.ask('deactivate', { id: unused.tether_id });
    expect(threads.received).toEqual([]);
    await ref.ask('activate', { id: used.tether_id });
    expect(threads.of('ensure')[0]).toEqual({ address: `tether:${used.tether_id}` });
    await stop();
    const later = await part(folder, ports);
    known(later.workloads);
    await later.tethers.ask('boot', {});
    await later.tethers.ask('remove', { id: unused.tether_id });
    const addresses = later.threads.of('ensure').map(({ address }) => address);
    expect(new Set(addresses)).toEqual(new Set([`tether:${used.tether_id}`]));
  });

  it('stay idle, and say why, while their thread cannot be started', async () => {
    const { tethers: ref, threads, workloads, shown } = await part(tempDir(), ownPorts(2));
    known(workloads);
    const { tether_id: id } = await ref.ask('create', input);
    threads.answer({
      ensure: () => {
        throw new Failure('gone', 'tethers-0 died too often');
      },
    });
    await expect(ref.ask('activate', { id })).rejects.toMatchObject({ code: 'gone' });
    expect(shown()).toMatchObject([{ state: 'idle' }]);
    threads.answer({ ensure: () => null });
    expect(await ref.ask('activate', { id })).toMatchObject({ state: 'active' });
  });

  it('get another port when theirs was taken meanwhile', async () => {
    const { tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(3));
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    await occupy(port);
    expect(await ref.ask('activate', { id })).toMatchObject({ local_port: port + 1 });
    expect(shown()[0]).toMatchObject({ local_port: port + 1, previous_port: port });
    await ref.ask('activate', { id });
    expect(shown()[0]).toMatchObject({ local_port: port + 1, previous_port: port });
    await ref.ask('deactivate', { id });
    expect(shown()[0]).toMatchObject({ local_port: null, previous_port: null });
    await ref.ask('activate', { id });
    expect(shown()[0]).toMatchObject({ previous_port: null });
  });

  it('do not use a port that another program has on ::1', async () => {
    const [from, to] = ownPorts(3);
    const { tethers: ref, workloads } = await part(tempDir(), [from, to]);
    known(workloads);
    await occupy(from, '::1');
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    expect(port).toBe(from + 1);
    await occupy(port, '::1');
    expect(await ref.ask('activate', { id })).toMatchObject({ local_port: from + 2 });
  });

  it('destroy their connections and free the port when deactivated', async () => {
    const { tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(1));
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    await ref.ask('activate', { id });
    const clients = [client(port, 'held'), client(port), client(port)];
    await Promise.all(clients.map(({ socket }) => new Promise((done) => socket.once('connect', done))));
    expect(await ref.ask('deactivate', { id })).toEqual({ ok: true });
    for (const { ended } of clients) expect(await ended).toMatch(/^(end|ECONNRESET|close)$/);
    expect(shown()[0]).toMatchObject({ state: 'idle', local_port: null, connections: 0 });
    await (await occupy(port)).close();
    expect(await ref.ask('deactivate', { id })).toEqual({ ok: true });
    expect(await ref.ask('activate', { id })).toMatchObject({ local_port: port });
  });

  it('are inactive on disk before they close', async () => {
    const saved = deferred<void>();
    const state = { isHeld: false, isSaving: false };
    const { tethers: ref, workloads } = await part(tempDir(), ownPorts(1), async ({ active }) => {
      if (!state.isHeld || active) return;
      state.isSaving = true;
      await saved.promise;
    });
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    await ref.ask('activate', { id });
    state.isHeld = true;
    const over = ref.ask('deactivate', { id });
    await eventually(() => state.isSaving);
    for (let turn = 0; turn < 20; turn += 1) await settle();
    expect(await canConnect(port)).toBe(true);
    saved.resolve();
    await over;
    expect(await canConnect(port)).toBe(false);
  });

  it('close again when their record cannot be stored', async () => {
    const state = { isFull: false };
    const {
      tethers: ref,
      workloads,
      shown,
    } = await part(tempDir(), ownPorts(1), async () => {
      if (state.isFull) throw fail('storage_full', 'The disk is full.');
    });
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    state.isFull = true;
    await expect(ref.ask('activate', { id })).rejects.toMatchObject({ code: 'storage_full' });
    await eventually(async () => !(await canConnect(port)));
    expect(shown()[0]).toMatchObject({ state: 'idle' });
    state.isFull = false;
    expect(await ref.ask('activate', { id })).toMatchObject({ state: 'active', local_port: port });
  });

  it('are active after a restart, on the same port if it is free', async () => {
    const folder = tempDir();
    const ports = ownPorts(4);
    const before = await part(folder, ports);
    known(before.workloads);
    const ids: string[] = [];
    for (let index = 0; index < 3; index += 1) {
      ids.push((await before.tethers.ask('create', input)).tether_id);
      // Ids sort by their milliseconds.
      await before.world.clock.advance(1);
    }
    for (const id of ids.slice(0, 2)) await before.tethers.ask('activate', { id });
    await before.stop();
    await occupy(ports[0]);
    const after = await part(folder, ports);
    known(after.workloads);
    await after.tethers.ask('boot', {});
    const rows = after
      .shown()
      .map((row) => [row['state'], Number(row['local_port']) - ports[0], row['previous_port']]);
    expect(rows).toEqual([
      ['active', 3, ports[0]],
      ['active', 1, null],
      ['idle', 2, null],
    ]);
    for (const port of [3, 1]) expect(await canConnect(ports[0] + port)).toBe(true);
  });

  it('recover when their actor has ended, and say why it takes a while', async () => {
    const { world: space, tethers: ref, threads, workloads, shown } = await part(tempDir(), ownPorts(2));
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    await ref.ask('activate', { id });
    // Before this is answered, the actor has reported its start and was opened a second time.
    await ref.ask('activate', { id });
    await space.node.end(`tether:${id}`);
    await eventually(() => shown()[0]?.['state'] === 'idle');
    threads.answer({
      ensure: () => {
        throw new Failure('gone', `tether:${id}: nobody is there`);
      },
    });
    await space.clock.advance(TETHER.reopenDelayMs);
    const said = await eventually(() => shown()[0]?.['last_error']);
    expect(said).toBe('its part of the daemon: nobody is there');
    threads.answer({ ensure: () => null });
    await space.clock.advance(TETHER.reopenDelayMs);
    await eventually(() => canConnect(port));
  });

  it('remain when their workload is deleted, and report it', async () => {
    const { world: space, tethers: ref, workloads, shown } = await part(tempDir(), ownPorts(2));
    known(workloads);
    const { tether_id: id, local_port: port } = await ref.ask('create', input);
    await ref.ask('activate', { id });
    workloads.answer({
      tetherTarget: () => {
        throw fail('unknown_workload', `there is no workload ${input.workloadId}`);
      },
    });
    expect(await client(port, 'x').ended).toBe('ECONNRESET');
    await space.clock.advance(TETHER.tickIntervalMs);
    await eventually(() => shown()[0]?.['last_error']);
    expect(shown()[0]).toMatchObject({ state: 'active', last_error: 'there is no workload Deployment n/w' });
  });

  it('are removed with their cluster, or one by one', async () => {
    const folder = tempDir();
    const ports = ownPorts(4);
    const { tethers: ref, workloads, shown, stop } = await part(folder, ports);
    known(workloads, 'C1');
    const first = await ref.ask('create', input);
    const second = await ref.ask('create', input);
    await ref.ask('activate', { id: second.tether_id });
    known(workloads, 'C2');
    const third = await ref.ask('create', input);
    expect(await ref.ask('remove', { id: first.tether_id })).toEqual({ removed: true, id: first.tether_id });
    await ref.ask('closeCluster', { clusterId: 'C1' });
    expect(await canConnect(second.local_port)).toBe(false);
    expect(shown().map(({ tether_id }) => tether_id)).toEqual([third.tether_id]);
    await stop();
    const after = await part(folder, ports);
    await after.tethers.ask('boot', {});
    expect(after.shown().map(({ tether_id }) => tether_id)).toEqual([third.tether_id]);
  });

  /** A tether with an unreachable workload, on its own clock. */
  async function quiet() {
    const clock = virtualClock();
    const space = world({ clock });
    const workloads = await space.stand<WorkloadsProtocol>('workloads', {
      tetherTarget: () => {
        throw fail('daemon_busy', 'not now');
      },
    });
    await space.stand('tethers');
    const peers = await openLoopbackPeers();
    afterThisTest(() => peers.close());
    const ref = await space.start('tether:T1', tetherActor, {
      rule: RULE,
      peers,
      networkClock: realTime,
      link: null,
      held: heldConnections(),
    });
    const { port } = await ref.ask('open', {
      tether: STORED,
      ports: ownPorts(1).slice(0, 1),
      numbers: UNUSED,
    });
    return { clock, workloads, port, ref };
  }

  it('report the first connection at once, and others within a second in one message', async () => {
    const { clock, workloads, port } = await quiet();
    const connected = async (): Promise<void> => {
      const { socket } = client(port);
      await new Promise((resolve) => socket.once('connect', resolve));
      // The listener needs a turn to accept it.
      for (let turn = 0; turn < 20; turn += 1) await settle();
    };
    const began = clock.now();
    await connected();
    expect(await workloads.next('activity')).toEqual({ id: 'W1', at: began });
    for (let more = 0; more < 3; more += 1) {
      await clock.advance(10);
      await connected();
    }
    expect(workloads.of('activity')).toHaveLength(1);
    await clock.advance(TETHER.tickIntervalMs);
    expect(await workloads.next('activity')).toEqual({ id: 'W1', at: began + 30 });
    await clock.advance(5 * TETHER.tickIntervalMs);
    expect(workloads.of('activity')).toHaveLength(2);
    await connected();
    expect(await workloads.next('activity')).toEqual({ id: 'W1', at: clock.now() });
  });

  it('accept a limited number of connections', async () => {
    const { port } = await quiet();
    const taken: Client[] = [];
    // No more at once than a listener keeps before it accepts them.
    while (taken.length < TETHER.maxConnections) {
      const next = Array.from({ length: 128 }, () => client(port));
      await Promise.all(next.map(({ socket }) => new Promise((resolve) => socket.once('connect', resolve))));
      taken.push(...next);
    }
    expect(await client(port).ended).toBe('ECONNRESET');
    expect(taken.filter(({ socket }) => socket.destroyed)).toEqual([]);
  });

  it('report their last traffic when they close', async () => {
    const { clock, workloads, port, ref } = await quiet();
    const { socket } = client(port, 'held');
    await new Promise((resolve) => socket.once('connect', resolve));
    await eventually(() => workloads.of('activity').length > 0);
    await clock.advance(TETHER.tickIntervalMs);
    await eventually(async () => {
      await clock.advance(TETHER.trafficReportIntervalMs);
      return workloads.of('traffic').length > 0;
    });
    const reports = workloads.of('traffic').length;
    socket.write('more');
    for (let turn = 0; turn < 30; turn += 1) await settle();
    expect(workloads.of('traffic')).toHaveLength(reports);
    await ref.ask('close', { forget: false });
    expect((await workloads.next('traffic')).lastByteAt).toBeLessThanOrEqual(clock.now());
    await eventually(() => workloads.of('traffic').length > reports);
  });
});
