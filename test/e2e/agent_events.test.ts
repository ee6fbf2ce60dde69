// docs/reference.md "State of an agent": its events across the ends of daemons, with real programs.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type Daemon, eventually, isAlive, newFolder, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';

const [first] = ownPorts(10);
const CONFIG = `[agents]\nports = [${first}, ${first + 9}]\n`;
const KEEP = `${CONFIG}[shutdown]\nservices = "keep"\n`;

/** The events of `name`, in order, without the times. */
async function eventsOf(daemon: Daemon, name: string): Promise<{ type: string; data: any }[]> {
  const { body } = await daemon.request('GET', `/v1/events/history?limit=1024&names=${name}`);
  return body.events;
}

/** The states that the events of `name` tell. Each event must begin where the one before ended. */
async function toldStates(daemon: Daemon, name: string): Promise<string[]> {
  const events = await eventsOf(daemon, name);
  const changes = events.flatMap(({ type, data }) => (type === 'agent.state' ? [data] : []));
  const states = changes.map(({ state }) => state);
  expect(changes.map(({ previous }) => previous)).toEqual(['exited', ...states.slice(0, -1)]);
  return states;
}

/** The events that end a run of `name`. */
async function ends(daemon: Daemon, name: string): Promise<string[]> {
  const types = (await eventsOf(daemon, name)).map(({ type }) => type);
  return types.filter((type) => /^(?:service\.(?:stopped|crashed)|agent\.slept)$/.test(type));
}

const spinUp = async (daemon: Daemon, name: string, cmd: string, more: object = {}): Promise<number> => {
  const { body, status } = await daemon.request('POST', '/v1/agents/spinup', { name, cmd, ...more });
  expect(status).toBe(201);
  return body.pid;
};
const report = (daemon: Daemon, name: string, state: string, more: object = {}) =>
  daemon.request('POST', `/v1/agents/${name}/state`, { state, ...more });
const wait = (daemon: Daemon, name: string, state: string) =>
  daemon.request('GET', `/v1/agents/${name}/wait?for=${state}`);
const stateOf = async (daemon: Daemon, name: string): Promise<string> =>
  (await daemon.request('GET', `/v1/agents/${name}`)).body.state;

it('has its last state in an event, whenever the daemon is killed', async () => {
  const one = await startDaemon({ config: CONFIG });
  const names = ['a', 'b', 'c', 'd'];
  for (const name of names) await spinUp(one, name, 'exec sleep 1000');
  await Promise.all(names.map((name) => report(one, name, 'idle')));
  await Promise.all(names.map((name) => wait(one, name, 'idle')));
  // Of states that follow each other fast, only the first has its event at once.
  for (const state of ['working', 'idle', 'blocked'])
    await Promise.all(names.map((name) => report(one, name, state)));
  one.signal('SIGKILL');
  await one.exited;
  const two = await startDaemon({ config: CONFIG, stateDir: one.stateDir });
  for (const name of names) {
    await eventually(async () => (await stateOf(two, name)) === 'blocked');
    await eventually(async () => (await toldStates(two, name)).at(-1) === 'blocked');
  }
});

it.each(['kill', 'shutdown'])('what changes while no daemon runs has its events after a %s', async (how) => {
  const one = await startDaemon({ config: KEEP });
  const folder = newFolder();
  const sign = join(folder, 'sign');
  const after = (what: string): string => `until [ -e ${sign} ]; do sleep 0.02; done; ${what}`;
  const pids = {
    done: await spinUp(one, 'done', after('exit 0')),
    fell: await spinUp(one, 'fell', after('exit 3')),
  };
  await spinUp(one, 'asks', after(`printf 'Overwrite it? [y/N] '; sleep 1000`));
  await spinUp(one, 'same', 'exec sleep 1000');
  const names = ['done', 'fell', 'asks', 'same'];
  await Promise.all(names.map((name) => wait(one, name, 'idle')));
  for (const name of names) await eventually(async () => (await toldStates(one, name)).at(-1) === 'idle');
  if (how === 'kill') one.signal('SIGKILL');
  else one.signal('SIGTERM');
  await one.exited;
  writeFileSync(sign, '');
  await eventually(() => !isAlive(pids.done) && !isAlive(pids.fell));
  const two = await startDaemon({ config: KEEP, stateDir: one.stateDir });
  const last = { done: 'exited', fell: 'exited', asks: 'blocked', same: 'idle' };
  for (const [name, state] of Object.entries(last)) {
    await wait(two, name, state);
    await eventually(async () => (await toldStates(two, name)).at(-1) === state);
  }
  expect(await toldStates(two, 'done')).toEqual(['starting', 'idle', 'exited']);
  expect(await toldStates(two, 'same')).toEqual(['starting', 'idle']);
  expect(await ends(two, 'done')).toEqual(['service.stopped']);
  expect(await ends(two, 'fell')).toEqual(['service.crashed']);
  // A third daemon has nothing to add.
  const before = await Promise.all(names.map((name) => eventsOf(two, name)));
  await stopDaemon(two);
  const three = await startDaemon({ config: KEEP, stateDir: one.stateDir });
  for (const [name, state] of Object.entries(last)) await wait(three, name, state);
  expect(await Promise.all(names.map((name) => eventsOf(three, name)))).toEqual(before);
});

it('has the events of its end at an orderly shutdown', async () => {
  const one = await startDaemon({ config: CONFIG });
  await spinUp(one, 'bot', 'exec sleep 1000');
  const claude = join(newFolder(), 'claude');
  writeFileSync(claude, '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
  await spinUp(one, 'coder', claude, { agent_type: 'claude' });
  await report(one, 'coder', 'idle', { session_id: 'a-conversation' });
  await Promise.all(['bot', 'coder'].map((name) => wait(one, name, 'idle')));
  await report(one, 'bot', 'working');
  await stopDaemon(one);
  const two = await startDaemon({ config: CONFIG, stateDir: one.stateDir });
  for (const [name, state] of Object.entries({ bot: 'exited', coder: 'asleep' })) {
    await wait(two, name, state);
    await eventually(async () => (await toldStates(two, name)).at(-1) === state);
  }
  expect(await ends(two, 'bot')).toEqual(['service.stopped']);
  expect(await ends(two, 'coder')).toEqual(['agent.slept']);
});
