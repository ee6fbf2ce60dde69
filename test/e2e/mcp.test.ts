// docs/reference.md "MCP" on the real daemon with the official client, over HTTP and over stdio.
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterEach, describe, expect, it } from 'vitest';
import { TOOLS } from '../../src/mcp/tool_table.ts';
import { cleanEnv, daemonOf, folder } from '../cli/berth_process.ts';
import { afterThisTest } from '../kit/actors.ts';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, isAlive } from '../kit/daemon.ts';
import { ownPorts } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { kubeDouble, workload } from '../kit/kube_double.ts';
import { must } from '../kit/must.ts';

const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
} as const;
const SERVE = 'echo hello; exec python3 -m http.server $PORT --bind 127.0.0.1';

type Version = '2026-07-28' | '2025-11-25';
/** `auto` takes the newest version that both know. */
const newClient = (version: Version): Client =>
  new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: version === '2026-07-28' ? 'auto' : 'legacy' } },
  );

const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

/** A client over HTTP; `token` is sent with every request. */
async function overHttp(daemon: Daemon, version: Version, token?: string): Promise<Client> {
  const client = newClient(version);
  clients.push(client);
  const requestInit =
    token === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${token}` } } };
  const url = new URL(`http://127.0.0.1:${daemon.port}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, requestInit));
  return client;
}

/** A client of `berth mcp`, which runs in `cwd`. */
async function overStdio(daemon: Daemon, version: Version, cwd: string): Promise<Client> {
  const client = newClient(version);
  clients.push(client);
  const args = [BIN, 'mcp', '--state-dir', daemon.stateDir, '--config', daemon.configFile];
  const env = cleanEnv(folder(), { MARK: 'of-the-agent' });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args, cwd, env, stderr: 'inherit' }),
  );
  return client;
}

type Answer = Awaited<ReturnType<Client['callTool']>>;
const textOf = (answer: Answer): string =>
  answer.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');

/** Calls a tool. The client checks the structured answer against the schema that the tool has listed. */
async function call(client: Client, name: string, input: Record<string, unknown> = {}): Promise<any> {
  const answer = await client.callTool({ name, arguments: input });
  expect(answer.isError, `${name}: ${textOf(answer)}`).toBeFalsy();
  // Its own shape besides, which is what the schema is made from.
  return must(TOOLS.find((tool) => tool.name === name)).output.parse(answer.structuredContent);
}

/** The text of a call that fails. */
async function failure(client: Client, name: string, input: Record<string, unknown>): Promise<string> {
  const answer = await client.callTool({ name, arguments: input });
  expect(answer).toMatchObject({ isError: true });
  return textOf(answer);
}

/** A project with one service, which is ready when its port answers. */
function project(name: string): string {
  const cwd = join(folder(), name);
  mkdirSync(cwd);
  const cmd = `cmd: echo "mark $MARK"; ${SERVE}`;
  writeFileSync(
    join(cwd, 'berth.yaml'),
    `name: ${name}\nservices:\n  web:\n    ${cmd}\n    port: auto\n    ready: tcp\n`,
  );
  return cwd;
}

/** Calls every tool for services and agents. `mark` makes the names of this drive. */
async function useServices(client: Client, mark: string): Promise<void> {
  const web = `web-${mark}`;
  const [port] = ownPorts(1);
  const ready = `http://localhost:${port}/`;
  await call(client, 'register', { name: web, cmd: SERVE, port, ready });
  expect(await call(client, 'start', { name: web })).toMatchObject({ name: web, status: 'running' });
  expect((await call(client, 'list', { status: 'running' })).services.map((one: any) => one.name)).toContain(
    web,
  );
  expect(await call(client, 'get', { name: web })).toMatchObject({ cmd: SERVE });
  expect(await call(client, 'resolve', { name: web })).toMatchObject({ port, status: 'running' });
  await call(client, 'register', { name: `db-${mark}`, cmd: 'exec sleep 60', protocol: 'tcp' });
  expect(await call(client, 'resolve', { name: `db-${mark}` })).toMatchObject({ protocol: 'tcp' });
  expect(await call(client, 'wait_for', { name: web, text: 'hello' })).toMatchObject({
    met: true,
    line: 'hello',
  });
  expect((await call(client, 'logs', { name: web })).lines[0]).toBe('hello');
  expect((await call(client, 'logs_search', { names: [web], q: 'HELLO' })).lines).toMatchObject([
    { text: 'hello' },
  ]);
  const { last } = await call(client, 'events', { names: [web] });
  await call(client, 'restart', { name: web });
  const seen = await call(client, 'wait_for', { name: web, event: 'service.started', since: last });
  expect(seen).toMatchObject({ met: true, event: { type: 'service.started' } });
  expect(await call(client, 'explain', { name: web })).toMatchObject({ status: 'running' });
  expect(await call(client, 'stop', { name: web })).toMatchObject({ portFree: true, left: [] });
  expect(await call(client, 'wait_for', { name: web, status: 'stopped' })).toMatchObject({ met: true });
  expect(await call(client, 'wait_for', { name: web, status: 'running', timeout: 50 })).toMatchObject({
    met: false,
  });
  await call(client, 'register', { name: `job-${mark}`, cmd: 'echo did it', kind: 'task' });
  expect(await call(client, 'run_task', { name: `job-${mark}` })).toMatchObject({
    status: 'completed',
    lines: ['did it'],
  });
  await call(client, 'agent_spinup', { name: `bot-${mark}`, cmd: 'echo ready; exec cat' });
  expect((await call(client, 'agents')).agents.map((one: any) => one.name)).toContain(`bot-${mark}`);
  const screen = (): Promise<any> => call(client, 'agent_screen', { name: `bot-${mark}` });
  await eventually(async () => (await screen()).lines[0] === 'ready');
  await call(client, 'agent_keys', { name: `bot-${mark}`, keys: ['h', 'i', 'Enter'] });
  await eventually(async () => (await screen()).lines.includes('hi'));
}

/** A cluster of one workload, at the daemon. */
async function registerCluster(daemon: Daemon): Promise<void> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put('Deployment', workload('shop', 'hello', 1));
  const headers = { authorization: 'Bearer cloudy' };
  const body = { name: 'dev', kubeconfig: double.kubeconfig };
  const { id } = (await daemon.request('POST', '/k8s/clusters', body, headers)).body;
  await daemon.request('POST', `/k8s/clusters/${id}/sync`, undefined, headers);
}

async function useWorkloads(client: Client, mark: string): Promise<void> {
  const [{ id }] = (await call(client, 'workloads')).workloads;
  expect(await call(client, 'workload_sleep', { id })).toEqual({ replicas: 0 });
  expect(await call(client, 'workload_wake', { id })).toEqual({ replicas: 1 });
  const tether = { workload_id: id, container_port: 8080 };
  const opened = await call(client, 'tether_open', tether);
  expect(opened).toMatchObject({ state: 'active' });
  // The same one again.
  expect(await call(client, 'tether_open', tether)).toEqual(opened);
  const labelled = await call(client, 'tether_open', { ...tether, label: mark });
  expect(labelled.local_port).not.toBe(opened.local_port);
  expect(await call(client, 'tether_open', { ...tether, label: mark })).toEqual(labelled);
}

const CLOUD = '[cloud]\ntoken = "cloudy"\nallow_addresses = "any"\n';

describe('the official client', () => {
  it('lists and calls every tool over HTTP and stdio', async () => {
    const daemon = await daemonOf({ config: CLOUD });
    await registerCluster(daemon);
    const cwd = project('shop');
    const inShop = await overStdio(daemon, '2026-07-28', cwd);
    const byHttp = await overHttp(daemon, '2026-07-28', 'cloudy');
    for (const client of [inShop, byHttp]) {
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
      expect(client.getServerVersion()).toMatchObject({ name: 'berth' });
    }
    await Promise.all([useServices(inShop, 'stdio'), useServices(byHttp, 'http')]);
    await useWorkloads(inShop, 'stdio');
    await useWorkloads(byHttp, 'http');
    // Over stdio it is brought up as by `berth up` in that folder, with the environment of the agent.
    expect(await call(inShop, 'stack_up')).toMatchObject({
      stack: 'shop',
      services: [{ name: 'shop--web', status: 'running', error: null }],
    });
    expect((await call(inShop, 'logs', { name: 'shop--web' })).lines).toContain('mark of-the-agent');
    expect(await call(byHttp, 'stack_down', { stack: 'shop' })).toMatchObject({
      services: [{ status: 'stopped' }],
    });
    expect(await call(byHttp, 'stack_up', { stack: 'shop' })).toMatchObject({
      services: [{ status: 'running' }],
    });
    expect(await failure(byHttp, 'stack_up', {})).toContain('invalid_spec: stack is missing');
  });

  it('tells why services of a folder did not come up, as berth up does', async () => {
    const daemon = await daemonOf();
    const cwd = project('shop');
    const dies = '  dies:\n    cmd: "sleep 0.3; exit 3"\n    port: null\n';
    const needs =
      '  late:\n    cmd: exit 4\n    kind: task\n  idle:\n    cmd: exec sleep 600\n    depends_on: {late: {condition: completed}}\n';
    appendFileSync(join(cwd, 'berth.yaml'), dies + needs);
    const client = await overStdio(daemon, '2026-07-28', cwd);
    const { services } = await call(client, 'stack_up');
    expect(services.map(({ name, error }: { name: string; error: string | null }) => [name, error])).toEqual([
      ['shop--dies', expect.stringMatching(/^ended within .* of its start \(exit 3\)$/)],
      ['shop--idle', 'not started: it needs late'],
      ['shop--late', 'shop--late ended with exit code 4'],
      ['shop--web', null],
    ]);
    // A completed task is not run again with its stack.
    const seeds = () => readFileSync(join(cwd, 'seeds'), 'utf8').length;
    writeFileSync(
      join(cwd, 'berth.yaml'),
      'name: shop\nservices:\n  seed: {cmd: "printf x >> seeds", kind: task}\n',
    );
    await call(client, 'stack_up');
    expect(await call(client, 'stack_up', { stack: 'shop' })).toMatchObject({ services: [{ error: null }] });
    expect(seeds()).toBe(1);
    const other = project('other');
    writeFileSync(join(other, 'berth.yaml'), 'name: other\nservices:\n  bad: {cmd: exit 5, kind: task}\n');
    const fault = await failure(client, 'stack_up', { folder: other });
    expect(fault).toContain('other--bad: other--bad ended with exit code 5');
    expect(fault).not.toContain('{"');
    const missing = join(cwd, 'missing');
    expect(await failure(client, 'stack_up', { folder: missing })).toContain(`there is no folder ${missing}`);
  });

  it('brings a stack up only after its hook create, as berth up does', async () => {
    const daemon = await daemonOf();
    const cwd = folder();
    const write = (create: string): void =>
      writeFileSync(
        join(cwd, 'berth.yaml'),
        `name: shop\nhooks: { create: ${JSON.stringify(create)} }\n` +
          'services:\n  web: { cmd: exec sleep 600, port: null }\n',
      );
    const client = await overStdio(daemon, '2026-07-28', cwd);
    write('echo x >> made; test -e ready');
    expect(await failure(client, 'stack_up', { folder: cwd })).toContain('shop--hook-create');
    expect(await failure(client, 'stack_up', { stack: 'shop' })).toContain('shop--hook-create ended with');
    expect(await failure(client, 'start', { name: 'shop--web' })).toContain('hook_refused');
    writeFileSync(join(cwd, 'ready'), '');
    for (const _ of ['first', 'second'])
      expect(await call(client, 'stack_up', { stack: 'shop' })).toMatchObject({
        services: [{ name: 'shop--web', status: 'running', error: null }],
      });
    expect(readFileSync(join(cwd, 'made'), 'utf8')).toBe('x\nx\nx\n');
  });

  it('brings a stack up in order while one of it is still being started', async () => {
    const daemon = await daemonOf();
    const cwd = folder();
    const db = 'touch begun; while [ ! -e gate ]; do sleep 0.02; done; echo up; exec sleep 600';
    writeFileSync(
      join(cwd, 'berth.yaml'),
      `name: shop\nservices:\n  db: { cmd: ${JSON.stringify(db)}, port: null, ready: { log: up } }\n` +
        '  web: { cmd: "test -e gate && exec sleep 600", port: null, depends_on: [db] }\n',
    );
    const client = await overStdio(daemon, '2026-07-28', cwd);
    const first = call(client, 'stack_up', { folder: cwd });
    await eventually(() => existsSync(join(cwd, 'begun')));
    const second = call(client, 'stack_up', { stack: 'shop' });
    const started = { name: 'shop--web', event: 'service.started', timeout: 200 };
    expect(await call(client, 'wait_for', started)).toMatchObject({ met: false, status: 'stopped' });
    writeFileSync(join(cwd, 'gate'), '');
    const services = ['db', 'web'].map((name) => ({ name: `shop--${name}`, status: 'running', error: null }));
    expect(await second).toMatchObject({ services });
    expect(await first).toMatchObject({ services });
  });

  it('also speaks the previous version', async () => {
    const daemon = await daemonOf();
    const byHttp = await overHttp(daemon, '2025-11-25');
    const byStdio = await overStdio(daemon, '2025-11-25', folder());
    for (const client of [byHttp, byStdio]) {
      expect(client.getNegotiatedProtocolVersion()).toBe('2025-11-25');
      await client.listTools();
      await call(client, 'register', { name: 'web', cmd: 'sleep 100', port: null });
      expect(await call(client, 'list')).toMatchObject({ services: [{ name: 'web' }] });
    }
  });
});

it('a session over stdio continues with the tokens that the configuration gets', async () => {
  const daemon = await daemonOf();
  const client = await overStdio(daemon, '2025-11-25', folder());
  await call(client, 'register', { name: 'web', cmd: 'sleep 100', port: null });
  const before = readFileSync(daemon.configFile, 'utf8');
  const tokens = ['the-first-token-of-this-daemon', 'the-second-token-of-this-daemon'];
  for (const token of tokens) {
    writeFileSync(daemon.configFile, `${before}\n[auth]\ntoken = "${token}"\n`);
    daemon.signal('SIGHUP');
    const headers = { authorization: `Bearer ${token}` };
    const status = async (given?: object) =>
      (await daemon.request('GET', '/v1/services', undefined, { ...given })).status;
    await eventually(async () => (await status()) === 401 && (await status(headers)) === 200);
    // A change comes first after the one token, a read after the other.
    if (token === tokens[0]) await call(client, 'start', { name: 'web' });
    expect(await call(client, 'list')).toMatchObject({ services: [{ name: 'web', status: 'running' }] });
  }
});

describe('a request over HTTP', () => {
  /** A message of the newest version. */
  const message = (
    method: string,
    params: object = {},
  ): { body: object; headers: Record<string, string> } => ({
    body: {
      jsonrpc: '2.0',
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    },
    headers: { ...HEADERS, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
  });
  const LIST = message('tools/list');

  it('passes the same checks as any other request', async () => {
    const daemon = await daemonOf({ config: '[auth]\ntoken = "secret"\n' });
    const post = (headers: Record<string, string>) =>
      send(daemon.port, 'POST', '/mcp', { body: LIST.body, headers: { ...LIST.headers, ...headers } });
    const authorization = 'Bearer secret';
    expect(await post({ authorization })).toMatchObject({ status: 200 });
    expect(await post({})).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(await post({ authorization: 'Bearer other' })).toMatchObject({ status: 401 });
    expect(await post({ authorization, origin: 'http://evil.example' })).toMatchObject({
      status: 403,
      body: { code: 'forbidden_origin' },
    });
    expect(await post({ authorization, host: 'evil.example' })).toMatchObject({
      status: 403,
      body: { code: 'forbidden_host' },
    });
    expect(await post({ authorization, 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 });
    expect(await post({ authorization, 'content-type': 'text/plain' })).toMatchObject({ status: 415 });
    expect(await send(daemon.port, 'GET', '/mcp', { headers: { authorization } })).toMatchObject({
      status: 405,
    });
    // The tools have the token of the caller, and the token of the cloud only where it is given.
    const client = await overHttp(daemon, '2026-07-28', 'secret');
    await call(client, 'list');
    expect(await failure(client, 'workloads', {})).toContain('unauthorized');
  });

  it('with garbage is answered, and the next one works', async () => {
    const daemon = await daemonOf();
    const post = (body: string | object, headers: Record<string, string> = HEADERS) =>
      send(daemon.port, 'POST', '/mcp', { body, headers });
    for (const body of [
      '',
      'nothing',
      '{',
      '[]',
      '{}',
      'null',
      '3',
      '{"jsonrpc":"2.0"}',
      '\0\xff'.repeat(100),
    ]) {
      const { status } = await post(Buffer.from(body).toString());
      expect([400, 202], body).toContain(status);
    }
    expect((await post(`{"a":"${'x'.repeat(2_000_000)}"}`)).status).toBe(413);
    expect((await post(message('tools/none').body, message('tools/none').headers)).body.error.code).toBe(
      -32601,
    );
    const batch = Array.from({ length: 101 }, (_, id) => ({ jsonrpc: '2.0', id, method: 'ping' }));
    for (const size of [0, 1, 2, 101]) expect((await post(batch.slice(0, size))).status).toBe(400);
    const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
    const nested = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list","arguments":${deep}}}`;
    expect((await post(nested)).status).toBe(200);
    expect(await send(daemon.port, 'POST', '/mcp?x=1', { body: {}, headers: HEADERS })).toMatchObject({
      status: 400,
      body: { code: 'invalid_spec' },
    });
    const client = await overHttp(daemon, '2026-07-28');
    const long = 'x'.repeat(500_000);
    expect(await failure(client, 'logs_search', { q: long })).toContain(
      'invalid_spec: the input is too long',
    );
    expect(await failure(client, 'get', { name: long })).toContain('invalid_spec: the input is too long');
    await expect(client.callTool({ name: '__proto__', arguments: {} })).rejects.toThrow('there is no tool');
    await expect(client.callTool({ name: 'no-such', arguments: {} })).rejects.toThrow(
      'there is no tool no-such',
    );
    expect(await failure(client, 'get', { nom: 'web' })).toContain('- name: ');
    expect(await failure(client, 'get', { name: '../../k8s/clusters' })).toContain('unknown_service');
    expect(await failure(client, 'start', { name: 'web' })).toMatch(/^unknown_service: .*\nHint: `list`/);
    expect(await failure(client, 'wait_for', { name: 'web' })).toContain('exactly one of');
    await expect(client.readResource({ uri: 'berth://services/none/logs' })).rejects.toThrow();
    await expect(client.readResource({ uri: 'file:///etc/passwd' })).rejects.toThrow();
    expect(await call(client, 'list')).toEqual({ services: [] });
    expect(daemon.stderr()).not.toContain('defect');
  });

  it('reports progress, can be cancelled, and leaves nothing', async () => {
    const daemon = await daemonOf();
    const cwd = folder();
    for (const client of [await overHttp(daemon, '2026-07-28'), await overStdio(daemon, '2026-07-28', cwd)]) {
      await call(client, 'register', { name: 'web', cmd: 'sleep 1000', port: null });
      const calls = Array.from({ length: 5 }, () => new AbortController());
      const messages: unknown[] = [];
      const waits = calls.map(({ signal }) =>
        client.callTool(
          { name: 'wait_for', arguments: { name: 'web', status: 'running', timeout: 600_000 } },
          { signal, onprogress: ({ message }) => messages.push(message) },
        ),
      );
      const openStreams = async (): Promise<number> =>
        (await daemon.request('GET', '/v1/system')).body.openStreams;
      await eventually(async () => messages.length >= calls.length);
      expect(messages[0]).toBe('waiting for running of web');
      for (const one of calls) one.abort();
      expect((await Promise.allSettled(waits)).map(({ status }) => status)).toEqual(
        waits.map(() => 'rejected'),
      );
      // What the tools followed is closed, too.
      await eventually(async () => (await openStreams()) === 0);
    }
  });

  it('ends a wait for an event with the removal of its service', async () => {
    const daemon = await daemonOf();
    const client = await overHttp(daemon, '2026-07-28');
    const { last } = await call(client, 'events', {});
    await call(client, 'register', { name: 'web', cmd: 'sleep 1000', port: null });
    const wait = { name: 'web', since: last ?? 0, timeout: 50_000 };
    const woken = failure(client, 'wait_for', { ...wait, event: 'service.woke' });
    await daemon.request('DELETE', '/v1/services/web');
    expect(await woken).toContain('unknown_service');
    expect(await call(client, 'wait_for', { ...wait, event: 'service.removed' })).toMatchObject({
      met: true,
      status: null,
    });
  });

  it('notifies subscribers of changes of a log', async () => {
    const daemon = await daemonOf();
    await daemon.request('POST', '/v1/services', {
      name: 'web',
      cmd: 'cat /dev/null; sleep 1000',
      port: null,
    });
    const uri = 'berth://services/web/logs';
    const cwd = folder();
    for (const [at, client] of [
      await overHttp(daemon, '2026-07-28'),
      await overStdio(daemon, '2026-07-28', cwd),
      await overStdio(daemon, '2025-11-25', cwd),
    ].entries()) {
      const told: string[] = [];
      client.setNotificationHandler(
        'notifications/resources/updated',
        ({ params }) => void told.push(params.uri),
      );
      if (at === 2) await client.subscribeResource({ uri });
      else await client.listen({ resourceSubscriptions: [uri] });
      await daemon.request('POST', '/v1/services', {
        name: 'web',
        cmd: `echo line-${at}; sleep 1000`,
        port: null,
      });
      await daemon.request('POST', '/v1/services/web/restart');
      await eventually(async () => told.includes(uri));
      const { contents } = await client.readResource({ uri });
      expect(contents[0]).toMatchObject({ text: expect.stringContaining(`line-${at}`) });
    }
  });

  it('notifies subscribers of a resource that has been away', async () => {
    const daemon = await daemonOf();
    const client = await overStdio(daemon, '2025-11-25', folder());
    const uri = 'berth://services/web/logs';
    let told = 0;
    client.setNotificationHandler('notifications/resources/updated', () => {
      told += 1;
    });
    const missed = async (): Promise<number> => {
      const { text } = await daemon.request('GET', '/metrics');
      const counter = /^berth_http_requests_total\{operation="followServiceLogs",code="404"\} (\d+)/m;
      return Number(counter.exec(text)?.[1] ?? 0);
    };
    await client.subscribeResource({ uri });
    let missedBefore = 0;
    for (const round of [1, 2]) {
      await eventually(async () => (await missed()) > missedBefore);
      const before = told;
      const web = { name: 'web', cmd: `echo ${round}; exec sleep 1000`, port: null };
      await daemon.request('POST', '/v1/services', web);
      await daemon.request('POST', '/v1/services/web/start');
      await eventually(() => told > before);
      missedBefore = await missed();
      await daemon.request('DELETE', '/v1/services/web');
    }
  });

  it('notifies subscribers of output without a newline', async () => {
    const [port] = ownPorts(1);
    const daemon = await daemonOf({ config: `[agents]\nports = [${port}, ${port}]\n` });
    const drawing = (text: string) => `while :; do printf '${text}'; sleep 0.1; done`;
    await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: drawing('\\033[Htick') });
    await daemon.request('POST', '/v1/services', { name: 'web', cmd: drawing('.'), port: null });
    await daemon.request('POST', '/v1/services/web/start');
    const uris = ['berth://agents/bot/screen', 'berth://services/web/logs'];
    for (const [client, isOlder] of [
      [await overHttp(daemon, '2026-07-28'), false],
      [await overStdio(daemon, '2026-07-28', folder()), false],
      [await overStdio(daemon, '2025-11-25', folder()), true],
    ] as const) {
      const told = new Set<string>();
      client.setNotificationHandler(
        'notifications/resources/updated',
        ({ params }) => void told.add(params.uri),
      );
      if (isOlder) for (const uri of uris) await client.subscribeResource({ uri });
      else await client.listen({ resourceSubscriptions: uris });
      await eventually(async () => told.size === uris.length);
    }
  });
});

describe('the daemon', () => {
  it('is found again after a kill -9', async () => {
    const daemon = await daemonOf();
    const client = await overStdio(daemon, '2026-07-28', folder());
    await call(client, 'register', { name: 'web', cmd: 'sleep 1000', port: null });
    daemon.signal('SIGKILL');
    await eventually(async () => !isAlive(daemon.pid));
    expect(await failure(client, 'list', {})).toMatch(/^unreachable: .*\nHint: /s);
    // `berth mcp` finds the next daemon by the state directory.
    await daemonOf({ stateDir: daemon.stateDir });
    expect(await call(client, 'list')).toMatchObject({ services: [{ name: 'web' }] });
  });
});
