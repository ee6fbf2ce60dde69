// Tethers over SPDY in WebSockets, through a proxy that ends the tunnels: the real API server, node and pods behind it speak
// the SPDY that comes out of them.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { MIB } from '../../src/limits.ts';
import { describeReal, sandbox } from '../cloud/real.ts';
import { answer, client, type Field, field, lastError, podsOf, post, server } from './field.ts';
import { type ProxyOptions, type TunnelProxy, webSocketsOnly } from './websockets_only.ts';

describeReal('a tether behind a proxy that bars SPDY', () => {
  const box = sandbox();
  const pods = podsOf(box, 'web');

  beforeAll(async () => {
    await box.create('Deployment', server('web', 1));
    await pods.ready(1);
  }, 60_000);

  async function behind(
    options: Partial<ProxyOptions> = {},
    containerPort = 7000,
  ): Promise<{ proxy: TunnelProxy; tether: Field; port: number }> {
    const proxy = await webSocketsOnly({ spdy: 'refused', tunnels: true, ...options });
    const { server, ca } = proxy;
    const tether = await field({ sandbox: box, name: 'web', containerPort, server, ca });
    return { proxy, tether, port: tether.port };
  }

  it('carries answers and sessions, many at once, and uses the tunnels again', async () => {
    const { proxy, port } = await behind();
    const [name] = await pods.names();
    expect(await answer(port, 'name\n')).toBe(`${name}\n`);
    const clients = Array.from({ length: 20 }, () => client(port, 'stay\n'));
    await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n`)));
    for (const { socket } of clients) socket.write('more\n');
    await Promise.all(clients.map(({ until }) => until((text) => text === `${name}\n${name}\n`)));
    for (const { socket } of clients) socket.destroy();
    const made = proxy.asked.length;
    for (let round = 0; round < 4; round += 1) expect(await answer(port, 'name\n')).toBe(`${name}\n`);
    expect(proxy.asked.length).toBeLessThan(made + 4);
    expect(proxy.asked.filter((way) => way !== 'tunnel')).toEqual(['spdy']);
  }, 60_000);

  it('carries 32 MiB each way unchanged', async () => {
    const { port } = await behind();
    const down = client(port, 'down 32\n');
    expect(await down.ended).toBe('end');
    expect(await answer(port, 'sum 32\n')).toBe(`${down.md5()}  -\n`);
    const { socket, until } = client(port, `up ${32 * MIB}\n`);
    const sent = randomBytes(32 * MIB);
    socket.write(sent);
    const sum = createHash('md5').update(sent).digest('hex');
    expect(await until((text) => text.endsWith('\n'))).toBe(`${sum}  -\n`);
  }, 60_000);

  it('reads from the pod no faster than the client takes it', async () => {
    const { tether } = await behind();
    const slow = client(tether.port);
    slow.socket.pause();
    slow.socket.write('down 100000\n');
    const told = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      return tether.tethers.of('numbers').at(-1)?.numbers.bytesOut ?? 0;
    };
    let held = await told();
    for (let next = await told(); next !== held; next = await told()) held = next;
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(512 * MIB);
    expect(await answer(tether.port, 'name\n')).toContain('web-');
  }, 60_000);

  it('gives a client that has half-closed its whole reply', async () => {
    const { port } = await behind();
    const { socket, ended, bytes } = client(port, 'late 2 1\n');
    socket.end();
    expect(await ended).toBe('end');
    expect(bytes()).toBe(MIB);
  }, 60_000);

  it('carries what a client has sent that goes at once', async () => {
    const { port } = await behind();
    const bytes = randomBytes(3_000_000);
    await post(port, bytes);
    const sum = createHash('md5').update(bytes).digest('hex');
    expect(await answer(port, 'posted\n')).toBe(`${sum}  -\n`);
  }, 60_000);

  it('passes on what the node says', async () => {
    const { tether } = await behind({}, 7999);
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    expect(await lastError(tether)).toContain('connection refused');
  }, 60_000);

  it('resets what was open when its tunnels are cut, and makes new ones', async () => {
    const { proxy, port } = await behind();
    const open = Array.from({ length: 5 }, () => client(port, 'stay\n'));
    await Promise.all(open.map(({ until }) => until((text) => text.endsWith('\n'))));
    const sending = client(port, 'echo\n');
    sending.socket.write(randomBytes(MIB));
    await sending.until((text) => text.length > 0);
    const spdy = (): number => proxy.asked.filter((way) => way === 'spdy').length;
    const before = spdy();
    proxy.cut();
    for (const { ended } of [...open, sending]) expect(await ended).toBe('ECONNRESET');
    for (let round = 0; round < 3; round += 1) expect(await answer(port, 'name\n')).toContain('web-');
    expect(spdy()).toBe(before);
    expect(proxy.asked).not.toContain('websocket');
  }, 60_000);

  it.each(['refused', 'cut'] as const)(
    'serves its first connection where SPDY is %s and the API server knows no tunnel, and remembers both',
    async (spdy) => {
      const { proxy, port } = await behind({ spdy, tunnels: false });
      for (let round = 0; round < 4; round += 1) expect(await answer(port, 'name\n')).toContain('web-');
      const lessons = spdy === 'cut' ? ['spdy', 'spdy', 'tunnel'] : ['spdy', 'tunnel'];
      expect(proxy.asked.slice(0, lessons.length)).toEqual(lessons);
      expect(new Set(proxy.asked.slice(lessons.length))).toEqual(new Set(['websocket']));
    },
    60_000,
  );
});
