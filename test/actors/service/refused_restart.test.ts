// docs/reference.md "Restart policy": a restart that no client has asked for, and whose start is refused.
import { describe, expect, it } from 'vitest';
import { fail } from '../../../src/protocol/errors.ts';
import type { RestartRule } from '../../../src/protocol/service.ts';
import { must } from '../../kit/must.ts';
import { MEMO, type Plan, quiet, type Supervised } from '../../kit/service.ts';
import { type Setting, start, watching } from '../../kit/watching_service.ts';

const ALWAYS = { restart: 'always' } as const;
const UNHEALTHY = { exitCode: 3, signal: null, timedOut: false, output: '' };
const LIVE = { exec: 'ok', interval: 1_000, failures: 1 };

const hold = ({ ports }: Supervised, holder: string | null): void => {
  ports.holder = holder;
};
const conflicts = (world: Supervised): number =>
  world.events().filter(([type]) => type === 'port.conflict').length;
const clientsRestart = ({ ref }: Supervised) => ref.ask('restart', { timeoutMs: null, graceMs: null });

const byChange = ({ change }: Setting) => change('src/a.ts');
const byCascade = async ({ world }: Setting): Promise<void> => {
  world.ref.ask('restartRunning', {}).catch(() => null);
  await quiet();
};
const byCrash = async ({ world }: Setting): Promise<void> => {
  world.host.exit(1);
  await world.advance(100);
};
const byMemory = async ({ world }: Setting): Promise<void> => {
  await world.ref.ask('overMemory', { run: must(world.host.row).run, rssMB: 9 });
  await world.advance(100);
};
const byLiveCheck = async ({ world }: Setting): Promise<void> => {
  world.host.executed = UNHEALTHY;
  await world.advance(1_150);
};
const byChangeAfterCrash = async (setting: Setting): Promise<void> => {
  setting.world.host.exit(1);
  await quiet();
  await setting.change('src/a.ts');
};

/** A running service, and then the program that takes its port as soon as that is free. */
async function held(plan: Plan): Promise<Setting> {
  const setting = await watching(plan);
  await start(setting.world);
  hold(setting.world, 'pid 7 (python3)');
  return setting;
}

describe('a restart that is refused while another program has the port', () => {
  it.each([
    ['by a change of files', byChange, 5, {}],
    ['by a change of files, in the pause after a crash', byChangeAfterCrash, 5, {}],
    ['by cascade', byCascade, 5, {}],
    ['by a crash', byCrash, 4, {}],
    ['by the memory limit', byMemory, 4, {}],
    ['by a failed live-check', byLiveCheck, 4, { live: LIVE }],
  ] as const)('%s is tried again with the pauses of the policy', async (_by, begin, tries, spec) => {
    const setting = await held({ spec: { ...ALWAYS, ...spec } });
    const { world } = setting;
    await begin(setting);
    await world.advance(2_000);
    expect([world.host.made.length, conflicts(world)]).toEqual([1, tries]);
    expect(await world.ref.ask('explain', {})).toMatchObject({
      reason: expect.stringMatching(/made no process: .* is held by pid 7 .*policy is "always"/),
      waitingFor: expect.stringContaining('restart number'),
    });
    hold(world, null);
    world.host.executed = { ...UNHEALTHY, exitCode: 0 };
    await world.advance(2_000);
    expect([world.state().status, world.host.made.length]).toEqual(['running', 2]);
  });

  it.each([
    ['no', 1, 'held by pid 7 (python3).'],
    [{ policy: 'on-failure', max: 2 }, 3, 'its restart policy allows no further restart.'],
  ] as const)('ends with what the policy %j allows', async (restart, tries, reason) => {
    const rule: 'no' | RestartRule = restart;
    const setting = await held({ spec: { restart: rule } });
    const { world } = setting;
    await byChange(setting);
    await world.advance(5_000);
    expect(conflicts(world)).toBe(tries);
    expect((await world.ref.ask('explain', {})).reason).toContain(reason);
    hold(world, null);
    const next = await watching({ spec: { restart: rule }, store: world.store.copy() });
    for (const of of [world, next.world]) {
      await of.advance(60_000);
      expect(of.state().status).toBe('stopped');
    }
  });

  it.each([
    ['goes on', [], 'running'],
    ['is over after a stop', ['stop'], 'stopped'],
  ] as const)('%s, also under the next daemon', async (_what, verbs, status) => {
    const setting = await held({ spec: ALWAYS });
    const { world } = setting;
    await byChange(setting);
    await world.advance(1_000);
    for (const verb of verbs) await world.ref.ask(verb, { graceMs: null });
    const next = await watching({ spec: ALWAYS, store: world.store.copy() });
    hold(world, null);
    for (const of of [world, next.world]) {
      await of.advance(5_000);
      expect(of.state().status).toBe(status);
    }
  });

  it.each([
    ['', async () => {}],
    [', also if it joins one by a change of files', byChange],
  ] as const)("is over if it is a client's%s", async (_when, before) => {
    const setting = await watching({ spec: ALWAYS });
    const { world } = setting;
    await start(world);
    world.host.stopMs = 500;
    await before(setting);
    const refused = expect(clientsRestart(world)).rejects.toMatchObject({ code: 'port_in_use' });
    await quiet();
    hold(world, 'pid 7 (python3)');
    await world.advance(500);
    await refused;
    hold(world, null);
    await world.advance(5_000);
    expect([world.state().status, conflicts(world)]).toEqual(['stopped', 1]);
  });
});

it('a restart that a full disk refuses is tried every second, whatever the policy allows', async () => {
  const setting = await watching({ spec: { restart: { policy: 'always', max: 1 } } });
  const { world } = setting;
  await start(world);
  world.host.refusal = fail('storage_full', 'no room');
  await byChange(setting);
  await world.advance(5_500);
  expect(world.host.spawns).toHaveLength(7);
  world.host.refusal = null;
  await world.advance(1_000);
  expect(world.state().status).toBe('running');
});

it('a restart by a change of files that is not ready in time is followed by another, also under the next daemon', async () => {
  const spec = { ...ALWAYS, ready: 'http://localhost:3000/', startTimeout: 1_000 };
  const { change, world } = await watching({ spec, row: { memo: { ...MEMO, passed: true } } });
  await quiet();
  await change('src/a.ts');
  await world.advance(500);
  expect([world.state().status, world.host.made.length]).toEqual(['starting', 1]);
  const next = await watching({
    spec,
    store: world.store.copy(),
    row: structuredClone(must(world.host.row)),
  });
  for (const of of [world, next.world]) {
    await of.advance(1_050);
    of.probe.pass();
    await of.advance(500);
    expect(of.state()).toMatchObject({ status: 'running', restarts: 1 });
  }
});
