// Finding this user's daemon: by its file, never by a guess, and never another process that now has its pid.
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { runningDaemon } from '../../src/adapters/process/running_daemon.ts';
import type { Client } from '../../src/client/create_client.ts';
import { connectLocal, findLocalDaemon } from '../../src/client/local_daemon.ts';
import { stateDirId } from '../../src/settings/state_paths.ts';
import { json, leastAnswer, serve } from '../kit/recording_server.ts';
import { bearerOf } from '../kit/server_proof.ts';

let state = '';
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'berth-local-'));
});
afterEach(() => rmSync(state, { recursive: true, force: true }));

const ticks = Number(readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ')[19]);
const file = (content: object | string): void =>
  writeFileSync(join(state, 'daemon.json'), typeof content === 'string' ? content : JSON.stringify(content));
const here = { pid: process.pid, startTime: ticks, port: 4711, gatewayPort: null, version: '1' };
const env = (more: Record<string, string> = {}) => ({
  BERTH_STATE_DIR: state,
  XDG_CONFIG_HOME: state,
  ...more,
});

describe('the local daemon', () => {
  it('is the process in daemon.json, if that process still runs', () => {
    file(here);
    expect(runningDaemon(state)).toEqual(here);
    file({ ...here, startTime: ticks + 1 });
    expect(runningDaemon(state)).toBeUndefined();
    file({ ...here, pid: 2 ** 22 + 1 });
    expect(runningDaemon(state)).toBeUndefined();
  });

  it('is not the daemon of a directory of which this one is a copy', () => {
    const own = { ...here, stateId: stateDirId(state) };
    file(own);
    expect(runningDaemon(state)).toEqual(own);
    const copy = `${state}.copy`;
    cpSync(state, copy, { recursive: true });
    try {
      expect(runningDaemon(copy)).toBeUndefined();
    } finally {
      rmSync(copy, { recursive: true });
    }
  });

  it('is found by a state directory that was given, whatever BERTH_URL says, and by a URL before both', async () => {
    file(here);
    const elsewhere = env({ BERTH_URL: 'http://127.0.0.1:4712' });
    const url = async (options: Parameters<typeof findLocalDaemon>[0]): Promise<string> =>
      (await findLocalDaemon({ env: elsewhere, ...options })).url();
    expect(await url({})).toBe('http://127.0.0.1:4712');
    expect(await url({ stateDir: state })).toBe(`http://127.0.0.1:${here.port}`);
    expect(await url({ stateDir: state, url: '127.0.0.1:4713' })).toBe('http://127.0.0.1:4713');
  });

  it('of a state directory that is not that of the agent gets no token of the agent', async () => {
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)));
    file({ ...here, port: fake.port });
    const token = `agent-${'0'.repeat(16)}-bot.${'x'.repeat(43)}`;
    const within = (id: string) => env({ BERTH_AGENT_TOKEN: token, BERTH_STATE_ID: id });
    const client = async (id: string) => connectLocal({ stateDir: state, env: within(id) });
    expect(await (await client('1-2')).groups()).toEqual([]);
    expect(fake.asked.at(-1)?.headers.authorization).toBeUndefined();
    await expect((await client(stateDirId(state))).groups()).rejects.toThrow();
  });

  it('is not found if the file is missing or invalid', () => {
    expect(runningDaemon(state)).toBeUndefined();
    file('{"pid": 1');
    expect(runningDaemon(state)).toBeUndefined();
    file({ ...here, port: '80' });
    expect(runningDaemon(state)).toBeUndefined();
  });

  it('is looked up again at every call', async () => {
    const fake = await serve((_asked, response) => json(response, 200, { groups: [] }));
    const berth = await connectLocal({ env: env() });
    await expect(berth.groups()).rejects.toMatchObject({
      code: 'unreachable',
      message: 'no daemon is running',
    });
    file({ ...here, port: fake.port });
    expect(await berth.groups()).toEqual([]);
  });
});

describe('the Berth that has the clusters', () => {
  const at = async (more: Record<string, string> = {}, login: string | null = null) => {
    const found = { url: () => login, token: async () => 'token' };
    return (await findLocalDaemon({ env: env(more), login: found })).cloudServer();
  };

  it('is named by its origin, unless it is the daemon of the state directory', async () => {
    file(here);
    expect(await at()).toBeNull();
    expect(await at({ BERTH_URL: 'http://127.0.0.1:4711/' })).toBeNull();
    expect(await at({ BERTH_CLOUD_URL: '127.0.0.1:4711' })).toBeNull();
    expect(await at({ BERTH_URL: 'http://127.0.0.1:4712' })).toBe('http://127.0.0.1:4712');
    const named = { BERTH_CLOUD_URL: 'https://berth.example.com/' };
    expect(await at(named, 'https://other.example.com')).toBe('https://berth.example.com');
    expect(await at({}, 'https://other.example.com')).toBe('https://other.example.com');
    writeFileSync(
      join(state, 'c.toml'),
      '[cloud]\nremote = "https://team.example.com"\nremote_token = "t"\n',
    );
    chmodSync(join(state, 'c.toml'), 0o600);
    expect(await at({ BERTH_CONFIG: join(state, 'c.toml') })).toBe('https://team.example.com');
  });

  it('is the same whether a daemon runs or not', async () => {
    expect(await at()).toBeNull();
    expect(await at({ BERTH_CLOUD_URL: 'https://berth.example.com' })).toBe('https://berth.example.com');
  });
});

describe('a token that has changed in the configuration', () => {
  const config = (token: string): void =>
    writeFileSync(join(state, 'config.toml'), `[auth]\ntoken = "${token}"\n`);
  const local = (port: number): Promise<Client> => {
    file({ ...here, port });
    return connectLocal({ env: env({ BERTH_CONFIG: join(state, 'config.toml') }) });
  };
  const refusal = { code: 'unauthorized', message: 'the token is missing or wrong', hint: '' };
  /** A daemon that knows `tokens`, and refuses requests without their bearer. */
  const guarded = (tokens: { daemon?: string }) =>
    serve((asked, response) => {
      const { daemon } = tokens;
      const isKnown = daemon === undefined || asked.headers.authorization === `Bearer ${bearerOf(daemon)}`;
      json(response, isKnown ? 200 : 401, isKnown ? leastAnswer(asked) : refusal);
    }, tokens);

  it('is used for a request that is refused with the earlier one, or without one', async () => {
    const tokens: { daemon?: string } = {};
    const fake = await guarded(tokens);
    config('');
    const berth = await local(fake.port);
    await berth.groups();
    for (const token of ['first', 'second']) {
      tokens.daemon = token;
      config(token);
      await berth.stop('web');
      expect(fake.asked.at(-1)?.headers.authorization).toBe(`Bearer ${bearerOf(token)}`);
      await berth.groups();
    }
  });

  it('is not tried if it is the refused one, or the configuration is invalid', async () => {
    const fake = await guarded({ daemon: 'right' });
    config('wrong');
    const berth = await local(fake.port);
    await expect(berth.groups()).rejects.toMatchObject({ code: 'unproven' });
    writeFileSync(join(state, 'config.toml'), '[auth\n');
    await expect(berth.groups()).rejects.toMatchObject({ code: 'unproven' });
    expect(fake.asked).toEqual([]);
    config('');
    await expect(berth.groups()).rejects.toMatchObject(refusal);
    expect(fake.asked).toHaveLength(1);
  });

  it('is used by a stream that reconnects', async () => {
    const tokens = { daemon: 'first' };
    let id = 0;
    const fake = await serve((_asked, response) => {
      id += 1;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.end(`retry: 10\nid: ${id}\nevent: service.removed\ndata: {"name":"web"}\n\n`);
    }, tokens);
    config('first');
    const ids: (number | null)[] = [];
    for await (const event of (await local(fake.port)).events()) {
      ids.push(event.id);
      if (event.id === 2) break;
      tokens.daemon = 'second';
      config('second');
    }
    expect(ids).toEqual([1, 2]);
    expect(fake.asked.at(-1)?.headers.authorization).toBe(`Bearer ${bearerOf('second')}`);
  });

  it('is used for a terminal that is opened with the earlier one, or without one', async () => {
    const tokens: { daemon?: string } = {};
    const fake = await guarded(tokens);
    const terminals = new WebSocketServer({ noServer: true, handleProtocols: () => 'berth.v1' });
    fake.server.on('upgrade', (request, socket, head) => {
      const bearer =
        tokens.daemon === undefined ? '' : Buffer.from(bearerOf(tokens.daemon)).toString('base64url');
      const isKnown = request.headers['sec-websocket-protocol']?.includes(bearer);
      if (isKnown) terminals.handleUpgrade(request, socket, head, (terminal) => terminal.close(1000));
      else {
        const body = JSON.stringify(refusal);
        socket.end(`HTTP/1.1 401 Unauthorized\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      }
    });
    config('');
    const berth = await local(fake.port);
    const attach = async (): Promise<number> =>
      (await (await berth.attach('bot', { onOutput: () => undefined })).ended).code;
    expect(await attach()).toBe(1000);
    for (const token of ['first', 'second']) {
      tokens.daemon = token;
      await expect(attach()).rejects.toMatchObject({ code: token === 'first' ? 'unauthorized' : 'unproven' });
      config(token);
      expect(await attach()).toBe(1000);
    }
  });

  it('repeats no change that has begun', async () => {
    const tokens = { daemon: 'first' };
    const message = 'the token has changed; the request may still take effect';
    const fake = await serve((_asked, response) => {
      tokens.daemon = 'second';
      config('second');
      json(response, 401, { ...refusal, message });
    }, tokens);
    config('first');
    const berth = await local(fake.port);
    await expect(berth.restart('web')).rejects.toMatchObject({ code: 'unauthorized', message });
    expect(fake.asked).toHaveLength(1);
  });
});

describe('the addresses and tokens', () => {
  it('come from the environment first, then from the configuration', async () => {
    const tokens = { daemon: 'file', cloud: 'cloud-file' };
    const fake = await serve((asked, response) => json(response, 200, leastAnswer(asked)), tokens);
    writeFileSync(join(state, 'config.toml'), '[auth]\ntoken = "file"\n[cloud]\ntoken = "cloud-file"\n');
    const config = { BERTH_CONFIG: join(state, 'config.toml'), BERTH_URL: fake.url };
    await (await connectLocal({ env: env(config) })).groups();
    tokens.daemon = 'environment';
    await (await connectLocal({ env: env({ ...config, BERTH_AUTH_TOKEN: 'environment' }) })).groups();
    expect(fake.asked.map(({ headers }) => headers.authorization)).toEqual([
      `Bearer ${bearerOf('file')}`,
      `Bearer ${bearerOf('environment')}`,
    ]);
    await (await connectLocal({ env: env(config) })).cloud.clusters();
    expect(fake.asked.at(-1)?.headers.authorization).toBe(`Bearer ${bearerOf('cloud-file')}`);
  });

  it('of the cloud part are the generated token and the separate listener', async () => {
    const token = join(state, 'cloud-token');
    writeFileSync(token, 'made\n', { mode: 0o600 });
    const local = await findLocalDaemon({ env: env() });
    expect(local.cloudToken()).toBe('made');
    chmodSync(token, 0o644);
    expect(() => local.cloudToken()).toThrow('others can read it');
    const fake = await serve((_asked, response) => json(response, 200, []), { cloud: 'made' });
    chmodSync(token, 0o600);
    writeFileSync(join(state, 'config.toml'), `[cloud]\nbind = "127.0.0.1"\nport = ${fake.port}\n`);
    const own = await connectLocal({ env: env({ BERTH_CONFIG: join(state, 'config.toml') }) });
    expect(await own.cloud.clusters()).toEqual([]);
    const named = await connectLocal({ env: env({ BERTH_CLOUD_URL: fake.url }) });
    expect(await named.cloud.tethers()).toEqual([]);
    const bearer = `Bearer ${bearerOf('made')}`;
    expect(fake.asked.map(({ headers }) => headers.authorization)).toEqual([bearer, bearer]);
  });
});
