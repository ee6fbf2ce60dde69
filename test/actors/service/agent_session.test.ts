// docs/reference.md "Sessions of agents": what is started, what is on disk, and what a later daemon finds.
import { describe, expect, it } from 'vitest';
import type { StoredSession } from '../../../src/protocol/agent_sessions.ts';
import type { AgentStateProtocol, AgentStatus } from '../../../src/protocol/agent_state.ts';
import type { AgentType } from '../../../src/protocol/agent_types.ts';
import type { PromptProtocol } from '../../../src/protocol/prompts.ts';
import type { RunEnd } from '../../../src/protocol/service.ts';
import type { TerminalProtocol, TerminalViewersProtocol } from '../../../src/protocol/terminal.ts';
import { Failure, type Ref } from '../../../src/runtime/actor.ts';
import { deferred } from '../../../src/runtime/deferred.ts';
import { AGENT_STATE, PROMPT } from '../../../src/settings/agent_limits.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { AGENT, type Plan, quiet, running, type Supervised, supervise } from '../../kit/service.ts';

const ID = 'conversation-1';
const RESUMED = `claude --resume "${ID}"`;
/** Longer than anything that only time decides. */
const LONG_MS = AGENT_STATE.outputMs + AGENT_STATE.startingMs;

interface Conversation {
  world: Supervised;
  agent: Ref<AgentStateProtocol>;
  status(): AgentStatus;
  /** A hook tells the agent's state, and the id of the conversation. */
  tell(state: AgentStatus['state'], sessionId?: string, reporter?: string | null): Promise<unknown>;
  session(): StoredSession | undefined;
  sleep(force?: boolean): Promise<unknown>;
  start(how?: { wake?: boolean; force?: boolean }): Promise<unknown>;
  /** Everything that was started, in order. */
  commands(): string[];
  /** The events of services and agents but those of states. */
  types(): string[];
}

async function conversation(plan: Plan = {}, agentType: AgentType | null = 'claude'): Promise<Conversation> {
  const agent = { ...AGENT, agentType };
  const world = await supervise({ ...plan, spec: { cmd: agentType ?? 'program', agent, ...plan.spec } });
  await world.begin();
  const ref = world.services.ref<AgentStateProtocol>('service:web');
  return {
    world,
    agent: ref,
    status: () => {
      const last = world.views.of('agents').at(-1)?.rows[0];
      if (!last) throw new Error('the views got no state');
      return last;
    },
    tell: (state, sessionId, reporter = null) =>
      ref.ask('reportState', {
        state: state as 'idle',
        message: null,
        sessionId: sessionId ?? null,
        reporter,
      }),
    session: () => world.store.table('sessions').get('web'),
    sleep: async (force = false) => {
      const slept = world.ref.ask('sleep', { force });
      await world.advance(100);
      return slept;
    },
    start: async (how = {}) => {
      const started = world.ref.ask('start', { timeoutMs: null, wait: true, ...how });
      await world.advance(100);
      return started;
    },
    commands: () => world.host.spawns.map(({ cmd }) => cmd),
    types: () => world.journal.flatMap(({ type }) => (type === 'agent.state' ? [] : [type])),
  };
}

/** An agent that is idle, with a conversation that has begun. */
async function idleOne(plan: Plan = {}): Promise<Conversation> {
  const made = await conversation(plan);
  await running(made.world);
  await made.tell('idle', ID);
  await made.world.advance(LONG_MS);
  expect(made.status()).toMatchObject({ state: 'idle', sessionId: ID });
  return made;
}

/** The daemon after that of `before`, on its store; of what lived, the ledger has `end`. */
async function later(
  { world }: Conversation,
  end: Partial<RunEnd> | null = null,
  plan: Plan = {},
): Promise<Conversation> {
  const { clock, host, store } = world;
  await world.services.node.stop();
  const { row } = host;
  const ended = { service: 'web', run: row?.run ?? '', exitCode: null, signal: null, exitUnknown: false };
  const over = end && { ...ended, cause: 'exit' as const, at: clock.now(), ...end };
  return conversation({ clock, store, ...plan, ...(row && { row: { ...row, end: row.end ?? over } }) });
}

const code = (error: unknown): unknown => (error instanceof Failure ? error.code : error);

describe('a report of a hook', () => {
  it('counts for the agent unless it is of a program of another type', async () => {
    const { world, status, tell } = await conversation({}, 'gemini');
    await running(world);
    await tell('working', ID, 'gemini');
    expect(await tell('idle', 'nested', 'codex')).toMatchObject({ state: 'working', sessionId: ID });
    expect(status()).toMatchObject({ state: 'working', sessionId: ID });
    expect(world.host.row?.memo.hook).toMatchObject({ state: 'working' });
    // A hook of an earlier version names no type.
    expect(await tell('blocked', 'untyped')).toMatchObject({ state: 'blocked', sessionId: 'untyped' });
  });

  it.each(['shell', 'ollama', null] as const)('counts of every program for type %s', async (type) => {
    const { world, tell } = await conversation({}, type);
    await running(world);
    expect(await tell('working', ID, 'codex')).toMatchObject({ state: 'working', sessionId: ID });
  });
});

describe('a sleeping agent', () => {
  it('keeps its conversation, and a wake resumes it', async () => {
    const { world, commands, session, sleep, start, status, types } = await idleOne();
    expect(commands()).toEqual([expect.stringMatching(/^claude --session-id "[0-9a-f-]{36}"$/)]);
    expect(await sleep()).toEqual({ name: 'web', status: 'sleeping' });
    expect(session()).toMatchObject({ id: ID, asleep: { after: world.host.made[0] } });
    expect(status()).toMatchObject({ state: 'asleep', sessionId: ID });
    expect(world.state()).toMatchObject({ process: null });
    // Once more, it sleeps already.
    expect(await sleep()).toEqual({ name: 'web', status: 'sleeping' });
    await start({ wake: true });
    expect(commands().slice(1)).toEqual([RESUMED]);
    expect(types().filter((type) => !type.startsWith('service.st'))).toEqual(['agent.slept', 'agent.woke']);
    expect(status()).toMatchObject({ sessionId: ID });
  });

  it('is woken by a viewer, not by an observer', async () => {
    const { world, commands, sleep } = await idleOne();
    await world.services.stand<TerminalViewersProtocol>('viewers');
    const terminal = world.services.ref<TerminalProtocol>('service:web');
    await sleep();
    const observed = terminal.ask('attach', { viewer: 'one', observes: true });
    await expect(observed).rejects.toMatchObject({ code: 'not_running' });
    const attached = terminal.ask('attach', { viewer: 'two' });
    await world.advance(100);
    expect(await attached).toBe(null);
    expect(commands().slice(1)).toEqual([RESUMED]);
    await terminal.ask('detach', { viewer: 'two' });
  });

  it('that is removed leaves no conversation', async () => {
    const { world, sleep, session } = await idleOne();
    await sleep();
    const removed = world.ref.ask('retire', { graceMs: null });
    await world.advance(100);
    await removed;
    expect(session()).toBeUndefined();
  });

  it('begins a new conversation only if that is forced', async () => {
    const { commands, sleep, start, status } = await idleOne();
    await sleep();
    await start({ wake: true, force: true });
    const [first, second] = commands();
    expect(second).toMatch(/^claude --session-id "[0-9a-f-]{36}"$/);
    expect(second).not.toBe(first);
    expect(status().sessionId).not.toBe(ID);
  });

  it('shows what its program prints about a conversation that it no longer knows, and resumes nothing else', async () => {
    const { world, commands, sleep, start, status } = await idleOne();
    await sleep();
    await start({ wake: true });
    world.host.exit(1);
    await world.advance(LONG_MS);
    expect(status()).toMatchObject({ state: 'exited', sessionId: ID });
    expect(world.state()).toMatchObject({ status: 'crashed', end: { exitCode: 1 } });
    await start({ wake: true });
    await world.ref.ask('stop', { graceMs: null });
    await start();
    expect(commands().slice(1)).toEqual([RESUMED, RESUMED, RESUMED]);
  });
});

describe('an agent', () => {
  it('is not put to sleep while it works or asks a question, nor without a conversation', async () => {
    const { tell, sleep, commands } = await idleOne();
    await tell('working');
    expect(code(await sleep().catch((error: unknown) => error))).toBe('agent_working');
    await tell('blocked');
    expect(code(await sleep().catch((error: unknown) => error))).toBe('agent_blocked');
    expect(commands()).toHaveLength(1);
    const unknown = await conversation({}, 'amp');
    await running(unknown.world);
    await unknown.tell('idle');
    expect(code(await unknown.sleep().catch((error: unknown) => error))).toBe('no_session');
    expect(unknown.world.host.alive).toBe(true);
    expect(await unknown.sleep(true)).toMatchObject({ status: 'sleeping' });
    expect(code(await unknown.start({ wake: true }).catch((error: unknown) => error))).toBe('no_session');
    await unknown.start({ wake: true, force: true });
    expect(unknown.commands()).toEqual(['amp', 'amp']);
  });

  it('is not put to sleep, nor falls asleep, while a prompt is typed', async () => {
    const { world, sleep, status } = await idleOne({ spec: { sleep: { afterMinutes: 30 } } });
    await world.advance(30 * 60_000 - LONG_MS - 1);
    const prompts = world.services.ref<PromptProtocol>('service:web');
    const prompt = { id: 'one', text: 'go on', pid: null, queue: false, wait: null, timeoutMs: 60_000 };
    const prompted = prompts.ask('prompt', prompt).catch(code);
    expect(code(await sleep().catch((error: unknown) => error))).toBe('agent_working');
    expect(status().state).toBe('idle');
    let answer: unknown;
    void prompted.then((given) => {
      answer = given;
    });
    // Between two waits of the prompt its screen is drawn, which takes real time.
    await eventually(async () => {
      await world.advance(100);
      return answer;
    });
    expect(answer).toBe('agent_stalled');
    expect(status().state).toBe('idle');
    // The idle time began anew when the sleep was refused.
    await world.advance(30 * 60_000);
    expect(status().state).toBe('asleep');
  });

  it('is put to sleep after a prompt once its hook has reported work, and not after output alone', async () => {
    const { world, sleep, status, tell } = await conversation();
    const service = world.services.ref<PromptProtocol & AgentStateProtocol>('service:web');
    const move = () => {
      const run = world.host.row?.run ?? '';
      world.host.reading = { ...world.host.reading, lastOutputAt: world.clock.now(), isMoving: true };
      service.tell('terminalMoved', { run, ...world.host.reading });
    };
    await running(world);
    move();
    await eventually(() => status().state === 'working');
    await tell('idle', ID);
    // Its screen is drawn from the files of its log first.
    await eventually(() => status().state === 'idle');
    const prompt = { id: 'one', text: 'go on', pid: null, queue: false, wait: null, timeoutMs: 60_000 };
    let stalled: unknown = null;
    void service.ask('prompt', prompt).catch((error: unknown) => {
      stalled = code(error);
    });
    while (stalled === null) await world.advance(PROMPT.quietMs);
    expect(stalled).toBe('agent_stalled');
    move();
    expect(code(await sleep().catch((error: unknown) => error))).toBe('agent_working');
    await tell('working');
    await tell('idle');
    expect(await sleep()).toMatchObject({ status: 'sleeping' });
  });

  it('goes to sleep after its idle time, while nobody is attached', async () => {
    const { world, status, tell } = await idleOne({ spec: { sleep: { afterMinutes: 30 } } });
    await world.services.stand<TerminalViewersProtocol>('viewers');
    const terminal = world.services.ref<TerminalProtocol>('service:web');
    await terminal.ask('attach', { viewer: 'one' });
    await world.advance(60 * 60_000);
    expect(status().state).toBe('idle');
    await terminal.ask('detach', { viewer: 'one' });
    for (const state of ['blocked', 'working'] as const) {
      await tell(state);
      await world.advance(60 * 60_000);
      expect(status().state).toBe(state);
    }
    await tell('idle');
    await world.advance(29 * 60_000);
    expect(status().state).toBe('idle');
    await world.advance(2 * 60_000);
    expect(status().state).toBe('asleep');
  });
});

describe('a later daemon', () => {
  it('shows a sleeping agent as asleep, and wakes it with its conversation', async () => {
    const before = await idleOne();
    await before.sleep();
    const after = await later(before);
    expect(after.status()).toMatchObject({ state: 'asleep', sessionId: ID });
    await after.start({ wake: true });
    expect(after.commands()).toEqual([RESUMED]);
    expect(after.types()).toEqual(['service.started', 'agent.woke']);
  });

  it.each([
    ['a boot of the machine', { cause: 'reboot' }],
    ['the death of the host', { exitUnknown: true }],
  ] as const)('shows it once as asleep after %s, and wakes it with its conversation', async (_, end) => {
    const after = await later(await idleOne(), end);
    expect(after.status()).toMatchObject({ state: 'asleep', sessionId: ID });
    expect(after.world.state().status).not.toBe('crashed');
    expect(after.types()).toEqual(['agent.slept']);
    const last = await later(after);
    expect(last.status()).toMatchObject({ state: 'asleep' });
    await last.start({ wake: true });
    expect(last.commands()).toEqual([RESUMED]);
    expect(last.types()).toEqual(['service.started', 'agent.woke']);
  });

  it('after a reboot shows an agent that was stopped before as exited', async () => {
    const before = await idleOne();
    await before.sleep();
    const stopped = before.world.ref.ask('stop', { graceMs: null });
    await before.world.advance(100);
    await stopped;
    const after = await later(before);
    expect(after.status()).toMatchObject({ state: 'exited', sessionId: ID });
  });

  it('shows an agent as awake if it was killed before the sleep was on disk, and as asleep after that', async () => {
    const before = await idleOne();
    const { clock, host, store } = before.world;
    const disk = deferred<void>();
    store.busy = disk.promise;
    host.stopMs = 2_000;
    const slept = before.world.ref.ask('sleep', {});
    await before.world.advance(100);
    expect(host.stops).toEqual([]);
    const early = store.copy();
    disk.resolve();
    await before.world.advance(100);
    const late = store.copy();
    const row = { ...must(host.row) };
    expect([row.end, row.stopping]).toEqual([null, true]);
    await before.world.advance(host.stopMs);
    await slept;
    const awake = await conversation({ clock, store: early, row: { ...row, stopping: false } });
    await awake.world.advance(LONG_MS);
    expect(awake.status()).toMatchObject({ state: 'idle', sessionId: ID });
    const end = { service: 'web', run: row.run, exitCode: null, signal: 'SIGTERM', exitUnknown: false };
    const ended = { ...row, end: { ...end, cause: 'exit' as const, at: clock.now() } };
    const asleep = await conversation({ clock, store: late, row: ended });
    expect(asleep.status()).toMatchObject({ state: 'asleep', sessionId: ID });
    expect(asleep.types()).toEqual(['agent.slept']);
  });

  it('lets an agent continue whose sleep was decided but not begun', async () => {
    const before = await idleOne();
    const run = before.world.host.made[0] ?? '';
    const asleep = { after: run, screen: { cols: 120, rows: 32, end: 0 } };
    await before.world.store.table('sessions').put('web', { id: ID, isBegun: true, asleep });
    const after = await later(before);
    await quiet();
    expect(after.status()).toMatchObject({ state: 'idle', sessionId: ID });
    expect(after.session()).toEqual({ id: ID, isBegun: true });
    expect(after.world.host.stops).toEqual([]);
  });
});
