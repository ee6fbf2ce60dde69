// What an agent may do with its token, for every operation, over the real daemon:
// docs/reference.md "Agent tokens".
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Operation } from '../../src/api/operation.ts';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';
import { berth, cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, startDaemon } from '../kit/daemon.ts';

const TOKEN = 'the-token-of-the-person-here';
const PERSON = { authorization: `Bearer ${TOKEN}` };
const CONFIG = `[auth]\ntoken = "${TOKEN}"\n`;

/** Runs until it is stopped, and has written its environment to `file` before. */
const tells = (file: string): string => `env > ${file}.new && mv ${file}.new ${file}; exec cat`;

/** The variables of Berth in an environment that `tells` has written. */
async function toldEnv(file: string): Promise<Record<string, string>> {
  await eventually(() => existsSync(file));
  const rows = [...readFileSync(file, 'utf8').matchAll(/^(BERTH_\w+)=(.*)$/gm)];
  return Object.fromEntries(rows.map(([, key, value]) => [key, value]));
}

interface Setting {
  daemon: Daemon;
  /** What the process of the agent `shop--bot` has. */
  env: Record<string, string>;
  agent: Record<string, string>;
  folder: string;
}

/** Two stacks with a service and an agent each, and what is of no stack. */
async function setting(): Promise<Setting> {
  const daemon = await daemonOf({ config: CONFIG });
  const made = folder();
  const file = join(made, 'bot.env');
  const ask = async (method: string, path: string, body?: unknown): Promise<void> => {
    const { status, text } = await daemon.request(method, path, body, PERSON);
    expect(status, text).toBeLessThan(300);
  };
  const { agents, services } = { agents: '/v1/agents/spinup', services: '/v1/services' };
  const cat = { cmd: 'exec cat', cwd: made };
  await ask('POST', '/v1/stacks', { project: 'shop', path: made });
  await ask('POST', '/v1/stacks', { project: 'blog', path: `${made}/blog` });
  // Its group has no members, and a name that would do for a group of `shop`.
  await ask('POST', '/v1/stacks', { project: 'shop', path: `${made}/branch`, name: 'shop--branch' });
  for (const stack of ['shop', 'blog']) {
    for (const name of ['web', 'old']) {
      const place = { name: `${stack}--${name}`, stack, group: stack };
      await ask('POST', services, { ...place, port: null, cmd: `echo of ${stack}; exec sleep 600` });
    }
    await ask('POST', `/v1/services/${stack}--web/start`);
    await ask('POST', agents, { name: `${stack}--helper`, stack, ...cat });
  }
  await ask('POST', agents, { name: 'blog--bot', stack: 'blog', ...cat });
  await ask('POST', services, { name: 'solo', port: null, cmd: 'exec sleep 600' });
  await ask('POST', agents, { name: 'shop--bot', stack: 'shop', cmd: tells(file), cwd: made });
  const env = await toldEnv(file);
  const agent = { authorization: `Bearer ${env['BERTH_AGENT_TOKEN']}` };
  return { daemon, env, agent, folder: made };
}

interface Asked {
  status: number;
  code: string | undefined;
  text: string;
}

/** The status of any operation; of a stream and a socket, with what comes until it is cut. */
function ask(
  port: number,
  { kind, method }: Pick<Operation, 'kind' | 'method'>,
  path: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<Asked> {
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const upgrade = {
    ...{ connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' },
    ...{ 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==', 'sec-websocket-protocol': 'berth.v1' },
  };
  const json = payload === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const request = http.request({
      ...{ host: '127.0.0.1', port, path, method, agent: false },
      headers: { ...headers, ...json, ...(kind === 'socket' ? upgrade : {}) },
    });
    request.on('upgrade', ({ statusCode: status = 0 }, socket) => {
      socket.destroy();
      resolve({ status, code: undefined, text: '' });
    });
    request.on('response', (response) => {
      let text = '';
      const done = (): void => {
        const isJson = response.headers['content-type']?.startsWith('application/json');
        resolve({
          status: response.statusCode ?? 0,
          code: isJson ? JSON.parse(text).code : undefined,
          text,
        });
        request.destroy();
      };
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
        // The last thing that the setting does, as the journal tells it.
        if (kind === 'stream' && response.statusCode === 200 && text.includes('retry:')) done();
      });
      response.on('end', done);
      response.on('error', () => {});
    });
    request.on('error', reject);
    request.end(payload);
  });
}

/** A name of the stack for each key of a path. */
const KEYS = { service: '--web', agent: '--helper', group: '', stack: '' } as const;

/** The bodies of operations whose body says whose it is: of a stack, and those that are another's. */
const BODIES: Readonly<Record<string, { own: (folder: string) => unknown; foreign: readonly unknown[] }>> = {
  registerService: {
    own: () => ({ name: 'shop--new', stack: 'shop', group: 'shop', port: null, cmd: 'true' }),
    foreign: [
      { name: 'blog--web', stack: 'blog', port: null, cmd: 'true' },
      { name: 'blog--new', stack: 'blog', port: null, cmd: 'true' },
      { name: 'blog--new', port: null, cmd: 'true' },
      { name: 'blog--web', port: null, cmd: 'true' },
      { name: 'solo', port: null, cmd: 'true' },
      { name: 'other', port: null, cmd: 'true' },
      { name: 'shop--new', port: null, cmd: 'true' },
      { name: 'shop--new', stack: 'shop', group: 'blog', port: null, cmd: 'true' },
      { name: 'shop--new', stack: 'shop', group: 'shop--branch', port: null, cmd: 'true' },
      { name: 'shop--new', stack: 'shop', dependsOn: ['blog--web'], port: null, cmd: 'true' },
      { name: 'shop--new', stack: 'shop', dependsOn: ['solo'], port: null, cmd: 'true' },
      {
        ...{ name: 'shop--new', stack: 'shop', port: null, cmd: 'true' },
        dependsOn: [{ name: 'blog--web', condition: 'started' }],
      },
    ],
  },
  spinUpAgent: {
    own: () => ({ name: 'shop--more', stack: 'shop', cmd: 'exec cat' }),
    foreign: [
      { name: 'blog--bot', stack: 'blog', cmd: 'exec cat' },
      { name: 'blog--more', cmd: 'exec cat' },
      { name: 'more', cmd: 'exec cat' },
    ],
  },
  prepareCommand: {
    own: () => ({ cmd: 'true', service: 'shop--web' }),
    foreign: [
      { cmd: 'env', service: 'blog--web' },
      { cmd: 'env', service: 'solo' },
    ],
  },
  registerStack: {
    own: (path) => ({ project: 'shop', path }),
    foreign: [
      { project: 'blog', path: '/nowhere' },
      { project: 'fresh', path: '/nowhere' },
      { project: 'shop', path: '/nowhere', name: 'shop' },
    ],
  },
};

/** What a body without a name of a stack needs to be read. */
const SOME_BODY: Readonly<Record<string, unknown>> = {
  signalService: { signal: 'SIGCONT' },
  typeKeys: { text: 'x' },
  promptAgent: { text: 'x' },
};

/** Queries with which an answer comes at once, or has something in it. */
const QUERIES: Readonly<Record<string, string>> = {
  followEvents: '?lastEventId=0',
  waitForAgent: '?timeout=0',
  waitForAgents: '?timeout=0',
};

/** Queries that ask for what is another's. */
const FOREIGN_QUERIES: Readonly<Record<string, readonly string[]>> = {
  waitForAgents: ['names=blog--web', 'names=shop--bot,solo'],
  searchLogs: ['names=blog--web', 'stack=blog', 'names=shop--web,solo'],
  followLogs: ['names=blog--web', 'stack=blog', 'names=shop--web,solo'],
  followEvents: ['names=blog--web', 'names=shop--web,solo'],
  listPastEvents: ['names=blog--web', 'names=shop--web,solo'],
};

/** They end what the others need, so they come last. */
const DELETES = ['stopService', 'stopGroup', 'removeService', 'removeAgent', 'removeStack'];
const IN_ORDER = [...ALL_OPERATIONS].sort((a, b) => DELETES.indexOf(a.id) - DELETES.indexOf(b.id));

it('an agent is limited to its stack in every operation', async () => {
  const { daemon, agent, folder: made } = await setting();
  const { port } = daemon;
  const of = (operation: Operation, key: string, query = ''): string =>
    operation.path.replace(/\{\w+\}/, key) + query;
  const refused: string[] = [];
  const expectRefusal = async (operation: Operation, path: string, body?: unknown): Promise<void> => {
    const { status, code } = await ask(port, operation, path, agent, body ?? SOME_BODY[operation.id]);
    expect([operation.id, path, status, code]).toEqual([operation.id, path, 403, 'forbidden_owner']);
    refused.push(operation.id);
  };
  const expectPass = async (operation: Operation, path: string, body?: unknown): Promise<string> => {
    const { status, code, text } = await ask(port, operation, path, agent, body ?? SOME_BODY[operation.id]);
    expect([401, 403], `${operation.id} ${path} ${code}`).not.toContain(status);
    return text;
  };
  for (const operation of IN_ORDER) {
    const { id, agentRight, keyKind } = operation;
    switch (agentRight) {
      case 'never':
        await expectRefusal(operation, of(operation, 'anything'));
        break;
      case 'any':
        await expectPass(operation, of(operation, '', `?nonce=${'n'.repeat(22)}`));
        break;
      case 'self':
        await expectRefusal(operation, of(operation, 'shop--helper'));
        await expectPass(operation, of(operation, 'shop--bot'));
        break;
      case 'stack': {
        const rest = keyKind && keyKind in KEYS ? KEYS[keyKind as keyof typeof KEYS] : '';
        await expectRefusal(operation, of(operation, `blog${rest}`));
        if (keyKind === 'group') await expectRefusal(operation, of(operation, 'Agents'));
        if (keyKind === 'service' || keyKind === 'agent') {
          await expectRefusal(operation, of(operation, 'solo'));
          await expectRefusal(operation, of(operation, 'blog--never'));
        }
        await expectPass(operation, of(operation, `shop${rest}`, QUERIES[id]));
        break;
      }
      case 'body': {
        const bodies = BODIES[id];
        if (!bodies) throw new Error(`the table of bodies has none of ${id}`);
        for (const body of bodies.foreign) await expectRefusal(operation, of(operation, ''), body);
        await expectPass(operation, of(operation, ''), bodies.own(made));
        break;
      }
      case 'part': {
        for (const query of FOREIGN_QUERIES[id] ?? [])
          await expectRefusal(operation, of(operation, '', `?${query}`));
        if (operation.kind === 'socket') {
          const prepared = await daemon.request('POST', '/v1/commands', { cmd: 'env' }, PERSON);
          await expectRefusal(operation, of(operation, prepared.body.id));
          break;
        }
        const text = await expectPass(operation, of(operation, '', QUERIES[id]));
        expect(text, id).not.toMatch(/blog|solo/);
        // A list has something in it; the log of many services may be empty yet.
        if (!id.endsWith('Logs')) expect(text, id).toContain('shop');
        break;
      }
      default:
        agentRight satisfies never;
    }
  }
  // Nothing of the others was touched.
  const { body } = await daemon.request('GET', '/v1/services', undefined, PERSON);
  const left = body.services.map((one: { name: string; status: string }) => [one.name, one.status]);
  expect(left.filter(([name]: [string]) => !name.startsWith('shop'))).toEqual([
    ['blog--bot', 'running'],
    ['blog--helper', 'running'],
    ['blog--old', 'stopped'],
    ['blog--web', 'running'],
    ['solo', 'stopped'],
  ]);
  expect(refused.length).toBeGreaterThan(50);
});

const ATTACK = `
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createHmac } from 'node:crypto';
const { BERTH_URL: url, BERTH_AGENT_TOKEN: token } = process.env;
const found = readdirSync('.').map((name) => readFileSync(name, 'utf8')).join('\\n').match(/[\\w.-]{16,}/g) ?? [];
const [id, secret] = token.split('.');
const { life } = await (await fetch(url + '/v1/proof?nonce=' + 'n'.repeat(22) + '&key=' + id)).json();
const mac = createHmac('sha256', secret).update('berth bearer\\n' + life).digest('base64url');
const other = id.replace('shop--bot', 'blog--bot');
const tokens = [token, 'berth.' + id + '.' + mac, other + '.' + secret, 'berth.' + other + '.' + mac, ...found, ''];
const attempts = [
  ['POST', '/v1/services/blog--web/stop'], ['POST', '/v1/services/blog%2D%2Dweb/stop'], ['DELETE', '/v1/agents/blog--bot'],
  ['POST', '/v1/agents/blog--bot/keys', { text: 'typed by another' }], ['GET', '/v1/agents/blog--bot/screen'],
  ['GET', '/v1/agents/blog--bot/logs'], ['GET', '/v1/services/blog--web/logs'], ['GET', '/v1/logs?names=blog--web'],
  ['POST', '/v1/commands', { cmd: 'env', service: 'blog--web' }], ['DELETE', '/v1/stacks/blog'],
  ['POST', '/v1/services', { name: 'blog--web', stack: 'blog', port: null, cmd: 'true' }],
];
const answers = [];
for (const one of tokens)
  for (const [method, path, body] of attempts) {
    const headers = { ...(one && { authorization: 'Bearer ' + one }), 'berth-agent': 'blog--bot', 'content-type': 'application/json' };
    const { status } = await fetch(url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    answers.push(status);
  }
writeFileSync('answers.new', JSON.stringify(answers));
renameSync('answers.new', 'answers');
process.stdout.write('done');
setInterval(() => {}, 1000);
`;

it('a hostile agent cannot access another stack', async () => {
  const { daemon, folder: made } = await setting();
  writeFileSync(join(made, 'attack.mjs'), ATTACK);
  const cmd = `exec ${process.execPath} attack.mjs`;
  const spun = { name: 'shop--evil', stack: 'shop', cmd, cwd: made };
  expect((await daemon.request('POST', '/v1/agents/spinup', spun, PERSON)).status).toBe(201);
  const file = join(made, 'answers');
  await eventually(() => existsSync(file));
  const answers: number[] = JSON.parse(readFileSync(file, 'utf8'));
  expect(answers.length).toBeGreaterThan(50);
  for (const status of answers) expect([401, 403, 404]).toContain(status);
  const { body } = await daemon.request('GET', '/v1/agents/blog--bot/screen', undefined, PERSON);
  expect(body.lines.join('')).toBe('');
  expect((await daemon.request('GET', '/v1/services/blog--web', undefined, PERSON)).body).toMatchObject({
    status: 'running',
    revision: 1,
  });
});

it('each process of an agent has its own token, which outlives the daemon and ends with the process', async () => {
  const { daemon, agent, env, folder: made } = await setting();
  const asks = async (given: Daemon, headers = agent): Promise<number> =>
    (await given.request('GET', '/v1/services', undefined, headers)).status;
  expect(env).toMatchObject({ BERTH_AGENT: 'shop--bot', BERTH_URL: `http://127.0.0.1:${daemon.port}` });
  daemon.signal('SIGKILL');
  await daemon.exited;
  const next = await startDaemon({ stateDir: daemon.stateDir, config: CONFIG });
  expect(await asks(next)).toBe(200);
  // It is in nobody's files but those of the agent itself.
  const secret = env['BERTH_AGENT_TOKEN']?.split('.')[1] ?? 'none';
  for (const name of readdirSync(next.stateDir, { recursive: true, encoding: 'utf8' })) {
    const path = join(next.stateDir, name);
    if (statSync(path).isFile()) expect(readFileSync(path).includes(secret), name).toBe(false);
  }
  const { text } = await next.request('GET', '/v1/services/shop--bot', undefined, PERSON);
  expect(text).not.toContain('BERTH_AGENT');
  // Open streams end with it.
  const events = await next.events('', agent);
  await next.request('POST', '/v1/services/shop--bot/stop', undefined, PERSON);
  await events.closed;
  expect(await asks(next)).toBe(401);
  const file = join(made, 'again.env');
  const again = { name: 'shop--bot', stack: 'shop', cmd: tells(file) };
  expect((await next.request('POST', '/v1/agents/spinup', again, PERSON)).status).toBe(201);
  const { BERTH_AGENT_TOKEN: token } = await toldEnv(file);
  expect(token).not.toBe(env['BERTH_AGENT_TOKEN']);
  expect(await asks(next)).toBe(401);
  const second = { authorization: `Bearer ${token}` };
  expect(await asks(next, second)).toBe(200);
  await next.request('DELETE', '/v1/agents/shop--bot', undefined, PERSON);
  expect(await asks(next, second)).toBe(401);
});

it('the command line works within an agent, and --force only for a user', async () => {
  const { daemon, env, folder: made } = await setting();
  const own = cleanEnv(made, {
    ...env,
    BERTH_STATE_DIR: daemon.stateDir,
    // A person's token is there for any process of the user to read.
    BERTH_CONFIG: daemon.configFile,
  });
  const run = (line: string, more: Record<string, string> = {}) =>
    berth(line.split(' '), { env: { ...own, ...more }, cwd: made });
  const listed = await run('ps -A --json');
  expect(listed.stdout).toContain('shop--web');
  expect(listed.stdout).not.toMatch(/blog|solo/);
  expect((await run('restart -A shop--web')).code).toBe(0);
  expect(await run('stop -A blog--web')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('shop--bot is an agent of the stack shop, and blog--web is not'),
  });
  expect(await run('stop -A --force blog--web')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('known by his token alone'),
  });
  expect((await run('stop -A --force blog--web', { BERTH_AUTH_TOKEN: 'a-guess' })).code).toBe(6);
  for (const line of ['k8s clusters', 'cloud token', 'daemon stop', 'daemon restart'])
    expect(await run(line), line).not.toMatchObject({ code: 0 });
  const forced = await run('stop -A --force blog--web', { BERTH_AUTH_TOKEN: TOKEN });
  expect(forced).toMatchObject({ code: 0, stdout: expect.stringContaining('is stopped') });
  const { body } = await daemon.request('GET', '/v1/events/history?types=agent.forced', undefined, PERSON);
  expect(body.events.map(({ data }: { data: object }) => data)).toMatchObject([
    { name: 'blog--web', agent: 'shop--bot', operation: 'stopService' },
  ]);
});

it.each([
  ['the token', 'env -u BERTH_AGENT_TOKEN'],
  ['all variables', 'env -i PATH="$PATH" HOME="$HOME"'],
])(
  'the command line acts for the agent although its program keeps %s from its children',
  async (_what, env) => {
    const { daemon, folder: made } = await setting();
    const [seen, refused] = [join(made, 'seen'), join(made, 'refused')];
    const berthHere = `${env} ${process.execPath} ${BIN}`;
    const cmd = `${berthHere} ps -A --json > ${seen}; ${berthHere} stop solo 2> ${refused}.new; mv ${refused}.new ${refused}; exec cat`;
    const spec = { name: 'shop--shy', stack: 'shop', cmd, cwd: made };
    expect((await daemon.request('POST', '/v1/agents/spinup', spec, PERSON)).status).toBe(201);
    await eventually(() => existsSync(refused));
    expect(readFileSync(refused, 'utf8')).toContain('solo');
    const names = JSON.parse(readFileSync(seen, 'utf8')).map(({ name }: { name: string }) => name);
    expect(names.sort()).toEqual(['bot', 'helper', 'old', 'shy', 'web'].map((name) => `shop--${name}`));
  },
);

it('the command line with an option that names a daemon does not look for the agent above it', async () => {
  const { daemon, folder: made } = await setting();
  const code = join(made, 'code');
  const elsewhere = `env -i PATH="$PATH" HOME="$HOME" ${process.execPath} ${BIN} --state-dir ${made}/other`;
  const cmd = `${elsewhere} stop shop--web; echo $? > ${code}.new; mv ${code}.new ${code}; exec cat`;
  const spec = { name: 'shop--far', stack: 'shop', cmd, cwd: made };
  expect((await daemon.request('POST', '/v1/agents/spinup', spec, PERSON)).status).toBe(201);
  await eventually(() => existsSync(code));
  // No daemon runs there.
  expect(readFileSync(code, 'utf8')).toBe('5\n');
  const { body } = await daemon.request('GET', '/v1/services/shop--web', undefined, PERSON);
  expect(body.status).toBe('running');
});
