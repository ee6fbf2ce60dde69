// docs/reference.md "Live-check", "Signal to a service", in virtual time.
import { expect, it } from 'vitest';
import { running, supervise } from '../../kit/service.ts';

const FAILED = { exitCode: 3, signal: null, timedOut: false, output: 'gone\n' };
const LIVE = { exec: 'ok', interval: 1_000, failures: 2 };

it('a live-check that fails twice in a row ends the process, and the policy restarts it', async () => {
  const world = await supervise({ spec: { live: LIVE, restart: 'on-failure' } });
  await world.begin();
  await running(world);
  await world.advance(3_000);
  expect(world.host.commands).toHaveLength(3);
  expect(world.host.stops).toEqual([]);
  world.host.executed = FAILED;
  await world.advance(2_050);
  const unhealthy = { name: 'web', check: 'exec ok', error: 'it ended with exit code 3; it printed: gone' };
  expect(world.events().slice(1, 3)).toEqual([
    ['service.unhealthy', unhealthy],
    ['service.crashed', { name: 'web', exitCode: null, signal: 'SIGTERM', cause: 'unhealthy' }],
  ]);
  expect(world.host.notes.at(-1)).toMatchObject({ memo: { passed: true, fault: 'unhealthy' } });
  await world.advance(500);
  expect(world.host.made).toHaveLength(2);
});

it('a signal reaches the process group, and needs a process', async () => {
  const world = await supervise();
  await world.begin();
  await expect(world.ref.ask('signal', { signal: 'SIGHUP' })).rejects.toMatchObject({ code: 'not_running' });
  await running(world);
  expect(await world.ref.ask('signal', { signal: 'SIGHUP' })).toEqual({
    name: 'web',
    signal: 'SIGHUP',
    processes: 2,
  });
  expect(world.host.signals).toEqual(['SIGHUP']);
});
