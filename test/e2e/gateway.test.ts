// docs/reference.md "Gateway" and "Ports and conflicts" on the real daemon.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, eventually, startDaemon } from '../kit/daemon.ts';
import { freePort } from '../kit/free_ports.ts';
import { send } from '../kit/http_request.ts';
import { must } from '../kit/must.ts';

/** Listens on one address and resolves with the port, or with the error code of the system. */
async function occupy(host: string, port: number): Promise<number | string> {
  const server = createServer((socket) => socket.destroy()).unref();
  server.listen({ host, port, ipv6Only: true });
  try {
    await once(server, 'listening');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
  return (server.address() as AddressInfo).port;
}

const gatewayPort = async (daemon: Daemon): Promise<number | null> =>
  (await daemon.request('GET', '/v1/version')).body.gatewayPort;

const doctor = ({ stateDir, configFile }: Daemon): string =>
  execFileSync(process.execPath, [BIN, 'doctor', '--state-dir', stateDir, '--config', configFile]).toString();

it('holds its port on both addresses from the start, and says that there is no agent', async () => {
  const daemon = await startDaemon();
  const port = must(await gatewayPort(daemon));
  for (const host of ['127.0.0.1', '::1']) expect(await occupy(host, port)).toBe('EADDRINUSE');
  const headers = { host: `bot.agents.localhost:${port}` };
  expect(await send(port, 'GET', '/', { headers })).toMatchObject({
    status: 404,
    body: { code: 'unknown_agent' },
  });
  const page = await send(port, 'GET', '/', { headers: { ...headers, accept: 'text/html' } });
  expect(page.text).toContain('<h1>No agent is registered');
  // The first agent brings the thread of the gateway, on the same port.
  const { body } = await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 60' });
  expect(body.gatewayUrl).toBe(`http://bot.agents.localhost:${port}/`);
  for (const host of ['127.0.0.1', '::1']) expect(await occupy(host, port)).toBe('EADDRINUSE');
  await eventually(async () => (await send(port, 'GET', '/', { headers })).body.code === 'bad_gateway');
  expect(doctor(daemon)).toContain(`agents are served by host name on port ${port}`);
});

it.each(['127.0.0.1', '::1'])(
  'is none where somebody has its port on %s, and hands out no address',
  async (host) => {
    const port = freePort();
    expect(await occupy(host, port)).toBe(port);
    const daemon = await startDaemon({ config: `[gateway]\nport = ${port}\n` });
    expect(await gatewayPort(daemon)).toBeNull();
    const shown = host === '::1' ? `[::1]:${port}` : `127.0.0.1:${port}`;
    const holder = `pid ${process.pid} \\(.+\\) listens on ${shown.replace(/[[\]]/g, '\\$&')}`;
    expect(daemon.stderr()).toMatch(new RegExp(`there is no gateway: port ${port} is taken: ${holder}`));
    const { body } = await daemon.request('POST', '/v1/agents/spinup', { name: 'bot', cmd: 'exec sleep 60' });
    expect(body.gatewayUrl).toBeNull();
    expect(await occupy(host === '::1' ? '127.0.0.1' : '::1', port)).toBe(port);
    expect(daemon.stderr().match(/there is no gateway/g)).toHaveLength(1);
    expect(doctor(daemon)).toContain('there is no gateway');
  },
);
