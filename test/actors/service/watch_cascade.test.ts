// docs/reference.md "Watch": what `cascade` does to a service that depends on the one whose files changed.
import { describe, expect, it } from 'vitest';
import type { DoorProtocol } from '../../../src/protocol/doors.ts';
import { must } from '../../kit/must.ts';
import { MEMO, type Plan, quiet, type Supervised, supervise } from '../../kit/service.ts';
import { start, watching } from '../../kit/watching_service.ts';

const STOP_MS = 1_000;
const SLEEPY = { sleep: { afterMinutes: 60 } };
const UNHEALTHY = { live: 'http://localhost:3000/' };

const announce = ({ ref }: Supervised) => ref.ask('expectRestart', {});
const restart = ({ ref }: Supervised) => ref.ask('restartRunning', {});
const stop = ({ ref }: Supervised) => ref.ask('stop', { graceMs: null });
const sleep = ({ ref }: Supervised) => ref.ask('sleep', {});
const clientsRestart = ({ ref }: Supervised) => ref.ask('restart', { timeoutMs: null, graceMs: null });

async function dependant(plan: Plan = {}): Promise<Supervised> {
  const { world } = await watching(plan);
  await world.services.stand<DoorProtocol>('door:web', { set: () => null });
  world.host.stopMs = STOP_MS;
  if (!plan.row) await start(world);
  return world;
}

/** Begins the steps one after the other, without waiting for their ends. */
async function begin(world: Supervised, ...steps: ((world: Supervised) => Promise<unknown>)[]) {
  const answers: Promise<unknown>[] = [];
  for (const step of steps) {
    answers.push(step(world).catch(() => null));
    await quiet();
  }
  return answers;
}

describe('a service, after the restart of one that it depends on,', () => {
  it.each([
    ['is running', {}, [announce, restart], 'running', 2],
    ['is being restarted', {}, [clientsRestart, announce, restart], 'running', 2],
    ['is being stopped', {}, [stop, announce, restart], 'stopped', 1],
    ['is being stopped since it was announced', {}, [announce, stop, restart], 'stopped', 1],
    ['is being stopped in a restart', {}, [clientsRestart, announce, stop, announce, restart], 'stopped', 1],
    ['is falling asleep', SLEEPY, [sleep, announce, restart], 'sleeping', 1],
    ['is falling asleep since it was announced', SLEEPY, [announce, sleep, restart], 'sleeping', 1],
    ['is falling asleep in a restart', SLEEPY, [clientsRestart, sleep, announce, restart], 'sleeping', 1],
  ] as const)('that came while it %s', async (_when, spec, steps, status, made) => {
    const world = await dependant({ spec });
    const answers = await begin(world, ...steps);
    await world.advance(STOP_MS * 3);
    await Promise.all(answers);
    expect([world.state().status, world.host.made.length]).toEqual([status, made]);
  });

  it('has the status that an earlier daemon was asked for', async () => {
    const world = await supervise({ row: { stopping: true } });
    world.host.stopMs = STOP_MS;
    await world.begin();
    expect(world.state().status).toBe('stopping');
    const answers = await begin(world, announce, restart);
    await world.advance(STOP_MS * 3);
    await Promise.all(answers);
    expect([world.state().status, world.host.made]).toEqual(['stopped', []]);
  });

  it('that came while its door closes for a stop, is not started, nor by a later daemon', async () => {
    const world = await dependant({ spec: SLEEPY });
    let written = (): void => {};
    world.store.busy = new Promise((resolve) => {
      written = resolve;
    });
    const answers = await begin(world, stop, announce, restart);
    expect([world.state().status, must(world.host.row).memo.relaunch]).toEqual(['running', undefined]);
    written();
    await world.advance(STOP_MS * 3);
    await Promise.all(answers);
    expect([world.state().status, world.host.made.length]).toEqual(['stopped', 1]);
  });

  it('runs if a failed live-check was ending it', async () => {
    const world = await dependant({ spec: UNHEALTHY, row: { memo: { ...MEMO, ...UNHEALTHY } } });
    for (let tries = 0; tries < 100 && world.state().status !== 'stopping'; tries += 1)
      await world.advance(1_000);
    expect(world.state().status).toBe('stopping');
    const answers = await begin(world, announce, restart);
    await world.advance(STOP_MS * 3);
    await Promise.all(answers);
    expect([world.state().status, world.host.made.length]).toEqual(['running', 1]);
  });
});
