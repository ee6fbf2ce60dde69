import { execFileSync } from 'node:child_process';
import { beforeEach, describe, expect, it } from 'vitest';
import { ServiceViews } from '../../../src/front/views/service_views.ts';
import { localTime } from '../../../src/protocol/timestamps.ts';
import { runningState, specRow, stateRow } from '../kit.ts';

let views: ServiceViews;
beforeEach(() => {
  views = new ServiceViews();
});
const parse = (bytes: Uint8Array | null) => (bytes ? JSON.parse(Buffer.from(bytes).toString()) : null);
const text = (bytes: Uint8Array | null) => Buffer.from(bytes ?? '').toString();

const START = Date.UTC(2030, 0, 1);

describe('a service', () => {
  it('without a report is stopped', () => {
    views.setSpecs([specRow('web', { group: 'site' })]);
    expect(text(views.item('web'))).toBe(
      '{"name":"web","port":3000,"group":"site","status":"stopped","url":"http://localhost:3000","restarts":0,"protocol":"http","gatewayUrl":null,"project":null,"stack":null,"service":null}',
    );
  });

  it('that is running shows its process, in the field order of the base API', () => {
    views.setSpecs([specRow('web')]);
    views.setStates([runningState('web', 77, { restarts: 2 })]);
    expect(text(views.item('web'))).toBe(
      `{"name":"web","port":3000,"group":null,"status":"running","pid":77,"url":"http://localhost:3000","startedAt":"${localTime(START)}","cpu":0,"rssMB":12,"restarts":2,"protocol":"http","gatewayUrl":null,"project":null,"stack":null,"service":null}`,
    );
  });

  it('without a port has null for its port and its URL, also in resolve', () => {
    views.setSpecs([specRow('web', { port: null })]);
    expect(text(views.item('web'))).toBe(
      '{"name":"web","port":null,"group":null,"status":"stopped","url":null,"restarts":0,"protocol":"http","gatewayUrl":null,"project":null,"stack":null,"service":null}',
    );
    expect(parse(views.resolve('web'))).toEqual({ name: 'web', url: null, port: null, status: 'stopped' });
  });

  it('shows statistics of the current process only', () => {
    views.setSpecs([specRow('web')]);
    views.setStats([{ name: 'web', run: 'r1', cpu: 0.5, rssMB: 40, usedSeconds: 1 }]);
    views.setStates([runningState('web', 77)]);
    expect(parse(views.item('web'))).toMatchObject({ cpu: 0.5, rssMB: 40 });
    views.setStats([{ name: 'web', run: 'r0', cpu: 9, rssMB: 999, usedSeconds: 1 }]);
    expect(parse(views.detail('web'))).toMatchObject({ cpu: 0, rssMB: 12 });
    views.setStats([{ name: 'web', run: 'r1', cpu: 0.25, rssMB: 41, usedSeconds: 1 }]);
    expect(parse(views.services()).services[0]).toMatchObject({ cpu: 0.25, rssMB: 41 });
  });

  it('that has ended shows its end, until it runs again', () => {
    views.setSpecs([specRow('web')]);
    const end = {
      run: 'r1',
      status: 'crashed',
      exitCode: 3,
      signal: null,
      exitUnknown: false,
      at: START,
    } as const;
    views.setStates([stateRow('web', { status: 'crashed', end })]);
    expect(text(views.item('web'))).toBe(
      '{"name":"web","port":3000,"group":null,"status":"crashed","url":"http://localhost:3000","exitCode":3,"signal":null,"restarts":0,"protocol":"http","gatewayUrl":null,"project":null,"stack":null,"service":null}',
    );
    views.setStates([stateRow('web', { end: { ...end, exitCode: null, exitUnknown: true } })]);
    expect(parse(views.item('web'))).toMatchObject({ exitCode: null, signal: null, exitUnknown: true });
    views.setStates([runningState('web', 5, { end })]);
    expect(parse(views.item('web'))).not.toHaveProperty('exitCode');
  });

  it('in detail shows its spec, without values of env', () => {
    views.setSpecs([specRow('web', { envKeys: ['SECRET'], dependsOn: ['db'], revision: 4 })]);
    expect(Object.keys(parse(views.detail('web')))).toEqual([
      ...[
        'name',
        'port',
        'group',
        'status',
        'url',
        'restarts',
        'protocol',
        'gatewayUrl',
        'project',
        'stack',
        'service',
        'cmd',
        'cwd',
        'ready',
        'dependsOn',
        'restart',
      ],
      ...[
        'autostart',
        'stopSignal',
        'stopGrace',
        'startTimeout',
        'labels',
        'watch',
        'kind',
        'inputs',
        'sleep',
        'live',
        'limits',
        'envFile',
        'stop',
        'schedule',
        'revision',
        'stale',
        'envKeys',
        'specHash',
      ],
    ]);
    expect(parse(views.detail('web'))).toMatchObject({ envKeys: ['SECRET'], revision: 4, stale: false });
  });

  it('keeps the port and url of its start while it lives, and is stale', () => {
    views.setSpecs([specRow('web')]);
    views.setStates([runningState('web', 77)]);
    views.setSpecs([specRow('web', { port: 4000, revision: 2 })]);
    expect(parse(views.detail('web'))).toMatchObject({
      port: 3000,
      url: 'http://localhost:3000',
      stale: true,
    });
    expect(text(views.resolve('web'))).toBe(
      '{"name":"web","url":"http://localhost:3000","port":3000,"status":"running"}',
    );
    views.setStates([stateRow('web')]);
    expect(parse(views.detail('web'))).toMatchObject({
      port: 4000,
      url: 'http://localhost:4000',
      stale: false,
    });
    expect(parse(views.resolve('web'))).toMatchObject({ port: 4000, status: 'stopped' });
  });

  it('that is unknown has no view', () => {
    expect([views.item('web'), views.detail('web'), views.resolve('web'), views.spec('web')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(views.detail('__proto__')).toBeNull();
  });

  it('whose state arrives before its spec is not listed, and not lost', () => {
    views.setStates([runningState('web', 77)]);
    expect([views.detail('web'), parse(views.services())]).toEqual([null, { services: [] }]);
    views.setSpecs([specRow('web')]);
    expect(parse(views.detail('web'))).toMatchObject({ status: 'running', pid: 77 });
    expect(parse(views.services()).services).toHaveLength(1);
  });

  it('that was removed and registered again shows nothing of its earlier runs', () => {
    views.setSpecs([specRow('web')]);
    views.setStates([runningState('web', 77, { restarts: 3 })]);
    views.remove('web');
    expect(views.detail('web')).toBeNull();
    views.setSpecs([specRow('web')]);
    expect(parse(views.detail('web'))).toMatchObject({ status: 'stopped', restarts: 0 });
  });

  it('may be called __proto__', () => {
    views.setSpecs([specRow('__proto__')]);
    expect(parse(views.services()).services[0].name).toBe('__proto__');
    expect(parse(views.resolve('__proto__'))).toMatchObject({ port: 3000 });
  });
});

describe('lists', () => {
  it('are ordered by name and follow every change', () => {
    views.setSpecs(['b', 'a-1', 'a', '_', '0', 'a_1'].map((name) => specRow(name)));
    const names = () => parse(views.services()).services.map(({ name }: { name: string }) => name);
    expect(names()).toEqual(['0', '_', 'a', 'a-1', 'a_1', 'b']);
    views.remove('a');
    views.setSpecs([specRow('aa')]);
    expect(names()).toEqual(['0', '_', 'a-1', 'a_1', 'aa', 'b']);
    views.retainOnly(new Set(['aa', '_']));
    expect(names()).toEqual(['_', 'aa']);
  });

  it('keep the same bytes until something changes', () => {
    views.setSpecs([specRow('web')]);
    const before = [
      views.services(),
      views.groups(),
      views.agents(),
      views.detail('web'),
      views.resolve('web'),
    ];
    const again = [
      views.services(),
      views.groups(),
      views.agents(),
      views.detail('web'),
      views.resolve('web'),
    ];
    for (const [index, bytes] of before.entries()) expect(again[index]).toBe(bytes);
    views.setStates([runningState('web', 1)]);
    const after = [
      views.services(),
      views.groups(),
      views.agents(),
      views.detail('web'),
      views.resolve('web'),
    ];
    for (const [index, bytes] of before.entries()) expect(after[index]).not.toBe(bytes);
  });

  it('do not change the rows of others', () => {
    views.setSpecs([specRow('a'), specRow('b')]);
    const other = views.detail('b');
    views.setStates([runningState('a', 1)]);
    views.setStats([{ name: 'a', run: 'r1', cpu: 1, rssMB: 1, usedSeconds: 1 }]);
    expect(views.detail('b')).toBe(other);
  });

  it('are empty when there is nothing', () => {
    expect([text(views.services()), text(views.groups()), text(views.agents())]).toEqual([
      '{"services":[]}',
      '{"groups":[]}',
      '{"agents":[]}',
    ]);
  });

  it('of groups count members and running members', () => {
    views.setSpecs([
      specRow('a', { group: 'site' }),
      specRow('b', { group: 'site' }),
      specRow('c', { group: 'other' }),
      specRow('d'),
      agent('bot'),
    ]);
    views.setStates([runningState('a', 1), stateRow('b', { status: 'starting' }), runningState('d', 2)]);
    expect(text(views.groups())).toBe(
      '{"groups":[{"name":"Agents","services":1,"running":0},{"name":"other","services":1,"running":0},{"name":"site","services":2,"running":1}]}',
    );
    expect(views.members('site').map(({ name }) => name)).toEqual(['a', 'b']);
    expect(views.members('Agents').map(({ name }) => name)).toEqual(['bot']);
    expect(views.members('nothing')).toEqual([]);
    views.remove('c');
    expect(parse(views.groups()).groups.map(({ name }: { name: string }) => name)).toEqual([
      'Agents',
      'site',
    ]);
  });
});

const agent = (name: string) =>
  specRow(name, {
    port: 8100,
    group: 'Agents',
    agent: { agentType: 'vllm', hostname: `${name}.agents.localhost`, cols: 120, rows: 32 },
  });

describe('agents', () => {
  it('have their own fields, in the order of the base API', () => {
    views.setSpecs([agent('bot'), specRow('web')]);
    const base = '"port":8100,"name":"bot","active":false,"pid":null,"hostname":"bot.agents.localhost"';
    expect(text(views.agents())).toContain(`{"agents":[{${base},"agent_type":"vllm",`);
    views.setStates([stateRow('bot', { status: 'starting', process: { ...process, pid: 9 } })]);
    expect(parse(views.agents()).agents[0]).toMatchObject({ active: true, pid: 9, port: 8100 });
  });

  it('whose state is that of an earlier daemon show it, but no wait ends with it', () => {
    views.setSpecs([agent('bot')]);
    views.setStates([runningState('bot', 9)]);
    const reason = { authority: 'screen', rule: 'prompt' } as const;
    const status = { name: 'bot', state: 'idle', since: START, reason, title: '' } as const;
    const row = { ...status, question: [], lastOutputAt: null, viewers: 0, sessionId: null };
    views.setAgents([{ ...row, isKept: true }]);
    const shown = { state: 'idle', stateSince: localTime(START), stateReason: reason };
    expect(parse(views.agents()).agents[0]).toMatchObject(shown);
    expect(views.standing('bot')?.state).toBe('starting');
    views.setAgents([row]);
    expect(parse(views.agents()).agents[0]).toMatchObject(shown);
    expect(views.standing('bot')?.state).toBe('idle');
  });

  it('are also services', () => {
    views.setSpecs([agent('bot')]);
    expect(parse(views.services()).services[0]).toMatchObject({ name: 'bot', group: 'Agents' });
    expect(parse(views.resolve('bot'))).toMatchObject({ url: 'http://localhost:8100' });
  });
});
const process = { run: 'r', pid: 1, startedAt: START, port: 8100, revision: 1, rssMB: 1, innerPort: null };

describe('times', () => {
  const at = (zone: string, ms: number): string =>
    execFileSync(
      globalThis.process.execPath,
      ['--input-type=module', '-e', `${localTime.toString()};process.stdout.write(localTime(${ms}))`],
      { env: { TZ: zone }, encoding: 'utf8' },
    );

  it.each([
    ['UTC', Date.UTC(2026, 10, 20, 9), '2026-11-20T09:00:00.000+00:00'],
    ['Europe/Berlin', Date.UTC(2026, 10, 20, 9), '2026-11-20T10:00:00.000+01:00'],
    ['Europe/Berlin', Date.UTC(2026, 6, 20, 9, 0, 0, 7), '2026-07-20T11:00:00.007+02:00'],
    ['America/St_Johns', Date.UTC(2026, 0, 1), '2025-12-31T20:30:00.000-03:30'],
    ['Asia/Kathmandu', Date.UTC(2026, 0, 1), '2026-01-01T05:45:00.000+05:45'],
    ['Pacific/Kiritimati', Date.UTC(2026, 0, 1), '2026-01-01T14:00:00.000+14:00'],
  ])('in %s', (zone, ms, expected) => expect(at(zone, ms)).toBe(expected));
});
