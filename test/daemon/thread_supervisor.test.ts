// Real worker threads: they connect, die, restart and stop.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, it, vi } from 'vitest';
import {
  createThreadSupervisor,
  type DeathSequel,
  type ThreadSupervisorOptions,
} from '../../src/daemon/thread_supervisor.ts';
import { createNodeLookup, mayAsk } from '../../src/protocol/address.ts';
import { Failure } from '../../src/runtime/actor.ts';
import { systemClock } from '../../src/runtime/clock.ts';
import { deferred } from '../../src/runtime/deferred.ts';
import { afterThisTest, tempDir } from '../kit/actors.ts';
import { bundle } from '../kit/bundle.ts';
import { eventually } from '../kit/eventually.ts';
import { codeOf } from '../kit/probe_actor.ts';
import { untypedNode } from '../kit/untyped_node.ts';
import type { Data, Worker } from './test_worker.ts';

let worker: URL;
beforeAll(async () => {
  worker = pathToFileURL(await bundle('test/daemon/test_worker.ts'));
});

/** Tethers are spread over two threads. */
const pools = { tethers: 2, clusters: 1 };
const nodeOf = createNodeLookup(pools);

/** The address of a tether on the thread `name`. */
function tetherOn(name: string): string {
  const addresses = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => `tether:${id}`);
  const address = addresses.find((one) => nodeOf(one) === name);
  if (!address) throw new Error(`no tether on ${name}`);
  return address;
}

function open(options: Partial<ThreadSupervisorOptions> = {}) {
  const folder = tempDir();
  const data: Data = { log: join(folder, 'log'), broken: join(folder, 'broken') };
  const node = untypedNode({ name: 'front', clock: systemClock, nodeOf, mayAsk });
  const deaths: { name: string; error: unknown; sequel: DeathSequel }[] = [];
  const threads = createThreadSupervisor({
    node,
    pools,
    dataFor: () => data,
    onDeath: (name, error, sequel) => deaths.push({ name, error, sequel }),
    onUnendable: (diagnosis) => {
      throw diagnosis;
    },
    entryOf: () => worker,
    ...options,
  });
  afterThisTest(async () => {
    await threads.stop();
    await node.stop();
  });
  return {
    node,
    threads,
    deaths,
    data,
    log: () => (existsSync(data.log) ? readFileSync(data.log, 'utf8').trim().split('\n') : []),
    registry: node.ref<Worker>('registry'),
  };
}

it('a thread whose start was refused is not started again, and each request for it gets the reason', async () => {
  const { threads, deaths, data } = open();
  writeFileSync(data.broken, 'storage_lost');
  expect(await codeOf(threads.ensure('services'))).toBe('storage_lost');
  await eventually(() => deaths.length > 0);
  rmSync(data.broken);
  expect(await codeOf(threads.ensure('services'))).toBe('storage_lost');
  expect(deaths).toMatchObject([{ sequel: 'refused', error: { code: 'storage_lost', message: 'refused' } }]);
});

it('a thread that had no disk space to start is started again when it is needed', async () => {
  const { threads, deaths, data, log } = open();
  writeFileSync(data.broken, 'storage_full');
  expect(await codeOf(threads.ensure('cloud'))).toBe('storage_full');
  await eventually(() => deaths.length === 1);
  expect(await codeOf(threads.ensure('cloud'))).toBe('storage_full');
  await eventually(() => deaths.length === 2);
  rmSync(data.broken);
  await threads.ensure('cloud');
  expect(log()).toEqual(['up cloud']);
  expect(deaths).toMatchObject([{ sequel: 'refused' }, { sequel: 'refused' }]);
});

it('a thread whose files do not load is started once they do, and that counts for no limit', async () => {
  const entry = join(tempDir(), 'worker.mjs');
  let starts = 0;
  const { threads, deaths, node } = open({
    entryOf: (kind) => {
      if (kind === 'services') return worker;
      starts += 1;
      return pathToFileURL(entry);
    },
    restarts: { max: 1, withinMs: 60_000 },
  });
  await threads.ensure('services');
  const up = threads.ensure('gateway');
  await eventually(() => starts > 2);
  // As while a file is being written: nothing, then a part of it.
  for (const part of ['', 'import "./missing.mjs";']) {
    const before = starts;
    writeFileSync(entry, part);
    await eventually(() => starts > before + 1);
  }
  writeFileSync(entry, `import ${JSON.stringify(worker.href)};`);
  await up;
  expect(deaths).toMatchObject([{ name: 'gateway', sequel: 'awaits-files' }]);
  expect(await node.ref<Worker>('gateway').ask('where', null)).toMatchObject({ node: 'gateway' });

  // As a thread that has been up: its crash counts, and its missing files do not.
  rmSync(entry);
  node.ref<Worker>('gateway').tell('throw', { text: 'a crash' });
  const before = starts;
  await eventually(() => starts > before + 2);
  writeFileSync(entry, `import ${JSON.stringify(worker.href)};`);
  await threads.ensure('gateway');
  expect(deaths.map(({ sequel }) => sequel)).toEqual(['awaits-files', 'restarts', 'awaits-files']);
});

it('a stop ends what waits for a thread whose files are missing', async () => {
  const { threads, deaths } = open({
    entryOf: (kind) => (kind === 'services' ? worker : new URL('missing.mjs', worker)),
  });
  await threads.ensure('services');
  const up = codeOf(threads.ensure('gateway'));
  await eventually(() => deaths.length === 1);
  expect(await threads.stop()).toEqual([]);
  expect(await up).toBe('gone');
});

it('asks cross threads: from the front, between kinds and to a pool', async () => {
  const { node, threads, registry } = open();
  await threads.ensure('services');
  await threads.ensure('services');
  const here = await registry.ask('where', null);
  expect(here.node).toBe('services-0');
  expect(await registry.ask('ask', { address: 'service:a' })).toEqual(here);
  // Started later, and connected to those that run.
  const clusters = node.ref<Worker>('clusters');
  expect(await codeOf(clusters.ask('where', null))).toBe('gone');
  await threads.ensure('cloud');
  expect(await codeOf(clusters.ask('ask', { address: 'tether:x' }))).toBe('gone');
  await threads.ensure('tethers');
  const seen = new Set<string>();
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) {
    const far = await clusters.ask('ask', { address: `tether:${id}` });
    expect(await node.ref<Worker>(`tether:${id}`).ask('where', null)).toEqual(far);
    seen.add(far.node);
  }
  expect(seen).toEqual(new Set(['tethers-0', 'tethers-1']));
  await threads.ensure('gateway');
  expect(await node.ref<Worker>('gateway').ask('ask', { address: 'registry' })).toEqual(here);
});

it('only the needed thread of a kind starts, and the others when their actors are needed', async () => {
  const { node, threads, log } = open();
  const [first, second] = [tetherOn('tethers-0'), tetherOn('tethers-1')];
  await threads.ensure('cloud');
  expect(log()).toEqual(['up cloud']);
  const clusters = node.ref<Worker>('clusters');
  await Promise.all([threads.ensureFor(second), threads.ensureFor(second)]);
  // Earlier threads know of it as soon as it is up.
  expect(await clusters.ask('ask', { address: second })).toMatchObject({ node: 'tethers-1' });
  expect(log()).toEqual(['up cloud', 'up tethers-1']);
  expect(await codeOf(clusters.ask('ask', { address: first }))).toBe('gone');
  await threads.ensureFor(first);
  expect(await clusters.ask('ask', { address: first })).toMatchObject({ node: 'tethers-0' });
  // A dead thread is waited for.
  await codeOf(node.ref<Worker>(second).ask('throw', { text: 'uncaught' }));
  await threads.ensureFor(second);
  expect(await clusters.ask('ask', { address: second })).toMatchObject({ node: 'tethers-1' });
  for (const address of ['host', 'views', 'nobody'])
    await expect(threads.ensureFor(address)).rejects.toThrow(TypeError);
  await threads.stop();
  await expect(threads.ensureFor(first)).rejects.toMatchObject({ code: 'gone' });
});

it('messages of a new thread wait until the front is notified, and none is lost', async () => {
  const heard = deferred<void>();
  const { threads, registry } = open({ receiveAfter: heard.promise });
  await threads.ensure('services');
  const answered = vi.fn();
  const answer = registry.ask('where', null).finally(answered);
  // The answer arrived while the thread was starting.
  await threads.ensure('gateway');
  expect(answered).not.toHaveBeenCalled();
  heard.resolve();
  expect((await answer).node).toBe('services-0');
});

it('a thread that dies settles its asks with `gone`, restarts and is connected to the others again', async () => {
  const { node, threads, deaths } = open();
  for (const kind of ['cloud', 'tethers'] as const) await threads.ensure(kind);
  const [clusters, other] = [node.ref<Worker>('clusters'), tetherOn('tethers-1')];
  const restarted = vi.fn();
  threads.onRestarted(async (name) => {
    restarted(name);
    // The front acts on it: the thread already answers.
    await clusters.ask('where', null);
  });
  const before = await clusters.ask('where', null);
  const hanging = codeOf(clusters.ask('hang', null));
  const dying = codeOf(node.ref<Worker>('workloads').ask('throw', { text: 'uncaught' }));
  expect(await hanging).toBe('gone');
  expect(await dying).toBe('gone');
  await eventually(() => restarted.mock.calls.some(([name]) => name === 'cloud'));
  await threads.ensure('cloud');
  const after = await clusters.ask('where', null);
  expect(after.node).toBe('cloud');
  expect(after.thread).not.toBe(before.thread);
  expect(await clusters.ask('ask', { address: other })).toMatchObject({ node: 'tethers-1' });
  expect(deaths).toMatchObject([{ name: 'cloud', error: { message: 'uncaught' }, sequel: 'restarts' }]);
  // And the other direction: an actor of the first thread waits for one on the second.
  const far = node.ref<Worker>(other);
  await codeOf(far.ask('throw', { text: 'again' }));
  await threads.ensure('tethers');
  expect(await clusters.ask('ask', { address: other })).toMatchObject({ node: 'tethers-1' });
  expect(restarted.mock.calls).toEqual([['cloud'], ['tethers-1']]);
});

it('a thread that dies too often restarts after a pause, and requests meanwhile get the reason', async () => {
  const away = { restarts: { max: 2, withinMs: 60_000 }, pauseMs: 200 } as const;
  const { threads, deaths, registry } = open(away);
  const restarted = vi.fn();
  threads.onRestarted(restarted);
  await threads.ensure('services');
  for (let death = 0; death < 3; death += 1) {
    await codeOf(registry.ask('throw', { text: `death ${death}` }));
    if (death < 2) await threads.ensure('services');
  }
  await expect(threads.ensure('services')).rejects.toMatchObject({
    code: 'gone',
    message: 'services-0 died too often',
  });
  expect(deaths.map(({ sequel }) => sequel)).toEqual(['restarts', 'restarts', 'pauses']);
  expect(await codeOf(registry.ask('where', null))).toBe('gone');
  // The others continue.
  await threads.ensure('cloud');
  // Nobody has asked for it: it comes back because it was there before.
  await eventually(() => restarted.mock.calls.length === 3);
  await threads.ensure('services');
  expect(await registry.ask('where', null)).toMatchObject({ node: 'services-0' });
});

it('a thread that ran before and has no disk space to restart comes back by itself', async () => {
  const { node, threads, deaths, data, log } = open({ pauseMs: 50 });
  await threads.ensure('cloud');
  writeFileSync(data.broken, 'storage_full');
  await codeOf(node.ref<Worker>('clusters').ask('throw', { text: 'uncaught' }));
  await eventually(() => deaths.filter(({ sequel }) => sequel === 'refused').length > 1);
  rmSync(data.broken);
  await eventually(() => log().length === 2);
  expect(log()).toEqual(['up cloud', 'up cloud']);
});

it('a thread that never ran is started when it is needed', async () => {
  const { threads, deaths, data, log } = open({ restarts: { max: 0, withinMs: 60_000 }, pauseMs: 50 });
  writeFileSync(data.broken, '');
  expect(await codeOf(threads.ensure('cloud'))).toBe('gone');
  rmSync(data.broken);
  await eventually(async () => (await codeOf(threads.ensure('cloud'))) === 'none');
  expect(log()).toEqual(['up cloud']);
  expect(deaths).toMatchObject([{ name: 'cloud', sequel: 'pauses' }]);
});

it('an error in a restart callback counts as a death, even if it is a Failure', async () => {
  const { threads, deaths, registry } = open({ restarts: { max: 1, withinMs: 60_000 } });
  await threads.ensure('services');
  threads.onRestarted(() => {
    throw new Failure('gone', 'it has died meanwhile');
  });
  await codeOf(registry.ask('throw', { text: 'uncaught' }));
  expect(await codeOf(threads.ensure('services'))).toBe('gone');
  expect(deaths).toMatchObject([
    { sequel: 'restarts', error: { message: 'uncaught' } },
    { sequel: 'pauses', error: { code: 'gone' } },
  ]);
});

it('a failed setup counts as a death, and `ensure` waits until a setup succeeds', async () => {
  const { threads, deaths, data, registry } = open({ restarts: { max: 1000, withinMs: 60_000 } });
  writeFileSync(data.broken, '');
  const restarted = vi.fn();
  threads.onRestarted(restarted);
  const up = threads.ensure('services');
  await eventually(() => deaths.length > 2);
  rmSync(data.broken);
  await up;
  expect(deaths[0]).toMatchObject({ error: { message: 'broken setup' }, sequel: 'restarts' });
  expect(await registry.ask('where', null)).toMatchObject({ node: 'services-0' });
  // It was never up before, so nothing was restarted.
  expect(restarted).not.toHaveBeenCalled();
});

it('an error after a restart counts as another death', async () => {
  const { threads, deaths, registry } = open();
  await threads.ensure('services');
  let times = 0;
  threads.onRestarted(() => {
    times += 1;
    if (times === 1) throw new Error('boot failed');
  });
  await codeOf(registry.ask('throw', { text: 'uncaught' }));
  await threads.ensure('services');
  expect(times).toBe(2);
  expect(deaths.map(({ error }) => (error as Error).message)).toEqual(['uncaught', 'boot failed']);
});

it('a stop ends the kinds in reverse order, closes every scope, and reports what was late', async () => {
  const { threads, log, registry, data, node } = open();
  for (const kind of ['services', 'cloud', 'tethers', 'gateway'] as const) await threads.ensure(kind);
  const hanging = codeOf(registry.ask('hang', null));
  // The stop has a port of its own and must not overtake the ask.
  await eventually(() => log().includes('hanging'));
  await node.ref<Worker>('tether:x').ask('where', null);
  rmSync(data.log);
  expect(await threads.stop()).toEqual(['registry']);
  expect(await hanging).toBe('gone');
  const closed = log();
  const order = ['tether:x', 'clusters', 'registry'].map((address) =>
    closed.lastIndexOf(`closed ${address}`),
  );
  expect(order).toEqual(order.toSorted((a, b) => a - b));
  expect(Math.min(...order)).toBeGreaterThanOrEqual(0);
  await expect(threads.ensure('services')).rejects.toMatchObject({ code: 'gone' });
});

const HANG = { beatMs: 50, missedBeats: 4, maxStepCpuMs: 200, endMs: 500 };

it('a thread in an endless loop is diagnosed, ended and started again', async () => {
  const { node, threads, registry, deaths } = open({ hang: HANG });
  await threads.ensure('services');
  await threads.ensure('cloud');
  expect(threads.silenceOf('services')).toBeNull();
  expect(await codeOf(registry.ask('spin', null))).toBe('gone');
  expect(threads.silenceOf('services')).toMatch(/^the thread services-0 /);
  await threads.ensure('services');
  expect(threads.silenceOf('services')).toBeNull();
  expect(await registry.ask('where', null)).toMatchObject({ node: 'services-0' });
  expect(deaths).toHaveLength(1);
  const diagnosis = deaths[0]?.error as Error | undefined;
  expect(diagnosis?.message).toMatch(
    /^the thread services-0 does not answer: it computes .*; its last message was registry spin$/,
  );
  expect(diagnosis?.stack).toMatch(/\n {4}at spin \(/);
  // The others are left alone.
  expect(await node.ref<Worker>('clusters').ask('where', null)).toMatchObject({ node: 'cloud' });
});

it('a thread that is blocked in the system cannot be ended, and that is reported', async () => {
  const unendable = deferred<Error>();
  const { threads, registry, log } = open({ hang: HANG, onUnendable: unendable.resolve });
  const path = join(tempDir(), 'fifo');
  execFileSync('mkfifo', [path]);
  await threads.ensure('services');
  const blocked = codeOf(registry.ask('block', { path }));
  expect((await unendable.promise).message).toMatch(
    /does not answer: it waits in the system; .* registry block$/,
  );
  expect(log()).toContain('blocking');
  writeFileSync(path, '');
  expect(await blocked).toBe('gone');
});

it('a thread that does not stop in time is ended and reported by name', async () => {
  const { threads, registry, deaths, log } = open({ stopMs: 300 });
  await threads.ensure('services');
  const spinning = codeOf(registry.ask('spin', null));
  await eventually(() => log().includes('spinning'));
  const [one, two] = [threads.stop(), threads.stop()];
  expect(await one).toEqual(['services-0']);
  expect(await two).toEqual(['services-0']);
  expect(await spinning).toBe('gone');
  expect(deaths).toEqual([]);
});
