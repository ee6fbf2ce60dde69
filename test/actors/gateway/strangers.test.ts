// The gateway and listeners on an agent's port that are not the agent's:
// docs/reference.md "Ports and conflicts".
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { freePort } from '../../kit/free_ports.ts';
import { send } from '../../kit/http_request.ts';
import { must } from '../../kit/must.ts';
import { canBecomeOthers, listenAsOther, OTHER_USER } from '../../kit/other_user.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

let gateway: Gateway;
let port: number;

/** The process of the agent: every other program here is below this process, and so in its tree. */
const sleeper = spawn('sleep', ['600'], { stdio: 'ignore' });
afterAll(() => void sleeper.kill('SIGKILL'));
const route = (to: number) => routeTo(to, { pid: must(sleeper.pid) });

beforeEach(async () => {
  gateway = new Gateway({ agentDomain: 'agents.localhost', allowedExtensions: [], tokens: [] }, quietDaemon);
  port = await listenAnywhere(gateway);
  afterThisTest(() => gateway.close());
});

const ask = (method = 'GET') =>
  send(port, method, '/', { headers: { host: `bot.agents.localhost:${port}`, cookie: 'secret=1' } });

/** An agent's own server. */
async function ownServer(host: string, at = 0): Promise<number> {
  const server = http.createServer((_, response) => response.end('own')).listen({ host, port: at });
  await once(server, 'listening');
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as net.AddressInfo).port;
}

async function upgradeStatus(): Promise<string> {
  const socket = net.connect(port, '127.0.0.1');
  const lines = [
    'GET / HTTP/1.1',
    `Host: bot.agents.localhost:${port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  const [bytes] = await once(socket, 'data');
  socket.destroy();
  return String(bytes).split('\r\n')[0] ?? '';
}

describe.runIf(canBecomeOthers)('a listener of another user', () => {
  it.each(['127.0.0.1', '::1', '0.0.0.0'])('on %s gets no request and no WebSocket', async (host) => {
    const evil = await listenAsOther(host, 0);
    gateway.setRoutes([route(evil.port)]);
    for (const method of ['GET', 'POST']) {
      const answer = await ask(method);
      expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('bad_gateway')]);
      if (host !== '::1') expect(answer.text).toContain(`${OTHER_USER} listens there, on 127.0.0.1`);
    }
    expect(await upgradeStatus()).toMatch(/^HTTP\/1\.1 502 /);
  });

  it.each([
    ['127.0.0.1', '::1'],
    ['::1', '127.0.0.1'],
  ])('on %s gets no request that is for the agent on %s', async (foreign, own) => {
    // Free at both addresses.
    const evil = await listenAsOther(foreign, freePort());
    await ownServer(own, evil.port);
    gateway.setRoutes([route(evil.port)]);
    for (let turn = 0; turn < 3; turn += 1) expect((await ask('POST')).text).toBe('own');
  });

  it('that is replaced by the agent is no longer refused at the next connection', async () => {
    const { port: agentPort, end } = await listenAsOther('127.0.0.1', freePort());
    gateway.setRoutes([route(agentPort)]);
    expect((await ask()).status).toBe(502);
    await end();
    await ownServer('127.0.0.1', agentPort);
    expect((await ask()).text).toBe('own');
  });

  it('serves if it belongs to the process tree of the agent', async () => {
    const own = await listenAsOther('127.0.0.1', 0);
    gateway.setRoutes([routeTo(own.port, { pid: process.pid })]);
    expect((await ask()).text).toBe('evil');
    gateway.setRoutes([routeTo(own.port, { pid: own.pid })]);
    expect((await ask()).text).toBe('evil');
  });
});

it('an agent that does not listen is reported as such, as a page in a browser', async () => {
  const closed = net.createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port: agentPort } = closed.address() as net.AddressInfo;
  closed.close();
  await once(closed, 'close');
  gateway.setRoutes([route(agentPort)]);
  const host = `bot.agents.localhost:${port}`;
  const accepts = {
    'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8': 'text/html',
    'application/json;q=0.5, text/html': 'text/html',
    'application/json, text/html;q=0.9': 'application/json',
    'application/json, text/html': 'application/json',
    '*/*': 'application/json',
  };
  for (const [accept, type] of Object.entries(accepts)) {
    const answer = await send(port, 'GET', '/', { headers: { host, accept } });
    expect([answer.status, answer.headers['content-type']]).toEqual([502, `${type}; charset=utf-8`]);
    expect(answer.text).toContain(
      `The agent bot does not answer on port ${agentPort}: nothing listens there`,
    );
  }
});
