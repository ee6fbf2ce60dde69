// The idle connections to agents, on a clock that the test sets: an agent may close one at any moment after
// 5 s, and a request that is not repeatable would be lost with it.
import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { afterEach, expect, it, vi } from 'vitest';
import { UpstreamPool } from '../../../src/actors/gateway/upstream_pool.ts';
import { ServiceDialer } from '../../../src/adapters/service_dialer.ts';
import { afterThisTest } from '../../kit/actors.ts';

afterEach(() => void vi.useRealTimers());

/** A pool, and the port of an agent that this process is. */
async function poolOfAgent() {
  const server = net
    .createServer((socket) => void socket.resume().on('error', () => {}))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterThisTest(() => void server.close());
  const { port } = server.address() as AddressInfo;
  vi.useFakeTimers({ toFake: ['performance', 'setInterval'] });
  const pool = new UpstreamPool(new ServiceDialer());
  afterThisTest(() => pool.close());
  const upstream = await pool.connect({ port, pid: process.pid });
  return { pool, port, upstream };
}

it('a connection that has been idle for a while is not reused', async () => {
  const { pool, port, upstream } = await poolOfAgent();
  vi.advanceTimersByTime(2_000);
  pool.release(port, upstream);
  vi.advanceTimersByTime(3_900);
  expect(pool.takeIdle(port)).toBe(upstream);
  pool.release(port, upstream);
  // The sweep has looked in between, when it was not too old yet.
  vi.advanceTimersByTime(4_100);
  expect(pool.takeIdle(port)).toBeUndefined();
  expect(upstream.socket.destroyed).toBe(true);
});

it('an idle connection is closed', async () => {
  const { pool, port, upstream } = await poolOfAgent();
  pool.release(port, upstream);
  vi.advanceTimersByTime(8_100);
  expect(upstream.socket.destroyed).toBe(true);
});
