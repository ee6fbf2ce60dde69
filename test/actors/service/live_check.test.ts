// docs/reference.md "Live-check", "Signal to a service", in virtual time.
import { expect, it } from 'vitest';
import type { AskCheck } from '../../../src/actors/service/check_probes.ts';
import { startLiveCheck } from '../../../src/actors/service/live_check.ts';
import type { LastCheck } from '../../../src/protocol/service.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { virtualClock } from '../../kit/actors.ts';
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

it.each(['gone', 'deadline'])('a probe that the host does not answer (%s) does not count', async (code) => {
  const world = await supervise({ spec: { live: { ...LIVE, failures: 1 } } });
  await world.begin();
  await running(world);
  world.host.executed = new Failure(code, 'host: nobody is there');
  await world.advance(10_000);
  expect(world.host.commands.length).toBeGreaterThan(10);
  expect([world.host.stops, world.events().slice(1)]).toEqual([[], []]);
  world.host.executed = FAILED;
  await world.advance(1_000);
  expect(world.events()[1]?.[0]).toBe('service.unhealthy');
});

it('a probe during which the daemon stood still is made again, and counts if it fails then', async () => {
  const clock = virtualClock();
  const asked: number[] = [];
  const ask: AskCheck = (limitMs, onDone) => {
    asked.push(clock.monotonic());
    return clock.after(limitMs, () => onDone({ status: null, error: 'no answer' }));
  };
  const failures: LastCheck[] = [];
  const probing = { kind: 'exec', cmd: 'ok' } as const;
  const plan = { text: 'ok', probing, intervalMs: 1_000, timeoutMs: 2_000, failures: 1 };
  const check = startLiveCheck(clock, ask, plan, (last) => failures.push(last));
  await clock.advance(2_000);
  clock.standStill(60_000);
  await clock.advance(0);
  expect([asked, failures, check.last()]).toEqual([[1_000, 62_000], [], null]);
  await clock.advance(2_000);
  expect([asked.length, failures]).toEqual([2, [check.last()]]);
  check.stop();
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
