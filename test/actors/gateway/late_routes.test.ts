// A table of host names that is behind the daemon: no client may see a state from before a reply it has had.
import { once } from 'node:events';
import http from 'node:http';
import type net from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { Gateway } from '../../../src/actors/gateway/gateway_server.ts';
import type { GatewayRoute } from '../../../src/protocol/gateway.ts';
import { send } from '../../kit/http_request.ts';
import { listenAnywhere, quietDaemon, routeTo } from './gateway_kit.ts';

let gateway: Gateway;
let port: number;
let agent: http.Server;
/** What the daemon knows; the gateway is told when it asks. */
let current: GatewayRoute[];
let updates: number;

const host = (): string => `bot.agents.localhost:${port}`;

const agentRoute = (more: Partial<GatewayRoute> = {}): GatewayRoute =>
  routeTo((agent.address() as net.AddressInfo).port, more);

beforeEach(async () => {
  updates = 0;
  agent = http.createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(agent, 'listening');
  const update = async (): Promise<void> => {
    updates += 1;
    await new Promise(setImmediate);
    gateway.setRoutes(current);
  };
  const settings = { agentDomain: 'agents.localhost', allowedExtensions: [], tokens: [] };
  gateway = new Gateway(settings, { ...quietDaemon, update });
  port = await listenAnywhere(gateway);
});
afterEach(async () => {
  await gateway.close();
  agent.closeAllConnections();
  agent.close();
});

const get = () => send(port, 'GET', '/', { headers: { host: host() } });

it('a new agent is reached by the first request', async () => {
  current = [agentRoute()];
  const { status, text } = await get();
  expect([status, text]).toEqual([200, 'hello']);
});

it('an agent that has just been started is reached', async () => {
  gateway.setRoutes([agentRoute({ pid: null })]);
  current = [agentRoute()];
  expect((await get()).text).toBe('hello');
});

it('an agent that has just been removed is unknown, not stopped', async () => {
  gateway.setRoutes([agentRoute({ pid: null })]);
  current = [];
  const { status, body } = await get();
  expect([status, body.code]).toEqual([404, 'unknown_agent']);
});

it('a host name that only one service has now is no longer ambiguous', async () => {
  gateway.setRoutes([agentRoute({ name: 'bot-1' }), agentRoute({ name: 'bot_1' })]);
  current = [agentRoute()];
  expect((await get()).text).toBe('hello');
});

it('a WebSocket reaches a new agent with all its bytes', async () => {
  current = [agentRoute()];
  new WebSocketServer({ server: agent }).on('connection', (socket) => {
    socket.on('message', (data) => socket.send(`echo ${data}`));
  });
  const client = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: host() } });
  client.on('open', () => client.send('early'));
  const [message] = await once(client, 'message');
  expect(String(message)).toBe('echo early');
  client.close();
});

it('a WebSocket of an unknown name is refused', async () => {
  current = [];
  const client = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { Host: host() } });
  const [error] = await once(client, 'error');
  expect((error as Error).message).toContain('404');
});

it('requests that can be forwarded do not ask the daemon', async () => {
  gateway.setRoutes([agentRoute()]);
  current = [];
  await get();
  await get();
  expect(updates).toBe(0);
});
