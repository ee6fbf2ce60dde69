// docs/reference.md "Watch": what the next daemon knows of a service that watches files.
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { WatchedServiceProtocol } from '../../../src/protocol/watcher.ts';
import { must } from '../../kit/must.ts';
import { MEMO, quiet, type Supervised } from '../../kit/service.ts';
import { start, watching } from '../../kit/watching_service.ts';

const NEVER_READY = { ready: 'http://localhost:3000/', startTimeout: 1_000 };
const UNHEALTHY = { exitCode: 3, signal: null, timedOut: false, output: '' };

const stopBy =
  (who: 'client' | 'shutdown') =>
  async ({ ref }: Supervised): Promise<unknown> =>
    ref.ask('stop', { graceMs: null, last: who === 'shutdown' });

const exitAndStopBy =
  (who: 'client' | 'shutdown') =>
  async (world: Supervised): Promise<unknown> => {
    world.host.exit(0);
    await quiet();
    return stopBy(who)(world);
  };

async function stopLate(world: Supervised): Promise<void> {
  world.host.stopMs = 500;
  await world.advance(1_000);
  expect(world.state().status).toBe('stopping');
  const stopped = world.ref.ask('stop', { graceMs: null });
  await quiet();
  await world.advance(500);
  await stopped;
}

describe('a service that watches files, under the next daemon', () => {
  it('is told what changed without a daemon', async () => {
    const adopted = await watching({ row: {} });
    await quiet();
    expect(adopted.asked).toEqual([adopted.world.host.row?.startedAt]);
  });

  it.each([
    ['it has crashed', {}, ({ host }: Supervised) => host.exit(1), true],
    ['it has exited', {}, ({ host }: Supervised) => host.exit(0), true],
    ['it was not ready in time', { spec: NEVER_READY }, ({ advance }: Supervised) => advance(1_000), true],
    ['a client has stopped it when it was not ready in time', { spec: NEVER_READY }, stopLate, false],
    ['a client has stopped it', {}, stopBy('client'), false],
    ['it has exited, and a client has stopped it', {}, exitAndStopBy('client'), false],
    ['it has exited, and its daemon has shut down', {}, exitAndStopBy('shutdown'), true],
    ['its daemon has shut down', {}, stopBy('shutdown'), false],
  ] as const)(
    '%s: a change starts it, unless a client has stopped it',
    async (_when, plan, end, isWatched) => {
      const { world } = await watching(plan);
      const started = world.ref.ask('start', { timeoutMs: null, wait: true });
      const ended = started.catch(() => null);
      await quiet();
      if (!('spec' in plan)) await world.advance(50);
      await end(world);
      await quiet();
      await ended;
      const kept = must(world.kept());
      const next = await watching({ end: kept });
      await quiet();
      expect(next.asked).toEqual(isWatched ? [kept.at] : []);
      await next.change('src/a.ts');
      await next.world.advance(50);
      expect(next.world.state().status).toBe(isWatched ? 'running' : 'stopped');
    },
  );

  it.each([
    ['starts it then', [], true],
    ['does nothing if a client has stopped it meanwhile', ['stop'], false],
  ] as const)('a change while a failed live-check is ending it %s', async (_what, verbs, isStarted) => {
    const live = { exec: 'ok', interval: 1_000, failures: 1 };
    const { change, world } = await watching({ spec: { live, restart: 'no' } });
    await start(world);
    Object.assign(world.host, { stopMs: 1_000, executed: UNHEALTHY });
    await world.advance(1_050);
    expect(world.state().status).toBe('stopping');
    // The next daemon has a host of its own, which is asked for the stop again.
    const next = await watching({ store: world.store.copy(), row: structuredClone(must(world.host.row)) });
    for (const { of, changed } of [
      { of: world, changed: change },
      { of: next.world, changed: next.change },
    ]) {
      await changed('src/a.ts');
      const stops = verbs.map((verb) => of.ref.ask(verb, { graceMs: null }));
      of.host.executed = { ...UNHEALTHY, exitCode: 0 };
      await of.advance(1_500);
      await Promise.all(stops);
      expect(of.state().status).toBe(isStarted ? 'running' : 'stopped');
    }
  });

  it('is not ready for a later daemon before the journal says so, whatever its dependents know', async () => {
    const { change, cascades, world } = await watching({ watch: { cascade: true } });
    await start(world);
    world.host.exit(1);
    await quiet();
    world.broken.events = fail('storage_full', 'no space');
    await change('src/a.ts');
    await world.advance(50);
    expect([world.state().status, cascades]).toEqual(['running', ['web']]);
    await world.services.ref<WatchedServiceProtocol>('service:web').ask('cascadeKnown', {});
    await quiet();
    expect(world.host.row?.memo).toMatchObject({ cascade: false, passed: false });
    world.broken.events = null;
    const next = await watching({ store: world.store, journal: world.journal, row: must(world.host.row) });
    await next.world.advance(50);
    const types = next.world.events().map(([type]) => type);
    expect(types).toEqual(['service.started', 'service.crashed', 'service.started']);
    expect([next.world.host.row?.memo.passed, next.cascades]).toEqual([true, []]);
  });

  it('leaves its dependents alone when it was stopped before it was ready, also under a later daemon', async () => {
    const memo = { ...MEMO, passed: false, ready: 'http://localhost:3000/', cascade: true };
    const { world } = await watching({ row: { memo } });
    world.host.stopMs = 1_000;
    const stopped = world.ref.ask('stop', { graceMs: null });
    await quiet();
    const next = await watching({ row: structuredClone(must(world.host.row)) });
    await world.advance(1_000);
    await stopped;
    await next.world.advance(1_000);
    expect(next.world.state().status).toBe('stopped');
    await start(next.world);
    expect([next.world.state().status, next.cascades]).toEqual(['running', []]);
  });
});
