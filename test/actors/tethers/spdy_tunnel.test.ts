// Tethers over SPDY in WebSockets, through a proxy that ends the tunnels: the real API server, node and pods
// behind it speak plain SPDY.
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { MIB } from '../../../src/settings/limits.ts';
import { describeReal, sandbox } from '../../kit/kube_real.ts';
import { answer, client, type Field, field, podsOf, server } from './tether_kit.ts';
import { carriesAsAnyWay, together } from './transport_cases.ts';
import { type ProxyOptions, type TunnelProxy, webSocketsOnly } from './tunnel_proxy.ts';

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

  carriesAsAnyWay(async (containerPort) => (await behind({}, containerPort)).tether, pods);

  it('reuses its tunnels', async () => {
    const { proxy, port } = await behind();
    // The first connection finds out that SPDY is barred.
    expect(await answer(port, 'name\n')).toContain('web-');
    for (const { socket } of await together(port, pods, 20)) socket.destroy();
    const made = proxy.asked.length;
    for (let round = 0; round < 4; round += 1) expect(await answer(port, 'name\n')).toContain('web-');
    expect(proxy.asked.length).toBeLessThan(made + 4);
    expect(proxy.asked.filter((way) => way !== 'tunnel')).toEqual(['spdy']);
  }, 60_000);

  it('resets open connections when its tunnels are cut, and makes new tunnels', async () => {
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
    'serves its first connection where SPDY is %s and the API server supports no tunnel, and remembers both',
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
