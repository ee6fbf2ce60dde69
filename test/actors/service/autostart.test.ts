// The autostart of a service whose stop has outlasted the daemon that began it: docs/reference.md "Shutdown".
import { expect, it } from 'vitest';
import type { ServiceSpec } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { quiet, type Supervised, supervise } from '../../kit/service.ts';

const RUN = '00000000000000aa';
const STOP_MS = 10_000;
const code = (error: unknown) => (error instanceof Failure ? error.code : error);

/**
 * A service that an earlier daemon was stopping, and that takes 10 s to end. With `sleep` it was to be put to
 * sleep.
 */
async function stopping(spec: Partial<ServiceSpec> = {}): Promise<Supervised> {
  const world = await supervise({
    spec: { autostart: true, stopGrace: 60_000, ...spec },
    row: { run: RUN, stopping: true },
  });
  world.host.stopMs = STOP_MS;
  if (spec.sleep) await world.store.table('doors').put('web', { asleepAfter: RUN });
  await world.begin();
  await quiet();
  expect(world.state().status).toBe('stopping');
  return world;
}

const autostart = (world: Supervised) =>
  world.ref.ask('start', { timeoutMs: null, autostart: true, wait: true, join: true, ifChanged: true });

const nextOf = async (world: Supervised) => (await world.ref.ask('explain', {})).next;

it('waits for the end of the stop, and starts the service then', async () => {
  const world = await stopping();
  expect(await nextOf(world)).not.toContain('started again');
  const started = autostart(world);
  await quiet();
  expect(await nextOf(world)).toMatch(/is killed\. Then it is started again\.$/);
  await world.advance(STOP_MS + 2_000);
  expect(await started).toMatchObject({ status: 'running', pid: 101 });
  expect(world.events().map(([type]) => type)).toEqual(['service.stopped', 'service.started']);
});

it('does not start a service that a client has stopped meanwhile', async () => {
  const world = await stopping();
  const started = autostart(world).catch(code);
  await quiet();
  const stopped = world.ref.ask('stop', { graceMs: null });
  await quiet();
  expect(await nextOf(world)).not.toContain('started again');
  await world.advance(STOP_MS + 2_000);
  expect(await stopped).toMatchObject({ status: 'stopped' });
  expect(await started).toBe('start_failed');
  expect(world.host.spawns).toEqual([]);
});

it('leaves a service asleep that the stop was to put to sleep', async () => {
  const world = await stopping({ sleep: { afterMinutes: 1 } });
  const started = autostart(world);
  await world.advance(STOP_MS + 2_000);
  expect(await started).toMatchObject({ status: 'sleeping' });
  expect(world.state().status).toBe('sleeping');
  expect(world.host.spawns).toEqual([]);
});

it('does not start a service that a client has stopped while others were started', async () => {
  const world = await supervise({ spec: { autostart: true } });
  await world.begin();
  const askedAt = world.clock.monotonic();
  await world.advance(10);
  await world.ref.ask('stop', { graceMs: null });
  const request = { timeoutMs: null, autostart: true, wait: true, join: true, askedAt };
  expect(await world.ref.ask('start', request).catch(code)).toBe('start_failed');
  expect(world.host.spawns).toEqual([]);
});
