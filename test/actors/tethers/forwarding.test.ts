// Tethers on the real cluster: data both ways, and how connections end.
import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { describeReal, sandbox } from '../../kit/kube_real.ts';
import { answer, BLOCK, client, field, podsOf, post, server } from './tether_kit.ts';

describeReal('a tether on the real cluster', () => {
  const box = sandbox();
  const pods = podsOf(box, 'web');

  beforeAll(async () => {
    await box.create('Deployment', server('web', 2));
    await pods.ready(2);
  }, 60_000);

  it('forwards a short response completely, with its end', async () => {
    const { port } = await field({ sandbox: box, name: 'web' });
    const names = await pods.names();
    expect(names).toContain((await answer(port, 'name\n')).trim());
  });

  it('forwards a long session in both directions', async () => {
    const { port } = await field({ sandbox: box, name: 'web' });
    const { socket, until } = client(port, 'stay\n');
    const name = (await until((text) => text.endsWith('\n'))).trim();
    for (let round = 2; round < 12; round += 1) {
      socket.write('more\n');
      await until((text) => text === `${name}\n`.repeat(round));
    }
  });

  it('forwards 100 connections at once', async () => {
    const { port } = await field({ sandbox: box, name: 'web' });
    const names = await pods.names();
    const clients = Array.from({ length: 100 }, () => client(port, 'stay\n'));
    const first = await Promise.all(clients.map(({ until }) => until((text) => text.endsWith('\n'))));
    expect(new Set(first.map((text) => text.trim()))).toEqual(new Set(names));
    for (const { socket } of clients) socket.write('more\n');
    const second = await Promise.all(
      clients.map(({ until }) => until((text) => text.split('\n').length === 3)),
    );
    expect(second).toEqual(first.map((text) => text + text));
  });

  for (const size of [10, 40_000, 3_000_000]) {
    it(`forwards ${size} bytes of a client that disconnects as soon as it has sent them`, async () => {
      await box.scale('Deployment', 'web', 1);
      await pods.ready(1);
      const { port } = await field({ sandbox: box, name: 'web' });
      // The first finds no open connection, the second a waiting one.
      for (let round = 0; round < 2; round += 1) {
        const bytes = randomBytes(size);
        await post(port, bytes);
        const sum = createHash('md5').update(bytes).digest('hex');
        expect(await answer(port, 'posted\n')).toBe(`${sum}  -\n`);
      }
    }, 60_000);
  }

  it('forwards 200 MiB to the client unchanged', async () => {
    await box.scale('Deployment', 'web', 1);
    await pods.ready(1);
    const { port } = await field({ sandbox: box, name: 'web' });
    const down = client(port, 'down 200\n');
    expect(await down.ended).toBe('end');
    expect(down.bytes()).toBe(200 * BLOCK);
    expect(await answer(port, 'sum 200\n')).toBe(`${down.md5()}  -\n`);
  }, 60_000);

  it('forwards 200 MiB to the pod unchanged', async () => {
    const { port } = await field({ sandbox: box, name: 'web' });
    const { socket, until } = client(port, `up ${200 * BLOCK}\n`);
    const hash = createHash('md5');
    const block = randomBytes(BLOCK);
    for (let sent = 0; sent < 200; sent += 1) {
      hash.update(block);
      if (!socket.write(block)) await new Promise((resolve) => socket.once('drain', resolve));
    }
    expect(await until((text) => text.endsWith('\n'))).toBe(`${hash.digest('hex')}  -\n`);
  }, 60_000);
});
