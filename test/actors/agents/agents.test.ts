import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { agentsActor } from '../../../src/actors/agents/agents.ts';
import { AGENT_TYPES, type AgentType, agentKind } from '../../../src/protocol/agent_types.ts';
import type { AgentsProtocol, SpinupInput } from '../../../src/protocol/agents.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { LedgerRun } from '../../../src/protocol/host.ts';
import type { Ref } from '../../../src/runtime/actor.ts';
import { afterThisTest, settle, tempDir } from '../../kit/actors.ts';
import { type Setting, setting } from '../../kit/registry.ts';
import { input } from '../../kit/service_inputs.ts';

const spinup = (name: string, more: Partial<SpinupInput> = {}): SpinupInput => ({
  name,
  cmd: 'run',
  port: null,
  agentType: null,
  cwd: null,
  env: null,
  ready: null,
  cols: 120,
  rows: 32,
  stack: null,
  sleep: null,
  ...more,
});

interface AgentSetting extends Setting {
  agents: Ref<AgentsProtocol>;
  /** Names of the services that have a process. */
  alive: Set<string>;
  spin(name: string, more?: Partial<SpinupInput>): Promise<{ name: string; port: number; pid: number }>;
}

/** Agents with the real registry, store and ports; their services start at once. */
async function started(): Promise<AgentSetting> {
  const base = await setting();
  const alive = new Set<string>();
  base.host.answer({
    runOf: ({ service }) => ({ run: alive.has(service) ? row(service) : null }),
  });
  base.services.start = async (name) => {
    alive.add(name);
    return { name, status: 'starting', pid: 4321 };
  };
  base.services.retire = async (name) => {
    alive.delete(name);
    return null;
  };
  const ref = await base.world.start('agents', agentsActor, { domain: 'agents.test' });
  return {
    ...base,
    agents: ref,
    alive,
    spin: (name, more) => ref.ask('spinup', { input: spinup(name, more) }),
  };
}

const row = (service: string): LedgerRun => ({
  service,
  run: `run-${service}`,
  pid: 1,
  startTicks: 1,
  startedAt: 1,
  port: 1,
  pty: true,
  memo: { revision: 1, port: 1, ready: null, passed: true, deadline: null, restarts: 0 },
  stopping: false,
  end: null,
});

/**
 * A folder with an executable `program` that prints its arguments and the given variables of its environment.
 */
function folderWith(program: string): string {
  const folder = tempDir();
  const path = join(folder, program);
  writeFileSync(
    path,
    '#!/bin/sh\necho "$0 $*" | sed "s:.*/::"\nenv | grep -E "^(OLLAMA|CREWAI|RAY_SERVE)" | sort\n',
  );
  chmodSync(path, 0o755);
  return folder;
}

describe('a spinup', () => {
  it('registers the agent with its defaults, starts it, and answers with port and pid at once', async () => {
    const it = await started();
    expect(await it.spin('my_bot')).toEqual({ name: 'my_bot', port: 300, pid: 4321 });
    expect(it.store.table('services').get('my_bot')).toMatchObject({
      revision: 1,
      spec: {
        ...input('my_bot', { cmd: 'run', cwd: homedir(), port: 300, group: 'Agents', env: [] }),
        agent: { agentType: null, hostname: 'my-bot.agents.test', cols: 120, rows: 32 },
      },
    });
    expect(it.received.map(({ name, kind }) => `${kind} ${name}`)).toEqual([
      'changed my_bot',
      'start my_bot',
    ]);
    expect(it.received.at(-1)?.message).toEqual({ timeoutMs: null, wait: false, force: true, join: true });
    expect(it.events.map(({ data }) => data)).toEqual(['{"name":"my_bot","port":300,"group":"Agents"}']);
  });

  it('gives each of 101 simultaneous spinups its own port, and the 102nd none', async () => {
    const it = await started();
    const all = await Promise.all(Array.from({ length: 101 }, (_, n) => it.spin(`bot-${n}`)));
    expect(all.map(({ port }) => port).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 101 }, (_, n) => 300 + n),
    );
    await expect(it.spin('one-more')).rejects.toMatchObject({
      code: 'port_in_use',
      message: 'no port from 300 to 400 is free',
    });
    expect(it.store.table('services').get('one-more')).toBeUndefined();
    await it.agents.ask('remove', { name: 'bot-50' });
    const free = all.find(({ name }) => name === 'bot-50')?.port;
    expect(await it.spin('one-more')).toMatchObject({ port: free });
  });

  it('takes a requested port only when nobody has registered it and nothing listens on it', async () => {
    const it = await started();
    expect(await it.spin('a', { port: 450 })).toMatchObject({ port: 450 });
    await it.registry.ask('register', { input: input('web', { port: 451 }) });
    for (const port of [450, 451]) {
      await expect(it.spin('b', { port })).rejects.toMatchObject({ code: 'port_in_use' });
    }
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await settle(); // the sockets are read once per turn
    afterThisTest(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    await expect(it.spin('b', { port })).rejects.toMatchObject({ code: 'port_in_use' });
    expect(it.store.table('services').get('b')).toBeUndefined();
    expect(it.events.filter(({ type }) => type === 'port.conflict')).toEqual([]);
  });

  it('of a live agent is refused and changes nothing', async () => {
    const it = await started();
    await it.spin('bot');
    const before = it.store.table('services').get('bot');
    await expect(it.spin('bot', { cmd: 'other' })).rejects.toMatchObject({ code: 'already_running' });
    it.host.answer({ runOf: () => ({ run: { ...row('bot'), stopping: true } }) });
    await expect(it.spin('bot', { cmd: 'other' })).rejects.toMatchObject({ code: 'daemon_busy' });
    expect(it.store.table('services').get('bot')).toEqual(before);
    expect(it.received.filter(({ kind }) => kind === 'start')).toHaveLength(1);
  });

  it('of an ended agent updates it and starts it on its old port', async () => {
    const it = await started();
    await it.spin('other');
    await it.spin('bot', { env: [['A', '1']] });
    await it.agents.ask('remove', { name: 'other' });
    it.alive.delete('bot');
    const end = {
      service: 'bot',
      run: 'r',
      exitCode: 0,
      signal: null,
      exitUnknown: false,
      cause: 'exit',
      at: 1,
    } as const;
    it.host.answer({ runOf: () => ({ run: { ...row('bot'), end } }) });
    expect(await it.spin('bot', { cmd: 'other' })).toMatchObject({ port: 301 });
    const stored = it.store.table('services').get('bot');
    expect(stored).toMatchObject({ revision: 2, spec: { cmd: 'other', env: [['A', '1']] } });
    await it.registry.ask('register', { input: input('web', { port: 301 }) });
    expect(await it.spin('bot')).toMatchObject({ port: 300 });
  });

  it('with the name or host name of another service is refused and leaves that service unchanged', async () => {
    const it = await started();
    await it.registry.ask('register', { input: input('web', { port: 450 }) });
    await expect(it.spin('web')).rejects.toMatchObject({ code: 'name_in_use' });
    const both = await Promise.allSettled(['my-bot', 'my_bot'].map((name) => it.spin(name)));
    expect(both.map((one) => (one.status === 'rejected' ? one.reason.code : one.value.port))).toEqual([
      300,
      'name_in_use',
    ]);
    const claim = await it.ports.ask('claim', { owner: 'x', port: 450, protocol: 'http' });
    expect(claim).toEqual({ others: ['web'] });
    expect((await it.registry.ask('members', { group: null })).members).toHaveLength(2);
  });

  it('that fails removes a new agent, and leaves an old one as it was registered', async () => {
    const it = await started();
    await it.spin('old');
    it.alive.clear();
    const { start } = it.services;
    it.services.start = async () => {
      throw fail('start_failed', 'no such directory');
    };
    for (const name of ['new', 'old']) {
      await expect(it.spin(name)).rejects.toMatchObject({
        code: 'start_failed',
        message: 'no such directory',
      });
    }
    expect(
      it.store
        .table('services')
        .all()
        .map(([name]) => name),
    ).toEqual(['old']);
    expect(it.received.filter(({ kind }) => kind === 'retire')).toEqual([
      { name: 'new', kind: 'retire', message: { graceMs: 0 } },
    ]);
    it.services.start = start;
    expect(await it.spin('next')).toMatchObject({ port: 301 });
  });

  it('that fails reports the reason even when its agent cannot be removed', async () => {
    const it = await started();
    it.services.start = () => Promise.reject(fail('start_failed', 'the reason'));
    it.services.retire = () => Promise.reject(fail('storage_full', 'no room'));
    await expect(it.spin('bot')).rejects.toMatchObject({ message: 'the reason' });
  });

  it('is refused while the daemon shuts down', async () => {
    const it = await started();
    await it.registry.ask('close', {});
    await expect(it.spin('bot')).rejects.toMatchObject({ code: 'daemon_busy' });
    expect(it.received).toEqual([]);
  });
});

describe('removing', () => {
  it('returns the port, and accepts agents only', async () => {
    const it = await started();
    await it.spin('bot');
    await it.registry.ask('register', { input: input('web') });
    expect(await it.agents.ask('remove', { name: 'bot' })).toEqual({ name: 'bot', port: 300 });
    for (const name of ['bot', 'web']) {
      await expect(it.agents.ask('remove', { name })).rejects.toMatchObject({ code: 'unknown_agent' });
    }
    expect(it.received.find(({ kind }) => kind === 'retire')?.message).toEqual({ graceMs: null });
  });
});

describe('a type without a command', () => {
  const typed = (agentType: AgentType, more: Partial<SpinupInput> = {}): Partial<SpinupInput> => ({
    cmd: null,
    agentType,
    ...more,
  });

  it.each(AGENT_TYPES)('%s that is not installed is reported with how to install it', async (agentType) => {
    const it = await started();
    const env: [string, string][] = [
      ['PATH', tempDir()],
      ['VLLM_MODEL', 'm'],
      ['RAY_APP', 'a'],
    ];
    await expect(it.spin('bot', typed(agentType, { env }))).rejects.toMatchObject({
      code: 'start_failed',
      message: `bot cannot be started: the program ${agentKind(agentType).program} is not in PATH`,
      detail: { hint: `Install it: ${agentKind(agentType).install}` },
    });
    expect(it.store.table('services').all()).toEqual([]);
  });

  it('has protocol tcp if it works in its terminal, unless it has a ready-check over HTTP', async () => {
    const it = await started();
    await it.spin('bot', typed('shell'));
    await it.spin('server', typed('shell', { ready: 'http://localhost:300/' }));
    await it.spin('plain');
    const protocolOf = (name: string) => it.store.table('services').get(name)?.spec.protocol;
    expect(['bot', 'server', 'plain'].map(protocolOf)).toEqual(['tcp', 'http', 'http']);
  });

  it.each([
    ['vllm', 'VLLM_MODEL'],
    ['ray', 'RAY_APP'],
  ] as const)('%s needs %s', async (agentType, variable) => {
    const it = await started();
    await expect(it.spin('bot', typed(agentType))).rejects.toMatchObject({
      code: 'invalid_spec',
      detail: { details: [{ path: `env.${variable}` }] },
    });
    const PATH = folderWith(agentKind(agentType).program);
    const env: [string, string][] = [
      ['PATH', PATH],
      [variable, 'x'],
    ];
    await it.spin('bot', typed(agentType, { env }));
    it.alive.clear();
    // The stored values count as well: an absent env keeps them.
    await it.spin('bot', typed(agentType));
  });

  it.each([
    ['langgraph', [], ['langgraph dev --host 127.0.0.1 --port 8105 --no-browser']],
    ['crewai', [], ['crewai run', 'CREWAI_DMN=1']],
    ['autogen', [], ['autogenstudio ui --host 127.0.0.1 --port 8105']],
    ['vllm', [['VLLM_MODEL', 'a model']], ['vllm serve a model --host 127.0.0.1 --port 8105']],
    ['ollama', [], ['ollama serve', 'OLLAMA_HOST=127.0.0.1:8105']],
    [
      'ray',
      [['RAY_APP', 'app:main']],
      ['serve run app:main', 'RAY_SERVE_DEFAULT_HTTP_HOST=127.0.0.1', 'RAY_SERVE_DEFAULT_HTTP_PORT=8105'],
    ],
  ] as const)('%s gets the right command line through the shell', async (agentType, variables, expected) => {
    const it = await started();
    const kind = agentKind(agentType);
    const PATH = `${folderWith(kind.program)}:/usr/bin:/bin`;
    const env: [string, string][] = [
      ['PATH', PATH],
      ...variables.map(([key, value]): [string, string] => [key, value]),
    ];
    await it.spin('bot', typed(agentType, { env, port: 460 }));
    const spec = it.store.table('services').get('bot')?.spec;
    expect(spec).toMatchObject({
      ready: kind.readyPath === null ? null : `http://127.0.0.1:460${kind.readyPath}`,
      stopSignal: agentType === 'ray' ? 'SIGINT' : 'SIGTERM',
      agent: { agentType },
    });
    const ran = spawnSync('/bin/sh', ['-c', spec?.cmd ?? ''], {
      env: { ...Object.fromEntries(env), PORT: '8105' },
      encoding: 'utf8',
    });
    expect(ran.stdout.trim().split('\n')).toEqual(expected);
  });

  it('uses a given ready URL; with a command, the type is only a name', async () => {
    const it = await started();
    const env: [string, string][] = [['PATH', folderWith('ollama')]];
    await it.spin('a', typed('ollama', { env, ready: 'http://127.0.0.1:1/' }));
    expect(it.store.table('services').get('a')?.spec.ready).toBe('http://127.0.0.1:1/');
    await it.spin('b', { agentType: 'ray', cmd: 'mine' });
    expect(it.store.table('services').get('b')?.spec).toMatchObject({
      cmd: 'mine',
      ready: null,
      stopSignal: 'SIGTERM',
      agent: { agentType: 'ray' },
    });
  });
});
