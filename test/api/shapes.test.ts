import { homedir } from 'node:os';
import { describe, expect, it } from 'vitest';
import { SpinupRequest } from '../../src/api/agents_shapes.ts';
import { Registration } from '../../src/api/services_shapes.ts';
import { z } from '../../src/api/validation.ts';
import { isJsonType, parseBody } from '../../src/front/api/json_body.ts';
import { serviceDetail } from '../../src/front/views/service_json.ts';
import type { FailureDetail } from '../../src/protocol/errors.ts';
import type { LastEnd } from '../../src/protocol/service.ts';
import { isFailure } from '../../src/runtime/actor.ts';
import { HTTP } from '../../src/settings/limits.ts';
import { runningState, specRow, stateRow } from '../front/kit.ts';

const parseRegistration = Registration.parse;
const parseSpinup = SpinupRequest.parse;

const SMALL = { name: 'web', port: 3000, cmd: 'true' };
const END: LastEnd = { run: 'r1', status: 'crashed', exitCode: null, signal: null, exitUnknown: true, at: 0 };

function faults(
  check: (value: unknown) => unknown,
  value: unknown,
): { details: Map<string, string>; hint: string; message: string } {
  try {
    check(value);
  } catch (error) {
    if (isFailure(error) && error.code === 'invalid_spec') {
      const { details = [], hint = '' } = error.detail as FailureDetail;
      for (const { message } of details) expect(error.message).toContain(message);
      const { message } = error;
      return { details: new Map(details.map((detail) => [detail.path, detail.message])), hint, message };
    }
    throw error;
  }
  throw new Error(`taken: ${JSON.stringify(value)}`);
}
const paths = (value: unknown): string[] => [...faults(parseRegistration, value).details.keys()].sort();

describe('a registration', () => {
  it('with only the required fields gets every default', () => {
    expect(parseRegistration(SMALL)).toEqual({
      ...SMALL,
      cwd: homedir(),
      group: null,
      ready: null,
      env: null,
      dependsOn: [],
      restart: 'no',
      autostart: false,
      stopSignal: 'SIGTERM',
      stopGrace: 5000,
      startTimeout: 30_000,
      labels: [],
      sleep: null,
      agent: null,
      stack: null,
      watch: null,
      kind: 'service',
      inputs: [],
      live: null,
      limits: null,
      envFile: [],
      stop: null,
      schedule: null,
      protocol: 'http',
    });
  });

  it('of a task needs no port, and may give conditions in dependsOn', () => {
    const dependsOn = ['db', { name: 'db' }, { name: 'api', condition: 'started' }];
    expect(parseRegistration({ name: 'migrate', cmd: 'x', kind: 'task', dependsOn })).toMatchObject({
      kind: 'task',
      port: null,
      dependsOn: ['db', { name: 'api', condition: 'started' }],
    });
  });

  it.each([
    [{ kind: 'task', port: 1, sleep: { afterMinutes: 1 } }, 'sleep is not for a task, which runs to its end'],
    [
      { port: null, sleep: { afterMinutes: 1 } },
      'sleep needs a port, as a connection to it wakes the service',
    ],
    ...[-1, 0, 0.01, 43_201, '5', Number.NaN].map((afterMinutes): [object, string] => [
      { sleep: { afterMinutes } },
      'sleep.afterMinutes must be a number of minutes, from a second (1/60) to 30 days (43200)',
    ]),
    [{ sleep: 15 }, 'sleep must be {afterMinutes: a number of minutes}, or null'],
    [{ kind: 'task', ready: 'tcp://localhost:1' }, 'ready is not for a task, which is done when it ends'],
    [{ kind: 'task', restart: 'always' }, 'restart must not be "always" for a task, which runs to its end'],
    [{ kind: 'job' }, 'kind must be "service" or "task"'],
    [{ dependsOn: ['db', { name: 'db', condition: 'started' }] }, 'dependsOn has two conditions for db'],
    [{ port: undefined }, `port ${'must be an integer from 1 to 65535, 0 for a free one, or null for none'}`],
  ])('with %j is refused', (more, message) => {
    expect(() => parseRegistration({ ...SMALL, ...more })).toThrow(message);
  });

  it('with a name that is too long is refused with the number of characters that its stack leaves for it', () => {
    const stack = 'shop--login';
    const given = (name: string, group: string) => ({
      ...SMALL,
      stack,
      name: `${stack}--${name}`,
      group: `${stack}--${group}`,
    });
    expect(parseRegistration(given('a'.repeat(50), 'g'.repeat(50)))).toMatchObject({ stack });
    const counts =
      'is too long: the prefix shop--login-- counts, so at most 50 characters remain, and it has';
    expect(() => parseRegistration(given('a'.repeat(51), 'g'.repeat(60)))).toThrow(
      `name ${counts} 51; group ${counts} 60`,
    );
  });

  it('with an unpaired surrogate in a text is refused with the name of the field', () => {
    const fault = 'must not contain an unpaired surrogate, half a character';
    expect(() => parseRegistration({ ...SMALL, env: { A: '\ud83d' } })).toThrow(`env.A ${fault}`);
    expect(() => parseRegistration({ ...SMALL, cmd: 'echo \ude00' })).toThrow(`cmd ${fault}`);
    expect(parseRegistration({ ...SMALL, env: { A: '\ud83d\ude00' } }).env).toEqual([['A', '\ud83d\ude00']]);
  });

  it('keeps the value of every field', () => {
    const full = {
      ...SMALL,
      cwd: '/srv/my web',
      group: 'Site-1_x',
      ready: 'http://localhost:3000/health?x=1',
      env: { A: '1', _b: '' },
      dependsOn: ['db', 'cache', 'db'],
      restart: 'on-failure',
      autostart: true,
      stopSignal: 'SIGINT',
      stopGrace: 0,
      startTimeout: 3_600_000,
      labels: ['berth.yaml', ''],
      sleep: { afterMinutes: 0.5 },
      watch: {
        paths: ['src/**', '*.{js,ts}'],
        ignore: ['*.log'],
        debounceMs: 0,
        action: 'SIGHUP',
        cascade: true,
      },
      kind: 'service',
      inputs: [],
      live: {
        http: '/ok',
        status: [200, 204],
        header: { 'X-A': 'b' },
        body: 'ok',
        interval: 500,
        failures: 2,
      },
      limits: { memoryMB: 256, cpus: 1.5, pids: 64 },
      envFile: ['.env', '/etc/web.env'],
      stop: 'web stop',
      schedule: null,
      protocol: 'http',
    };
    expect(parseRegistration(full)).toEqual({
      ...full,
      env: [
        ['A', '1'],
        ['_b', ''],
      ],
      dependsOn: ['db', 'cache'],
      agent: null,
      stack: null,
    });
  });

  it('accepts null for group, ready and cwd, and {} for env', () => {
    expect(parseRegistration({ ...SMALL, group: null, ready: null, cwd: null, env: {} })).toMatchObject({
      group: null,
      ready: null,
      cwd: homedir(),
      env: [],
    });
  });

  it.each([
    ['runs', runningState('web', 5)],
    ['has ended', stateRow('web', { end: END })],
  ])('accepts the JSON that GET returns for a service that %s', (_, state) => {
    const spec = specRow('web', { ...SMALL, envKeys: ['A'] });
    const shown = serviceDetail({ spec, state, stats: null, schedule: null, agent: null }, null);
    expect(parseRegistration(shown)).toEqual({ ...parseRegistration(SMALL), cwd: spec.cwd });
  });

  it.each([
    ['name', ['web', '_', 'a-b_c', '0', 'a'.repeat(63), '__proto__', 'constructor']],
    ['port', [0, 1, 65_535, null]],
    ['cmd', [' ', 'a\nb', 'ä'.repeat(32_768), 'x'.repeat(65_536)]],
    ['cwd', ['/', '/a b/ü', '/tmp/../x', `/${'x'.repeat(4_095)}`]],
    ['group', ['A', '0', 'agents', 'a'.repeat(63)]],
    [
      'ready',
      [
        'http://localhost/',
        'https://x.example:1/a?b#c',
        'tcp://localhost:5432',
        'tcp://[::1]:1',
        'HTTP://x/',
        `http://x/${'x'.repeat(4_087)}`,
      ],
    ],
    ['env', [{}, { A1_: 'ü\n' }, { BERTH: 'x' }, { berth_x: '' }]],
    ['dependsOn', [[], ['a'], Array.from({ length: 64 }, (_, i) => `s${i}`)]],
    ['restart', ['no', 'on-failure', 'always']],
    ['autostart', [true, false]],
    ['stopSignal', ['SIGKILL', 'SIGUSR1', 'SIGHUP']],
    ['stopGrace', [0, 1, 3_600_000]],
    ['startTimeout', [0, 3_600_000]],
    ['labels', [[], [''], Array(16).fill('x'.repeat(256))]],
  ])('accepts valid values of %s', (field, values) => {
    for (const value of values) expect(() => parseRegistration({ ...SMALL, [field]: value })).not.toThrow();
  });

  const NUL = 'a\0b';
  const HALF = 'a\ud800b';
  it.each<[string, unknown[]]>([
    ['name', ['', 'Web', '-a', 'a b', 'a.b', 'ä', 'a'.repeat(64), 'web\n', 5, null, {}, []]],
    ['port', [-1, 65_536, 1.5, '3000', true, Number.MAX_SAFE_INTEGER, {}]],
    ['cmd', ['', NUL, HALF, 'x'.repeat(65_537), 'ä'.repeat(32_769), 5, null, ['a'], {}]],
    ['cwd', [`/${'x'.repeat(4_096)}`, `/${'ä'.repeat(2_048)}`, '', 'relative', './x', '~', NUL, HALF, 5, {}]],
    ['group', ['', '_a', '-a', 'a b', 'a'.repeat(64), 'Agents', 5, {}]],
    [
      'ready',
      [
        `http://x/${'x'.repeat(4_088)}`,
        '',
        'localhost:3000',
        '/health',
        'ftp://x/',
        'http://',
        'http:///x',
        ' http://x/',
        'http://x/ y',
        'http://x/\n',
        'http://:1/',
        'tcp://localhost',
        'tcp://localhost:0',
        'tcp://localhost:99999',
        'tcp://localhost:1/x',
        'tcp://u@localhost:1',
        'unix:///x',
        'javascript:1',
        `http://x/${NUL}`,
        5,
        {},
      ],
    ],
    ['env', ['', 5, null, [], [['A', '1']]]],
    ['dependsOn', ['db', {}, null, Array.from({ length: 65 }, (_, i) => `s${i}`)]],
    ['restart', ['', 'yes', 'No', true, null, 5]],
    ['autostart', ['true', 1, null]],
    ['stopSignal', ['', 'TERM', 'sigterm', 'SIGNOPE', 15, null, 'toString', '__proto__']],
    ['stopGrace', [-1, 1.5, 3_600_001, '5s', null]],
    ['startTimeout', [-1, 0.1, 3_600_001, '5s', null]],
    ['labels', ['a', {}, null, Array(17).fill('x')]],
  ])('refuses %s', (field, values) => {
    for (const value of values) {
      const { details } = faults(parseRegistration, { ...SMALL, [field]: value });
      expect([...details.keys()]).toEqual([field]);
      expect(details.get(field)).toMatch(new RegExp(`^${field} must (not )?be |^${field} must `));
    }
  });

  it.each<[string, unknown, string]>([
    ['env', { A: 5 }, 'env.A'],
    ['env', { A: null }, 'env.A'],
    ['env', { A: NUL }, 'env.A'],
    ['env', { A: HALF }, 'env.A'],
    ['env', { '1A': '' }, 'env.1A'],
    ['env', { 'A-B': '' }, 'env.A-B'],
    ['env', { '': '' }, 'env.'],
    ['env', { BERTH_X: '' }, 'env.BERTH_X'],
    ['env', { 'A=B': '' }, 'env.A=B'],
    ['env', { 'A\0': '' }, 'env.A\0'],
    ['env', { A: 'x'.repeat(65_536) }, 'env'],
    ['env', Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`K${i}`, ''])), 'env'],
    ['dependsOn', ['db', 'No'], 'dependsOn.1'],
    ['dependsOn', [5], 'dependsOn.0'],
    ['labels', ['ok', 5], 'labels.1'],
    ['labels', ['x'.repeat(257)], 'labels.0'],
    ['labels', [NUL], 'labels.0'],
  ])('refuses an invalid entry of %s (%#)', (field, value, path) =>
    expect(paths({ ...SMALL, [field]: value })).toEqual([path]),
  );

  it('accepts up to 256 entries and 64 KiB of env', () => {
    const many = Object.fromEntries(Array.from({ length: 256 }, (_, i) => [`K${i}`, '']));
    expect(parseRegistration({ ...SMALL, env: many }).env).toHaveLength(256);
    expect(parseRegistration({ ...SMALL, env: { A: 'x'.repeat(65_535) } }).env).toHaveLength(1);
  });

  it('refuses __proto__ at every level', () => {
    expect(paths(JSON.parse('{"name":"a","port":1,"cmd":"x","env":{"__proto__":"x"}}'))).toEqual([
      'env.__proto__',
    ]);
    expect(paths(JSON.parse('{"name":"a","port":1,"cmd":"x","__proto__":{"group":"g"}}'))).toEqual([
      '__proto__',
    ]);
    expect(paths(JSON.parse('{"__proto__":{"name":"a","port":1,"cmd":"x"}}'))).toEqual([
      '__proto__',
      'cmd',
      'name',
      'port',
    ]);
    expect(Object.prototype).not.toHaveProperty('group');
  });

  it('reports every wrong field at once', () => {
    expect(
      paths({
        name: 'A',
        port: 'x',
        cwd: 'y',
        group: '',
        env: { '1': 2 },
        labels: 5,
        foo: 1,
        bar: {},
        restart: 0,
      }),
    ).toEqual(['bar', 'cmd', 'cwd', 'env.1', 'foo', 'group', 'labels', 'name', 'port', 'restart']);
  });

  it('reports wrong fields up to a limit, and the number of the others', () => {
    const unknown = Object.fromEntries(
      Array.from({ length: HTTP.maxErrorDetails + 150 }, (_, i) => [`x${i}`, i]),
    );
    const { details, message } = faults(parseRegistration, { ...SMALL, ...unknown, port: 'x' });
    expect(details.size).toBe(HTTP.maxErrorDetails);
    expect(message).toMatch(/; and 151 more$/);
    expect(faults(parseRegistration, { ...SMALL, x: 1 }).message).toBe('x is not a field of this request');
  });

  it('with too many entries in a field reports that once, and not each entry', () => {
    const env = Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`-${i}`, i]));
    const none = (length: number) => Array.from({ length }, () => null);
    const wrong = { env, dependsOn: none(65), labels: none(17) };
    expect(paths({ ...SMALL, ...wrong })).toEqual(['dependsOn', 'env', 'labels']);
    expect(paths({ ...SMALL, ...wrong, port: -1, foo: 1 })).toEqual([
      ...['dependsOn', 'env', 'foo', 'labels', 'port'],
    ]);
    const agent = faults(parseSpinup, { name: 'bot', cmd: 'x', ...wrong });
    expect([...agent.details]).toEqual([
      ['dependsOn', 'dependsOn is not a field of this request'],
      ['labels', 'labels is not a field of this request'],
      ['env', 'env must be an object of up to 256 strings and 64 KiB'],
    ]);
  });

  it.each([null, 5, 'x', [], [SMALL], true])('cannot be %j', (value) => {
    const { details } = faults(parseRegistration, value);
    expect(details.get('')).toBe('the body must be a JSON object');
  });

  it('in the group Agents is refused with a hint that names the endpoint for agents', () => {
    expect(faults(parseRegistration, { ...SMALL, group: 'Agents' }).hint).toContain('/v1/agents/spinup');
    expect(faults(parseRegistration, { ...SMALL, group: 'x y' }).hint).toBe('');
  });
});

describe('a spinup', () => {
  const spinupPaths = (value: unknown) => [...faults(parseSpinup, value).details.keys()].sort();

  it('with only a name and a command gets every default', () => {
    expect(parseSpinup({ name: 'bot', cmd: 'x' })).toEqual({
      name: 'bot',
      cmd: 'x',
      port: null,
      agentType: null,
      cwd: null,
      env: null,
      ready: null,
      cols: 120,
      rows: 32,
      stack: null,
      sleep: null,
    });
  });

  it('keeps the value of every field', () => {
    const full = {
      name: 'bot_1',
      agent_type: 'codex',
      port: 9000,
      cwd: '/x',
      env: { VLLM_MODEL: 'm' },
      ready: 'tcp://localhost:1',
      cols: 80,
      rows: 24,
      stack: null,
      sleep: { afterMinutes: 30 },
    };
    expect(parseSpinup(full)).toEqual({
      name: 'bot_1',
      cmd: null,
      port: 9000,
      agentType: 'codex',
      cwd: '/x',
      env: [['VLLM_MODEL', 'm']],
      ready: 'tcp://localhost:1',
      cols: 80,
      rows: 24,
      stack: null,
      sleep: { afterMinutes: 30 },
    });
  });

  it('refuses sleep for an agent that keeps no conversation', () => {
    for (const agent of [{ cmd: 'x' }, { agent_type: 'ollama' }, { agent_type: 'shell' }])
      expect(() => parseSpinup({ name: 'bot', ...agent, sleep: { afterMinutes: 30 } })).toThrow('sleep');
  });

  it('accepts $PORT in the ready URL; a registration does not', () => {
    // With some ports these would not be URLs.
    const partly = [
      'http://x:9$PORT/',
      'http://x:$PORT0/',
      'http://1.2.3.$PORT/',
      'http://%$PORT/',
      'http://$PORT:$PORT/',
    ];
    const urls = [
      'http://127.0.0.1:$PORT/ok',
      'tcp://localhost:$PORT',
      'https://[::1]:$PORT',
      'http://x:1/?of=$PORT',
    ];
    for (const ready of urls) expect(parseSpinup({ name: 'bot', cmd: 'x', ready }).ready).toBe(ready);
    for (const ready of [
      'http://x:$PORTS/',
      'http://x:$port/',
      'http://:$PORT/',
      'tcp://x:0$PORTx',
      '$PORT',
      ...partly,
    ])
      expect(spinupPaths({ name: 'bot', cmd: 'x', ready })).toEqual(['ready']);
    expect(paths({ ...SMALL, ready: 'http://127.0.0.1:$PORT/' })).toEqual(['ready']);
  });

  it('accepts the JSON that GET returns for an agent', () => {
    const shown = {
      port: 8100,
      name: 'bot',
      active: true,
      pid: 5,
      hostname: 'h',
      agent_type: null,
      group: 'Agents',
    };
    expect(parseSpinup({ ...shown, cmd: 'x' })).toMatchObject({ name: 'bot', port: 8100, agentType: null });
  });

  it.each<[unknown, string[]]>([
    [{}, ['cmd', 'name']],
    [{ name: 'bot' }, ['cmd']],
    [{ name: 'bot', agent_type: null }, ['cmd']],
    [{ name: 'bot', agent_type: 'gpt' }, ['agent_type']],
    [{ name: 'bot', cmd: '' }, ['cmd']],
    [{ name: '_bot', cmd: 'x' }, ['name']],
    [{ name: 'bot_', cmd: 'x' }, ['name']],
    [{ name: 'bot-', cmd: 'x' }, ['name']],
    [{ name: '__proto__', cmd: 'x' }, ['name']],
    [{ name: 'bot', cmd: 'x', port: 0 }, ['port']],
    [{ name: 'bot', cmd: 'x', port: 65_536 }, ['port']],
    [{ name: 'bot', cmd: 'x', port: '8100' }, ['port']],
    [{ name: 'bot', cmd: 'x', cols: 0, rows: 1001 }, ['cols', 'rows']],
    [{ name: 'bot', cmd: 'x', group: 'g', restart: 'no', foo: 1 }, ['foo', 'restart']],
    [JSON.parse('{"name":"bot","cmd":"x","env":{"__proto__":"1"}}'), ['env.__proto__']],
    [[], ['']],
  ])('refuses %j', (value, expected) => expect(spinupPaths(value)).toEqual(expected));
});

it('the schemas convert to JSON Schema, and only required fields are required there', () => {
  const service = z.toJSONSchema(Registration.shape, { io: 'input' }).$defs?.['ServiceInput'];
  expect(service?.required).toEqual(['name', 'cmd']);
  expect(service?.properties?.['pid']).toMatchObject({ readOnly: true });
  expect(service?.properties?.['port']).toMatchObject({
    anyOf: [{ type: 'integer', minimum: 0, maximum: 65_535 }, { type: 'null' }],
  });
  const spinup = z.toJSONSchema(SpinupRequest.shape, { io: 'input' }).$defs?.['SpinupInput'];
  expect(spinup?.required).toEqual(['name']);
});

describe('a request body', () => {
  const text = (value: string) => parseBody(Buffer.from(value));

  it.each<[string, unknown]>([
    ['{}', {}],
    [' {"a":[1,{"b":null}]}\n', { a: [1, { b: null }] }],
    ['"\\"[[[{{{"', '"[[[{{{'],
    [`${'['.repeat(32)}${']'.repeat(32)}`, JSON.parse(`${'['.repeat(32)}${']'.repeat(32)}`)],
    [JSON.stringify({ a: '['.repeat(100) }), { a: '['.repeat(100) }],
  ])('is accepted: %s', (json, value) => expect(text(json)).toEqual(value));

  it.each([
    '',
    ' ',
    '{',
    '{"a":}',
    "{'a':1}",
    '{"a":1,}',
    '{} {}',
    'undefined',
    'NaN',
    '\ufeff{}',
    '['.repeat(33),
    `${'['.repeat(33)}${']'.repeat(33)}`,
    '{"a":'.repeat(33),
    '['.repeat(500_000),
    '"\u0001"',
  ])('that is not valid JSON is refused (%#)', (json) => {
    try {
      text(json);
      throw new Error('taken');
    } catch (error) {
      expect(isFailure(error) && error.code).toBe('invalid_spec');
    }
  });

  it.each([[[0xff]], [[0x22, 0xc3, 0x22]], [[0x22, 0xed, 0xa0, 0x80, 0x22]], [[0x22, 0xc0, 0x80, 0x22]]])(
    'with the bytes %j is refused, as it is not UTF-8',
    (bytes) => expect(() => parseBody(Uint8Array.from(bytes))).toThrow('UTF-8'),
  );

  it.each([
    ['application/json', true],
    ['application/json; charset=utf-8', true],
    ['Application/JSON;x', true],
    ['application/json ', true],
    ['', false],
    ['text/plain', false],
    ['application/jsonp', false],
    ['application/x-www-form-urlencoded', false],
    ['text/plain; application/json', false],
    ['multipart/form-data', false],
  ])('with the content type "%s" is JSON: %s', (type, expected) => expect(isJsonType(type)).toBe(expected));
});
