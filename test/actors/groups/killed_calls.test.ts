// docs/reference.md "Groups": what a client asks of a member during a call of its group has the same outcome
// whether or not the daemon is killed after it. Services are models of real ones.
import { describe, expect, it } from 'vitest';
import { groupsActor } from '../../../src/actors/groups/groups.ts';
import { MemberOverride } from '../../../src/actors/service/member_override.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { GroupsProtocol } from '../../../src/protocol/groups.ts';
import type { Member, RegistryProtocol } from '../../../src/protocol/registry.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { actor, type Clock, type Ref } from '../../../src/runtime/actor.ts';
import { world } from '../../kit/actors.ts';
import { must } from '../../kit/must.ts';
import { advance, MemoryStore } from '../../kit/service.ts';
import { spec } from '../../kit/service_inputs.ts';

type Status = 'running' | 'stopped' | 'sleeping';

/** A process of the site; it outlives the daemon. */
interface Process {
  status: Status;
  /** How often it has been started. */
  starts: number;
}
type Processes = Map<string, Process>;

const MEMBERS: Member[] = [
  { name: 'db', dependsOn: [] },
  { name: 'api', dependsOn: ['db'] },
  { name: 'web', dependsOn: ['api'] },
].map((one) => ({ ...one, kind: 'service', sleep: { afterMinutes: 1 } }));
/** How long a start or an end takes. The client acts on `api` during the turns of the others. */
const turnMs = (name: string): number => (name === 'api' ? 5 : 100);

const member = (processes: Processes, store: MemoryStore, clock: Clock) =>
  actor<Pick<ServiceProtocol, 'start' | 'stop' | 'sleep'>, string>('service', (context, name) => {
    const override = new MemberOverride(context, store, name);
    const process = must(processes.get(name));
    const turn = () => new Promise<void>((resolve) => clock.after(turnMs(name), resolve));
    let stoppedAt = 0;
    const end = async (status: Status, kept: Promise<void> | null): Promise<void> => {
      if (kept) stoppedAt = clock.monotonic();
      if (process.status === 'running') await turn();
      process.status = status;
      await kept;
    };
    const ended = { exitCode: 0, signal: null, escalated: false, reaped: 1, left: [], portFree: true, ms: 1 };
    return {
      start: ({ askedAt }) => {
        if (askedAt === undefined) override.started();
        else if (stoppedAt > askedAt) throw fail('start_failed', `${name} was stopped meanwhile`);
        const isUp = process.status === 'running';
        if (!isUp) process.starts += 1;
        process.status = 'running';
        const reply = { name, status: 'running' as const, pid: 1 };
        return isUp ? reply : context.replyLater(turn().then(() => reply));
      },
      sleep: () =>
        context.replyLater(
          end('sleeping', override.stopped()).then(() => ({ name, status: 'sleeping' as const })),
        ),
      stop: ({ forRestart }) => {
        const isOverridden = forRestart !== undefined && (override.isStopped || stoppedAt > forRestart);
        const stop =
          isOverridden && process.status !== 'running'
            ? null
            : end('stopped', forRestart !== undefined ? null : override.stopped());
        const reply = { name, status: 'stopped' as const, ...ended };
        return context.replyLater(Promise.resolve(stop).then(() => reply));
      },
    };
  });

async function daemon(processes: Processes, store: MemoryStore) {
  const w = world();
  await w.stand<RegistryProtocol>('registry', {
    members: () => ({ members: MEMBERS }),
    isRegistered: () => ({ isRegistered: true }),
  });
  const type = member(processes, store, w.clock);
  w.node.family('service:', type, (address) => address.slice('service:'.length));
  const groups = await w.start('groups', groupsActor, { store, bootedAt: 0 });
  const api = w.ref<ServiceProtocol>('service:api');
  return { groups, api, advance: (ms: number) => advance(w.clock, ms) };
}

const given = { name: 'site', graceMs: null, timeoutMs: null };
const CALLS = {
  start: (groups: Ref<GroupsProtocol>) => groups.ask('start', given),
  wake: (groups: Ref<GroupsProtocol>) => groups.ask('wakeGroup', given),
  stop: (groups: Ref<GroupsProtocol>) => groups.ask('stop', given),
  sleep: (groups: Ref<GroupsProtocol>) => groups.ask('sleepGroup', given),
  restart: (groups: Ref<GroupsProtocol>) => groups.ask('restart', given),
};
const FIRST: Record<keyof typeof CALLS, Status> = {
  start: 'stopped',
  wake: 'sleeping',
  stop: 'running',
  sleep: 'running',
  restart: 'running',
};
const ACTIONS = {
  start: (api: Ref<ServiceProtocol>) => api.ask('start', { timeoutMs: null, wait: true, join: true }),
  stop: (api: Ref<ServiceProtocol>) => api.ask('stop', { graceMs: null }),
  sleep: (api: Ref<ServiceProtocol>) => api.ask('sleep', {}),
};
/** While another member has its turn: the second step of a restart begins at 205 ms. */
const BEFORE = 50;
const AFTER = 150;
const STARTS = 205;

/** The site at the end, with the daemon that began the call and with one that took over after the action. */
async function outcomes(verb: keyof typeof CALLS, action: keyof typeof ACTIONS, at: number) {
  const processes: Processes = new Map(MEMBERS.map(({ name }) => [name, { status: FIRST[verb], starts: 0 }]));
  const store = new MemoryStore();
  for (const { name } of MEMBERS)
    await store.table('services').put(name, { spec: spec({ name, group: 'site' }), revision: 1 });
  const first = await daemon(processes, store);
  const called = CALLS[verb](first.groups).catch(() => null);
  await first.advance(at);
  const acted = ACTIONS[action](first.api);
  await first.advance(20);
  await acted;
  const killed = { processes: structuredClone(processes), store: store.copy() };
  await first.advance(1_000);
  await called;
  const next = await daemon(killed.processes, killed.store);
  await next.groups.ask('resume', {});
  await next.advance(1_000);
  expect(killed.store.table('restarts').all()).toEqual([]);
  return { live: Object.fromEntries(processes), killed: Object.fromEntries(killed.processes) };
}

describe.each(['start', 'stop', 'sleep'] as const)('the %s of a member by a client', (action) => {
  it.each([
    ['start', BEFORE],
    ['start', AFTER],
    ['wake', BEFORE],
    ['wake', AFTER],
    ['stop', BEFORE],
    ['stop', AFTER],
    ['sleep', BEFORE],
    ['sleep', AFTER],
    ['restart', BEFORE],
    ['restart', AFTER],
    ['restart', STARTS + BEFORE],
    ['restart', STARTS + AFTER],
  ] as const)('during the %s of its group, after %s ms', async (verb, at) => {
    const { live, killed } = await outcomes(verb, action, at);
    expect(killed).toEqual(live);
    // What has had its turn stays as the client wants it.
    const wanted = { start: 'running', stop: 'stopped', sleep: 'sleeping' } as const;
    if (at % STARTS === AFTER || (verb === 'restart' && action !== 'stop'))
      expect(live['api']?.status).toBe(wanted[action]);
  });
});

it('a call of an earlier version, which has noted no stops, is finished for all members', async () => {
  const processes: Processes = new Map(MEMBERS.map(({ name }) => [name, { status: 'running', starts: 0 }]));
  const store = new MemoryStore();
  const row = { verb: 'stop', step: 'start', graceMs: null, timeoutMs: null, at: 1 } as const;
  await store.table('restarts').put('site', row);
  const next = await daemon(processes, store);
  await next.groups.ask('resume', {});
  await next.advance(1_000);
  expect([...processes.values()].map(({ status }) => status)).toEqual(Array(3).fill('stopped'));
});
