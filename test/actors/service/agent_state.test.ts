// What an agent is doing, as its service tells it: to the views, in events, and to those who wait.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LogWriter } from '../../../src/logs/writer.ts';
import type { AgentStateProtocol, AgentStatus } from '../../../src/protocol/agent_state.ts';
import type { TerminalProtocol } from '../../../src/protocol/terminal.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { AGENT_STATE } from '../../../src/settings/agent_limits.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { AGENT, type Plan, running, type Supervised, supervise } from '../../kit/service.ts';

interface Told {
  world: Supervised;
  agent: Ref<AgentStateProtocol>;
  /** The terminal has printed something. */
  moved(): void;
  status(): AgentStatus;
  /** The events of states, each with its predecessor. */
  changes(): string[];
}

async function agent(plan: Plan = {}): Promise<Told> {
  const world = await supervise({ ...plan, spec: { agent: AGENT, ...plan.spec } });
  await world.begin();
  const ref = world.services.ref<AgentStateProtocol>('service:web');
  return {
    world,
    agent: ref,
    moved: () => {
      world.host.reading = { ...world.host.reading, lastOutputAt: world.clock.now(), isMoving: true };
      const run = world.host.row?.run ?? '';
      const service = world.host.service as Ref<AgentStateProtocol> | null;
      service?.tell('terminalMoved', { run, ...world.host.reading });
    },
    status: () => {
      const last = world.views.of('agents').at(-1)?.rows[0];
      if (!last) throw new Error('the views got no state');
      return last;
    },
    changes: () =>
      world.journal.flatMap(({ type, data }) => {
        const { previous, state, reason } = JSON.parse(data);
        return type === 'agent.state' ? [`${previous} ${state} ${reason.authority}:${reason.rule}`] : [];
      }),
  };
}

const after = (ms: number) => ms + AGENT_STATE.eventIntervalMs;

it('an agent starts, works while it prints, is idle after a silence, and exits', async () => {
  const { world, moved, status, changes } = await agent();
  expect(status()).toMatchObject({ state: 'exited', lastOutputAt: null, viewers: 0, sessionId: null });
  await running(world);
  expect(status()).toMatchObject({ state: 'starting' });
  moved();
  await world.advance(after(0));
  expect(status()).toMatchObject({ state: 'working', lastOutputAt: world.host.reading.lastOutputAt });
  await world.advance(after(AGENT_STATE.outputMs));
  // Its screen is drawn from the files of its log, which takes time of its own.
  await eventually(() => status().state === 'idle');
  expect(status()).toMatchObject({ reason: { authority: 'output', rule: 'quiet' } });
  world.host.exit(0);
  await world.advance(after(0));
  expect(status()).toMatchObject({ state: 'exited' });
  expect(changes()).toEqual([
    'exited starting process:not-ready',
    'starting working output:moving',
    'working idle output:quiet',
    'idle exited process:exited',
  ]);
});

it('an agent is idle when it prints nothing, and starting until its ready-check passes', async () => {
  const silent = await agent();
  await running(silent.world);
  await silent.world.advance(after(AGENT_STATE.startingMs));
  expect(silent.status()).toMatchObject({ state: 'idle' });
  const checked = await agent({ spec: { ready: 'http://127.0.0.1:3000/' } });
  await checked.world.ref.ask('start', { timeoutMs: null, wait: false });
  checked.moved();
  await checked.world.advance(after(AGENT_STATE.outputMs));
  expect(checked.status()).toMatchObject({ state: 'starting' });
  checked.world.probe.pass();
  await checked.world.advance(2_000);
  expect(checked.status()).toMatchObject({ state: 'idle' });
});

it('an agent under a later daemon repeats no event, and keeps the time of its last change', async () => {
  const { world, moved, status } = await agent();
  await running(world);
  moved();
  await world.advance(after(AGENT_STATE.outputMs));
  await eventually(() => status().state === 'idle');
  const { since } = status();
  await world.services.node.stop();
  const row = world.host.row;
  const reason = { authority: 'output', rule: 'quiet' };
  expect(row?.memo.told).toEqual({ state: 'idle', since, reason });
  const next = await agent({ clock: world.clock, ...(row && { row }) });
  next.world.host.reading = world.host.reading;
  await next.world.ref.ask('adopt', {});
  await next.world.advance(after(0));
  await eventually(() => !next.status().isKept);
  expect(next.status()).toMatchObject({ state: 'idle', since, reason });
  expect(next.changes()).toEqual([]);
  // No event follows, so a client must not see another state meanwhile.
  const shown = next.world.views.of('agents').flatMap(({ rows }) => rows);
  expect(shown[0]).toMatchObject({ state: 'idle', since, reason, isKept: true });
  expect(new Set(shown.map(({ state }) => state))).toEqual(new Set(['idle']));
});

it('an agent has the last state of its run in an event, whatever an earlier daemon left', async () => {
  const { world, moved, status, changes } = await agent();
  await running(world);
  moved();
  await world.advance(after(AGENT_STATE.outputMs));
  await eventually(() => status().state === 'idle');
  await world.advance(after(0));
  await world.services.node.stop();
  const all = changes();
  expect(all.at(-1)).toBe('working idle output:quiet');
  const later = async (journal: typeof world.journal, isOver: boolean) => {
    const { row } = world.host;
    if (!row) throw new Error('no run');
    const { service, run } = row;
    const outcome = { exitCode: 0, signal: null, exitUnknown: false, cause: 'exit' } as const;
    const end = isOver ? { service, run, ...outcome, at: world.clock.now() } : null;
    const told = { state: 'idle', since: world.clock.now() } as const;
    const memo = { ...row.memo, told };
    const next = await agent({ clock: world.clock, row: { ...row, memo, end }, journal });
    next.world.host.reading = world.host.reading;
    await next.world.ref.ask('adopt', {});
    await eventually(() => next.status().state === (isOver ? 'exited' : 'idle'));
    await next.world.advance(after(0));
    await next.world.services.node.stop();
    return next.changes();
  };
  // The kill came between the host's note and the event.
  const isState = ({ type }: { type: string }) => type === 'agent.state';
  const lastState = world.journal.findLastIndex(isState);
  const cut = world.journal.filter((_, index) => index !== lastState);
  expect(await later(cut, false)).toEqual(all);
  expect(await later(world.journal, true)).toEqual([...all, 'idle exited process:exited']);
  expect(await later(cut, true)).toEqual([...all.slice(0, -1), 'working exited process:exited']);
  // Other events have displaced those of its states.
  expect(await later([], false)).toEqual([]);
  expect(await later([], true)).toEqual(['idle exited process:exited']);
});

it('an agent begins with no process, also where an earlier agent of its name was removed', async () => {
  const about = { name: 'web', run: null };
  const { world, changes } = await agent({
    journal: [
      { ...about, type: 'agent.state', data: '{"previous":"idle","state":"working","reason":{}}' },
      { ...about, type: 'service.removed', data: '{"name":"web"}' },
    ],
  });
  await running(world);
  expect(changes().slice(1)).toEqual(['exited starting process:not-ready']);
});

it('an agent that changes state repeatedly does not flood the journal', async () => {
  const { world, moved, changes } = await agent();
  await running(world);
  for (let turn = 0; turn < 40; turn += 1) {
    moved();
    await world.advance(AGENT_STATE.outputMs + 5);
  }
  const before = changes().length;
  expect(before).toBeGreaterThan(40);
  await world.advance(60_000);
  expect(changes().length - before).toBeLessThanOrEqual(1);
});

it('an agent is blocked by its screen or its hook, with the reason', async () => {
  const { world, agent: ref, moved, status } = await agent();
  const run = await running(world).then(() => world.host.row?.run ?? '');
  const log = new LogWriter(join(world.config.logs, 'web'), { maxBytes: 1_000_000, keep: 2 }, Date.now);
  log.append(1, run, Buffer.from('Overwrite it? [y/N] '));
  moved();
  await eventually(() => status().state === 'blocked');
  expect(status()).toMatchObject({
    question: ['Overwrite it? [y/N]'],
    reason: { authority: 'screen', rule: 'yes-or-no' },
  });
  const told = { state: 'blocked', question: ['Overwrite it? [y/N]'] };
  await eventually(() => world.host.row?.memo.told?.state === 'blocked');
  expect(world.host.row?.memo.told).toMatchObject(told);
  const { authorities } = await ref.ask('agentExplanation', {});
  expect(authorities.map(({ authority, state }) => [authority, state])).toEqual([
    ['hook', null],
    ['osc', null],
    ['screen', 'blocked'],
    ['output', 'working'],
  ]);
  expect(authorities[2]).toMatchObject({ rule: 'yes-or-no', lines: ['Overwrite it? [y/N]'] });
  const reported = await ref.ask('reportState', {
    state: 'idle',
    message: null,
    sessionId: null,
    reporter: null,
  });
  expect(reported).toMatchObject({ state: 'blocked', reason: { authority: 'screen' } });
  log.append(1, run, Buffer.from('\r\n'.repeat(40)));
  moved();
  await eventually(() => status().state === 'idle');
  expect(status()).toMatchObject({ reason: { authority: 'hook', rule: 'reported' }, question: [] });
  expect(world.host.row?.memo.hook).toMatchObject({ state: 'idle' });
  log.close();
  world.host.exit(0);
  await world.advance(after(0));
  const refused = ref.ask('reportState', { state: 'idle', message: null, sessionId: null, reporter: null });
  await expect(refused).rejects.toMatchObject({ code: 'not_running' });
});

it('an agent whose hook reports idle is working while a spinner turns in its title', async () => {
  const {
    world,
    agent: ref,
    moved,
    status,
  } = await agent({ spec: { agent: { ...AGENT, agentType: 'codex' } } });
  await running(world);
  const { signals } = world.host.reading;
  world.host.reading.signals = { ...signals, title: '⠸ work', titleMovedAt: world.clock.now() };
  moved();
  await eventually(() => status().reason.rule === 'title-spinner');
  const reported = await ref.ask('reportState', {
    state: 'idle',
    message: null,
    sessionId: null,
    reporter: null,
  });
  expect(reported).toMatchObject({ state: 'working', reason: { authority: 'osc' } });
  await world.advance(AGENT_STATE.outputMs);
  await eventually(() => status().state === 'idle');
  // The output goes on, the title does not.
  moved();
  await world.advance(1_000);
  expect(status()).toMatchObject({ state: 'idle', reason: { authority: 'hook' } });
});

it('a question of its hook that was answered stays answered for a later daemon', async () => {
  const { world, agent: ref, moved, status } = await agent();
  const run = await running(world).then(() => world.host.row?.run ?? '');
  const print = ({ config }: Supervised, text: string): void => {
    const log = new LogWriter(join(config.logs, 'web'), { maxBytes: 1_000_000, keep: 2 }, Date.now);
    log.append(1, run, Buffer.from(text));
    log.close();
  };
  print(world, 'What now?');
  moved();
  await ref.ask('reportState', { state: 'blocked', message: 'What now?', sessionId: null, reporter: null });
  await eventually(() => status().reason.authority === 'hook');
  await world.advance(1_000);
  const terminal = world.services.ref<TerminalProtocol>('service:web');
  const notes = world.host.notes.length;
  for (const text of ['g', 'o']) await terminal.ask('type', { text, keys: [] });
  // Only the first of what is typed is an answer.
  expect(world.host.notes).toHaveLength(notes + 1);
  await world.advance(1_000);
  print(world, '\r\nIt goes on.');
  moved();
  await eventually(() => status().state === 'working');
  const { clock, host, store } = world;
  const next = await agent({ clock, store: store.copy(), row: structuredClone(must(host.row)) });
  print(next.world, 'It goes on.');
  next.moved();
  await next.world.advance(1_000);
  await eventually(() => next.status().reason.authority === 'output', next.status);
});

it('what was typed is kept as the answer to a question of which the host reports late', async () => {
  const { world, moved } = await agent();
  await running(world);
  const asked = world.clock.now();
  await world.advance(1_000);
  await world.services.ref<TerminalProtocol>('service:web').ask('type', { text: 'yes', keys: ['Enter'] });
  expect(world.host.row?.memo.typedAt).toBeUndefined();
  const { signals } = world.host.reading;
  world.host.reading.signals = { ...signals, notification: { text: 'May I?', at: asked } };
  moved();
  await eventually(() => world.host.row?.memo.typedAt === asked + 1_000);
});

it('a report of its hook is answered once the host keeps it', async () => {
  const { agent: ref, world } = await agent();
  await running(world);
  let answer = (): void => {};
  world.host.noting = new Promise((resolve) => {
    answer = resolve;
  });
  let isAnswered = false;
  const reported = ref
    .ask('reportState', { state: 'idle', message: null, sessionId: null, reporter: null })
    .then((told) => {
      isAnswered = true;
      return told;
    });
  await eventually(() => world.host.row?.memo.hook?.state === 'idle');
  // Later messages of the agent are answered: it could have answered this one as well.
  await ref.ask('agentStatus', {});
  expect(isAnswered).toBe(false);
  answer();
  expect(await reported).toMatchObject({ state: 'idle' });
});
