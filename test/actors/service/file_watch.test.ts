// docs/reference.md "Watch": what a service does with changes of its files. The watcher is a stand-in here;
// test/adapters/watched_tree.test.ts has the real one, and test/e2e/watch.test.ts all of it together.
import { describe, expect, it } from 'vitest';
import type { DoorProtocol } from '../../../src/protocol/doors.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { WatchedServiceProtocol } from '../../../src/protocol/watcher.ts';
import { SERVICE } from '../../../src/settings/limits.ts';
import { must } from '../../kit/must.ts';
import { BOOTED_AT, MEMO, quiet } from '../../kit/service.ts';
import { type Setting, start, WATCH, watching } from '../../kit/watching_service.ts';

const RUN = '0123456789abcdef';

describe('a service that watches files', () => {
  it('watches nothing while it is stopped, and everything from its start to its stop', async () => {
    const { asked, threads, world } = await watching();
    await quiet();
    expect([asked, threads]).toEqual([[], []]);
    const begunAt = world.clock.now();
    await start(world);
    expect(threads).toEqual(['watcher']);
    expect(asked).toEqual([begunAt]);
    await world.ref.ask('stop', { graceMs: null });
    await quiet();
    expect(asked).toEqual([begunAt, null]);
  });

  it('is watched in its folder with placeholders filled in', async () => {
    const { folders, world } = await watching({ spec: { stack: 'shop', cwd: '/${stack}' } });
    await start(world);
    expect(folders).toEqual(['/shop']);
  });

  it('is restarted by a change, which is recorded and is no crash', async () => {
    const { asked, change, world } = await watching();
    await start(world);
    await change('src/a.ts', 'b', 'c', 'd', 'e', 'f');
    await world.advance(50);
    expect(world.events()).toEqual([
      ['service.started', expect.anything()],
      ['service.changed', { name: 'web', paths: ['src/a.ts', 'b', 'c', 'd', 'e'] }],
      ['service.stopped', { name: 'web', exitCode: null, signal: 'SIGTERM' }],
      ['service.started', expect.anything()],
    ]);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 0 });
    expect(world.host.made).toHaveLength(2);
    // It is watched all the time.
    expect(asked).toHaveLength(1);
  });

  it('is started by a change after it has exited by itself, but not after a stop', async () => {
    const { change, world } = await watching();
    await start(world);
    world.host.exit(3);
    await quiet();
    expect(world.state().status).toBe('crashed');
    await change('src/a.ts');
    await world.advance(50);
    expect(world.state().status).toBe('running');
    await world.ref.ask('stop', { graceMs: null });
    await change('src/a.ts');
    await world.advance(1_000);
    expect(world.state().status).toBe('stopped');
    expect(world.events().filter(([type]) => type === 'service.changed')).toHaveLength(1);
  });

  it.each([
    ['it closes its door', { sleep: { afterMinutes: 5 } }, 0],
    ['it is being launched', {}, 100],
    ['it closes its door in a launch', { sleep: { afterMinutes: 5 } }, 100],
  ])('is not started by a change after a stop during which %s', async (_what, spec, spawnMs) => {
    const { asked, change, world } = await watching({ spec });
    await world.services.stand<DoorProtocol>('door:web', { set: () => null });
    world.host.spawnMs = spawnMs;
    const started = world.ref.ask('start', { timeoutMs: null, wait: false });
    if (spawnMs === 0) await started;
    await quiet();
    const stopped = world.ref.ask('stop', { graceMs: null });
    await world.advance(1_000);
    await Promise.all([started, stopped]);
    expect(asked.at(-1)).toBeNull();
    await change('src/a.ts');
    await world.advance(1_000);
    expect([world.state().status, world.host.made]).toEqual(['stopped', [expect.any(String)]]);
  });

  it.each([
    ['that is recorded during', 1, async ({ change }: Setting) => void change('src/a.ts')],
    [
      'after its policy has restarted it during',
      2,
      async ({ world }: Setting) => {
        world.host.exit(1);
        await quiet();
      },
    ],
  ])('is not started by a change %s a stop', async (_what, made, before) => {
    const setting = await watching({ spec: { sleep: { afterMinutes: 5 }, restart: 'always' } });
    const { change, world } = setting;
    await world.services.stand<DoorProtocol>('door:web', { set: () => null });
    await start(world);
    await before(setting);
    let written = (): void => {};
    world.store.busy = new Promise((resolve) => {
      written = resolve;
    });
    const stopped = world.ref.ask('stop', { graceMs: null });
    await world.advance(200);
    written();
    await world.advance(1_000);
    await stopped;
    await change('src/a.ts');
    await world.advance(1_000);
    expect([world.state().status, world.host.made.length]).toEqual(['stopped', made]);
  });

  it('is left asleep by a change while its sleep is being stored', async () => {
    const { change, world } = await watching({ spec: { sleep: { afterMinutes: 5 } } });
    await world.services.stand<DoorProtocol>('door:web', { set: () => null });
    await start(world);
    let written = (): void => {};
    world.store.busy = new Promise((resolve) => {
      written = resolve;
    });
    const asleep = world.ref.ask('sleep', {});
    await quiet();
    await change('src/a.ts');
    written();
    await world.advance(1_000);
    await asleep;
    expect([world.state().status, world.host.made.length]).toEqual(['sleeping', 1]);
  });

  it('is watched again if its stop is refused', async () => {
    const { change, world } = await watching();
    world.host.spawnMs = SERVICE.hostAskTimeoutMs + 1_000;
    const started = world.ref.ask('start', { timeoutMs: null, wait: false });
    await quiet();
    const refused = expect(world.ref.ask('stop', { graceMs: null })).rejects.toMatchObject({
      code: 'daemon_busy',
    });
    await world.advance(SERVICE.hostAskTimeoutMs + 2_000);
    await refused;
    await started.catch(() => null);
    expect(world.state().status).toBe('running');
    world.host.spawnMs = 0;
    await change('src/a.ts');
    await world.advance(1_000);
    expect([world.state().status, world.host.made.length]).toEqual(['running', 2]);
  });

  it('keeps running after a change while its environment cannot be unsealed, and explain says so', async () => {
    const { change, world } = await watching();
    await start(world);
    const services = world.store.table('services');
    const opened = must(services.get('web'));
    for (const stored of [{ ...opened, sealedEnv: 'x' }, opened]) {
      await services.put('web', stored);
      await world.ref.ask('changed', { stored });
      world.services
        .ref<WatchedServiceProtocol>('service:web')
        .tell('watchState', { folders: 1, trouble: null });
      await change('src/a.ts');
      await world.advance(50);
      const { watching } = await world.ref.ask('explain', {});
      const trouble = stored === opened ? null : expect.stringContaining('did not restart it: web cannot be');
      expect(watching).toEqual({ folders: 1, trouble });
      expect(world.host.made).toHaveLength(stored === opened ? 2 : 1);
    }
  });

  it('is started once there is room when its restart failed on a full disk, unless it is stopped', async () => {
    const { change, world } = await watching();
    await start(world);
    const refusal = fail('storage_full', 'no room');
    for (const isStopped of [false, true]) {
      Object.assign(world.host, { refusal });
      await change('src/a.ts');
      await world.advance(50);
      expect(world.state().status).toBe('stopped');
      if (isStopped) await world.ref.ask('stop', { graceMs: null });
      Object.assign(world.host, { refusal: null });
      await world.advance(5_000);
      expect(world.state().status).toBe(isStopped ? 'stopped' : 'running');
    }
  });

  it('does not wait for the pause of its restart policy', async () => {
    const { change, world } = await watching({ spec: { restart: 'on-failure' } });
    await start(world);
    for (const delayMs of [100, 200, 400]) {
      world.host.exit(1);
      await quiet();
      await world.advance(delayMs + 50);
    }
    world.host.exit(1);
    await quiet();
    const { length } = world.host.made;
    await change('src/a.ts');
    await world.advance(50);
    expect(world.host.made).toHaveLength(length + 1);
    expect(world.state()).toMatchObject({ status: 'running', restarts: 0 });
  });

  it('is restarted as soon as possible by a change while its process is being spawned', async () => {
    const { change, world } = await watching();
    world.host.spawnMs = 100;
    const started = world.ref.ask('start', { timeoutMs: null, wait: true });
    started.catch(() => {});
    await quiet();
    await change('src/a.ts');
    expect(world.host.made).toHaveLength(0);
    await world.advance(100);
    await world.advance(100);
    await world.advance(100);
    await world.advance(100);
    expect(world.host.made).toHaveLength(2);
    expect(world.state().status).toBe('running');
  });

  it('restarts its dependents once it runs again', async () => {
    const { cascades, change, world } = await watching({ watch: { cascade: true } });
    await start(world);
    await change('src/a.ts');
    expect(cascades).toEqual([]);
    await world.advance(50);
    await quiet();
    expect(cascades).toEqual(['web']);
  });

  it('is restarted once by the next daemon if the first was killed during the restart', async () => {
    // Before the stop was asked for, in the middle of it, and after the process had ended.
    const middle = [{}, { stopping: true }] as const;
    for (const row of middle) {
      const memo = { ...MEMO, relaunch: true, changedAt: 5 };
      const { asked, world } = await watching({ row: { memo, ...row } });
      for (let index = 0; index < 4; index += 1) await world.advance(50);
      expect(world.host.made).toHaveLength(1);
      expect(world.state()).toMatchObject({ status: 'running', restarts: 0 });
      // A process that is made now begins with the files as they are.
      expect(asked).toEqual(['stopping' in row ? expect.any(Number) : 5]);
    }
    const memo = { ...MEMO, relaunch: true, changedAt: 5 };
    const exit = { exitCode: null, signal: 'SIGTERM', exitUnknown: false, cause: 'exit', at: 6 } as const;
    const end = { service: 'web', run: RUN, ...exit };
    const { world } = await watching({ row: { run: RUN, memo, stopping: true, end } });
    for (let index = 0; index < 4; index += 1) await world.advance(50);
    expect(world.host.made).toHaveLength(1);
    expect(world.state().status).toBe('running');
  });

  it('finishes the restart that a client requested from an earlier daemon, also if a change only sends a signal', async () => {
    const memo = { ...MEMO, relaunch: true };
    const exit = { exitCode: null, signal: 'SIGTERM', exitUnknown: false, cause: 'exit', at: 6 } as const;
    const ended = { run: RUN, stopping: true, end: { service: 'web', run: RUN, ...exit } };
    for (const row of [{ memo }, { memo, ...ended }]) {
      const { world } = await watching({ row, watch: { action: 'SIGHUP' } });
      for (let index = 0; index < 4; index += 1) await world.advance(50);
      expect(world.host.made).toHaveLength(1);
      expect(world.state().status).toBe('running');
    }
  });

  it('is started by the next daemon if the first was killed between the end and the start', async () => {
    const first = await watching({ watch: { action: 'SIGHUP' } });
    await start(first.world);
    Object.assign(first.world.host, { spawnMs: 1_000, refusal: fail('start_failed', 'not yet') });
    const restarted = first.world.ref.ask('restart', { timeoutMs: null, graceMs: null });
    const refused = expect(restarted).rejects.toMatchObject({ code: 'start_failed' });
    await quiet();
    const between = first.world.store.copy();
    await first.world.advance(1_000);
    await refused;
    const end = between.table('ends').get('web');
    expect(end).toMatchObject({ status: 'stopped', relaunch: true });
    if (!end) throw new Error('no end is stored');
    const next = await watching({ end, watch: { action: 'SIGHUP' } });
    for (let index = 0; index < 4; index += 1) await next.world.advance(50);
    expect(next.world.host.made).toHaveLength(1);
    expect(next.world.state()).toMatchObject({ status: 'running', restarts: 0 });
    // A start that has failed, a stop and a reboot end what is owed.
    await quiet();
    expect(first.world.store.table('ends').get('web')).not.toHaveProperty('relaunch');
    const rebooted = await watching({ end: { ...end, at: BOOTED_AT - 1 } });
    for (let index = 0; index < 4; index += 1) await rebooted.world.advance(50);
    expect(rebooted.world.host.made).toEqual([]);
  });

  it('stays down when it is stopped during a restart', async () => {
    const { change, world } = await watching();
    await start(world);
    world.host.stopMs = 1_000;
    await change('src/a.ts');
    expect(world.state().status).toBe('stopping');
    const stopped = world.ref.ask('stop', { graceMs: null });
    await quiet();
    await world.advance(1_000);
    await stopped;
    await world.advance(1_000);
    expect(world.host.made).toHaveLength(1);
    expect(world.state().status).toBe('stopped');
    expect(world.host.notes.at(-1)?.memo.relaunch).toBe(false);
  });

  it.each([
    ['is being written', 'start_failed'],
    ['waits for room on the disk', 'storage_full'],
  ])('stays down when it is stopped while the end of a restart %s', async (_what, code) => {
    const { world } = await watching();
    await start(world);
    let written = (): void => {};
    if (code === 'storage_full') world.broken.events = fail('storage_full', 'no space');
    else
      world.store.busy = new Promise((resolve) => {
        written = resolve;
      });
    const restarted = world.ref.ask('restart', { timeoutMs: null, graceMs: null });
    const refused = expect(restarted).rejects.toMatchObject({ code });
    await quiet();
    const stopped = world.ref.ask('stop', { graceMs: null });
    await quiet();
    // If this daemon is killed now, the next one has the end from the host.
    expect(world.host.notes.at(-1)?.memo.relaunch).toBe(false);
    world.broken.events = null;
    written();
    expect(await stopped).toMatchObject({ status: 'stopped' });
    await refused;
    await world.advance(10_000);
    expect(world.host.made).toHaveLength(1);
    expect(world.kept()).toMatchObject({ status: 'stopped' });
    expect(world.kept()).not.toHaveProperty('relaunch');
  });

  it('stays down when it is stopped before a restart that an earlier daemon owes', async () => {
    const run = '00000000000000aa';
    const at = BOOTED_AT + 1;
    const end = { run, status: 'stopped', exitCode: 0, signal: null, exitUnknown: false, at } as const;
    const { world } = await watching({ end: { ...end, relaunch: true } });
    expect(await world.ref.ask('stop', { graceMs: null })).toMatchObject({ status: 'stopped' });
    await world.advance(1_000);
    expect(world.host.made).toEqual([]);
    expect(world.kept()).toEqual({ ...end, whole: true });
  });

  it.each([
    ['is started once there is room', [], 'running'],
    ['stays down when it is stopped meanwhile', ['stop'], 'stopped'],
    ['stays down when it is stopped, and a start is refused', ['stop', 'start'], 'stopped'],
  ] as const)('a service whose restart a full disk prevents %s', async (_what, verbs, status) => {
    const { world } = await watching();
    await start(world);
    world.host.refusal = fail('storage_full', 'no space');
    const full = { code: 'storage_full' };
    await expect(world.ref.ask('restart', { timeoutMs: null, graceMs: null })).rejects.toMatchObject(full);
    await world.advance(3_000);
    expect(world.state().status).toBe('stopped');
    for (const verb of verbs)
      if (verb === 'stop') await world.ref.ask('stop', { graceMs: null });
      else await expect(world.ref.ask('start', { timeoutMs: null, wait: true })).rejects.toMatchObject(full);
    const next = await watching({ end: must(world.kept()) });
    world.host.refusal = null;
    for (const of of [world, next.world]) {
      await of.advance(3_000);
      expect(of.state().status).toBe(status);
    }
  });

  it('requests a new watch for other files, and after a loss of the watcher', async () => {
    const { asked, world } = await watching();
    await start(world);
    const { stored } = { stored: world.store.table('services').get('web') };
    if (!stored) throw new Error('it is not registered');
    await world.ref.ask('changed', { stored: { ...stored, revision: 2 } });
    await quiet();
    expect(asked).toHaveLength(1);
    const spec = { ...stored.spec, watch: { ...WATCH, paths: ['lib'] } };
    await world.ref.ask('changed', { stored: { ...stored, spec, revision: 3 } });
    await quiet();
    expect(asked).toHaveLength(2);
    await world.services.ref<WatchedServiceProtocol>('service:web').ask('watchAgain', {});
    await quiet();
    expect(asked).toHaveLength(3);
  });

  it('explains what is watched, and what is not', async () => {
    const { world } = await watching();
    await start(world);
    const ref = world.services.ref<WatchedServiceProtocol>('service:web');
    await ref.ask('watchState', { folders: 3, trouble: 'the system has no watch left for it' });
    expect(await world.ref.ask('explain', {})).toMatchObject({
      reason: expect.stringMatching(/may go unnoticed: the system has no watch left for it\.$/),
      watching: { folders: 3, trouble: 'the system has no watch left for it' },
    });
  });
});
