// wait=false of every call that lasts as long as a start or a stop, on the real daemon: it is answered with the
// present state, and goes on.
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, eventually, newFolder, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';

/** Makes the file `firm` once it ignores the signals of a stop; ends when its folder has a file `end`. */
const FIRM = `trap '' TERM HUP; touch firm; until [ -e end ]; do sleep 0.05; done; rm end`;
const GRACE = { stopGrace: 100_000 };
const SLEEP = { sleep: { afterMinutes: 60 } };

/** What a busy machine has not begun within the time of the answer has the state of before. */
const ending = { status: expect.toBeOneOf(['running', 'stopping']) };
const starting = (name: string) => ({
  name,
  status: expect.toBeOneOf(['stopped', 'starting']),
  pid: expect.toBeOneOf([null, expect.any(Number)]),
});

async function ask(daemon: Daemon, method: string, path: string, body?: object): Promise<[number, any]> {
  const answer = await daemon.request(method, path, body);
  return [answer.status, answer.body];
}

const becomes = (daemon: Daemon, name: string, wanted: string) =>
  eventually(async () => (await daemon.request('GET', `/v1/services/${name}`)).body.status === wanted);

const isFirm = async (daemon: Daemon, name: string, cwd: string): Promise<void> => {
  await becomes(daemon, name, 'running');
  await eventually(() => existsSync(join(cwd, 'firm')));
};

/** Registers a service and starts it; returns how to let it end. */
async function firm(daemon: Daemon, name: string, more: object = {}): Promise<() => Promise<void>> {
  const cwd = newFolder();
  const spec = { name, port: freePort(), cwd, cmd: FIRM, ...GRACE, ...SLEEP, ...more };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
  expect((await daemon.request('POST', `/v1/services/${name}/start`)).status).toBe(200);
  await isFirm(daemon, name, cwd);
  return () => writeFile(join(cwd, 'end'), '');
}

/** Registers a service that is never ready. */
async function slow(daemon: Daemon, name: string, more: object = {}): Promise<void> {
  const ready = `tcp://127.0.0.1:${freePort()}`;
  const spec = { name, port: freePort(), cmd: 'sleep 600', ready, startTimeout: 600_000, ...SLEEP, ...more };
  expect((await daemon.request('POST', '/v1/services', spec)).status).toBe(201);
}

it('stop, sleep, restart and removal of a service', async () => {
  const daemon = await startDaemon();
  const [stopping, asleep, again, gone] = ['stopping', 'asleep', 'again', 'gone'];
  const [endStop, endSleep, endRestart, endRemoval] = [
    await firm(daemon, stopping),
    await firm(daemon, asleep),
    await firm(daemon, again),
    await firm(daemon, gone),
  ];
  const before = (await daemon.request('GET', `/v1/services/${again}`)).body.pid;
  const path = (name: string, verb: string) => `/v1/services/${name}/${verb}?wait=false`;
  expect([
    await ask(daemon, 'POST', path(stopping, 'stop')),
    await ask(daemon, 'POST', path(asleep, 'sleep')),
    await ask(daemon, 'POST', path(again, 'restart')),
    await ask(daemon, 'DELETE', `/v1/services/${gone}?wait=false`),
  ]).toEqual([
    [202, { name: stopping, ...ending }],
    [202, { name: asleep, ...ending }],
    [202, { name: again, ...ending, pid: before }],
    [202, { removed: false, name: gone }],
  ]);
  for (const end of [endStop, endSleep, endRestart, endRemoval]) await end();
  await becomes(daemon, stopping, 'stopped');
  await becomes(daemon, asleep, 'sleeping');
  await eventually(async () => (await daemon.request('GET', `/v1/services/${gone}`)).status === 404);
  await becomes(daemon, again, 'running');
  expect((await daemon.request('GET', `/v1/services/${again}`)).body.pid).not.toBe(before);
  await daemon.request('POST', `/v1/services/${again}/stop?grace=0`);
});

it('wake of a service, and start and wake of a group', async () => {
  const daemon = await startDaemon();
  await slow(daemon, 'alone');
  await slow(daemon, 'started', { group: 'starts' });
  await slow(daemon, 'woken', { group: 'wakes' });
  expect(await ask(daemon, 'POST', '/v1/services/alone/wake?wait=false')).toEqual([202, starting('alone')]);
  expect([
    await ask(daemon, 'POST', '/v1/groups/starts/start?wait=false'),
    await ask(daemon, 'POST', '/v1/groups/wakes/wake?wait=false'),
  ]).toEqual([
    [202, { name: 'starts', services: [starting('started')] }],
    [202, { name: 'wakes', services: [starting('woken')] }],
  ]);
  for (const name of ['alone', 'started', 'woken']) await becomes(daemon, name, 'starting');
});

it('stop, sleep and restart of a group', async () => {
  const daemon = await startDaemon();
  const ends = [
    await firm(daemon, 'one', { group: 'stops' }),
    await firm(daemon, 'two', { group: 'sleeps' }),
    await firm(daemon, 'three', { group: 'restarts' }),
  ];
  expect([
    await ask(daemon, 'POST', '/v1/groups/stops/stop?wait=false'),
    await ask(daemon, 'POST', '/v1/groups/sleeps/sleep?wait=false'),
    await ask(daemon, 'POST', '/v1/groups/restarts/restart?wait=false'),
  ]).toEqual([
    [202, { name: 'stops', services: [{ name: 'one', ...ending, exitCode: null }] }],
    [202, { name: 'sleeps', services: [{ name: 'two', ...ending }] }],
    [202, { name: 'restarts', services: [{ name: 'three', ...ending, pid: expect.any(Number) }] }],
  ]);
  for (const end of ends) await end();
  await becomes(daemon, 'one', 'stopped');
  await becomes(daemon, 'two', 'sleeping');
  await becomes(daemon, 'three', 'running');
  await daemon.request('POST', '/v1/services/three/stop?grace=0');
});

it('wake, sleep and removal of an agent', async () => {
  const daemon = await startDaemon();
  const cwd = newFolder();
  const ready = `tcp://127.0.0.1:${freePort()}`;
  const spinup = (body: object) => ask(daemon, 'POST', '/v1/agents/spinup', body);
  const [, { port }] = await spinup({ name: 'gone', cwd, cmd: FIRM });
  await spinup({ name: 'woken', cmd: 'sleep 600', ready });
  await daemon.request('POST', '/v1/services/woken/stop');
  expect(await ask(daemon, 'POST', '/v1/agents/woken/wake?force=true&wait=false')).toEqual([
    202,
    starting('woken'),
  ]);
  const asleep = newFolder();
  await spinup({ name: 'asleep', cwd: asleep, cmd: FIRM });
  await isFirm(daemon, 'asleep', asleep);
  await isFirm(daemon, 'gone', cwd);
  await ask(daemon, 'POST', '/v1/agents/asleep/state', { state: 'idle' });
  expect([
    await ask(daemon, 'POST', '/v1/agents/asleep/sleep?force=true&wait=false'),
    await ask(daemon, 'DELETE', '/v1/agents/gone?wait=false'),
  ]).toEqual([
    [202, { name: 'asleep', ...ending }],
    [202, { removed: false, name: 'gone', port }],
  ]);
  for (const folder of [asleep, cwd]) await writeFile(join(folder, 'end'), '');
  await becomes(daemon, 'asleep', 'sleeping');
  await eventually(async () => (await daemon.request('GET', '/v1/agents/gone')).status === 404);
});
