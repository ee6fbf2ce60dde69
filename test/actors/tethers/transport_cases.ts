// The behaviour of a tether over any transport.
import { createHash, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { MIB } from '../../../src/settings/limits.ts';
import { answer, client, type Field, lastError, type Pods, post } from './tether_kit.ts';

/**
 * `count` clients that connect at once and stay; resolves with the only pod's name for each when all have
 * been answered twice.
 */
export async function together(
  port: number,
  pods: Pods,
  count: number,
): Promise<ReturnType<typeof client>[]> {
  const [name] = await pods.names();
  const clients = Array.from({ length: count }, () => client(port, 'stay\n'));
  await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n`)));
  for (const { socket } of clients) socket.write('more\n');
  await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n${name}\n`)));
  return clients;
}

/** The tests of a transport. `open` makes a tether to a port of `server('web', 1)`. */
export function carriesAsAnyWay(open: (containerPort?: number) => Promise<Field>, pods: Pods): void {
  it('forwards responses and sessions, many at once', async () => {
    const { port } = await open();
    const [name] = await pods.names();
    expect(await answer(port, 'name\n')).toBe(`${name}\n`);
    await together(port, pods, 30);
  }, 60_000);

  it('forwards 32 MiB in each direction unchanged', async () => {
    const { port } = await open();
    const down = client(port, 'down 32\n');
    expect(await down.ended).toBe('end');
    expect(await answer(port, 'sum 32\n')).toBe(`${down.md5()}  -\n`);
    const { socket, until } = client(port, `up ${32 * MIB}\n`);
    const sent = randomBytes(32 * MIB);
    socket.write(sent);
    const sum = createHash('md5').update(sent).digest('hex');
    expect(await until((text) => text.endsWith('\n'))).toBe(`${sum}  -\n`);
  }, 60_000);

  it('reads from the pod no faster than the client does', async () => {
    const tether = await open();
    const slow = client(tether.port);
    slow.socket.pause();
    slow.socket.write('down 100000\n');
    const held = await tether.settled('bytesOut');
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(512 * MIB);
    expect(await answer(tether.port, 'name\n')).toContain('web-');
  }, 60_000);

  it('gives a half-closed client its whole response', async () => {
    const { port } = await open();
    const { socket, ended, bytes } = client(port, 'late 2 1\n');
    socket.end();
    expect(await ended).toBe('end');
    expect(bytes()).toBe(MIB);
  }, 60_000);

  it('forwards the data of a client that disconnects at once', async () => {
    const { port } = await open();
    const bytes = randomBytes(3_000_000);
    await post(port, bytes);
    const sum = createHash('md5').update(bytes).digest('hex');
    expect(await answer(port, 'posted\n')).toBe(`${sum}  -\n`);
  }, 60_000);

  it("reports the node's message", async () => {
    const tether = await open(7999);
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('connection refused');
  }, 60_000);
}
