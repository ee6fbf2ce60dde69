// Tethers to the real cluster whose API server goes away and comes back: a relay of this test stands in front
// of it.
import { connect, createServer, type Server, type Socket } from 'node:net';
import { beforeAll, expect, it } from 'vitest';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { apiServer, hasApiServer } from '../../kit/kube_api_server.ts';
import { describeReal, sandbox } from '../../kit/kube_real.ts';
import { access, answer, client, field, podsOf, server } from './tether_kit.ts';

interface Outage {
  /** The relay at the API server's address. */
  server: string;
  begin(): Promise<void>;
  end(): Promise<void>;
  /** During the outage: waits for that many failed attempts. */
  turnAway(count: number): Promise<void>;
  /** Open connections stay open and carry nothing more; new ones work as ever. */
  freeze(): void;
}

/** Passes every connection on to the API server, as its load balancer does, until an outage begins. */
async function doorBefore(): Promise<Outage> {
  const { hostname, port } = new URL(access().server);
  const sockets = new Set<Socket>();
  let listener: Server | null = null;
  let own = 0;
  const end = async (): Promise<void> => {
    const made = createServer((near) => {
      const far = connect(Number(port || 443), hostname);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(one);
        one
          .on('error', () => other.destroy())
          .on('close', () => {
            sockets.delete(one);
            other.destroy();
          });
      }
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => made.listen(own, '127.0.0.1', resolve));
    const address = made.address();
    own = typeof address === 'object' && address ? address.port : 0;
    listener = made;
  };
  const begin = async (): Promise<void> => {
    const closed = new Promise((resolve) => listener?.close(resolve));
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  };
  const turnAway = (count: number): Promise<void> =>
    new Promise((resolve) => {
      let left = count;
      const made = createServer((near) => {
        near.resetAndDestroy();
        left -= 1;
        if (left === 0) made.close(() => resolve());
      }).listen(own, '127.0.0.1');
    });
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  await end();
  afterThisTest(begin);
  return { server: `https://${hostname}:${own}`, begin, end, turnAway, freeze };
}

describeReal('a tether and an API server that goes away', () => {
  const box = sandbox();

  beforeAll(async () => {
    await box.create('Deployment', server('web', 1));
    await podsOf(box, 'web').ready(1);
  }, 60_000);

  it('resets open connections, says why during the outage, and serves afterwards', async () => {
    const outage = await doorBefore();
    const tether = await field({ sandbox: box, name: 'web', server: outage.server });
    const open = Array.from({ length: 10 }, () => client(tether.port, 'stay\n'));
    await Promise.all(open.map(({ until }) => until((text) => text.endsWith('\n'))));
    await outage.begin();
    for (const { ended } of open) expect(await ended).toBe('ECONNRESET');
    expect(await client(tether.port, 'name\n').ended).toBe('ECONNRESET');
    await tether.until(({ lastError }) => lastError?.includes('ECONNREFUSED') ?? false);
    await outage.end();
    expect(await answer(tether.port, 'name\n')).toContain('web-');
    // What works again shows no error.
    await eventually(() => tether.tethers.of('stats').at(-1)?.numbers.lastError === null);
  }, 60_000);

  it('holds a client through a short outage and serves it', async () => {
    const outage = await doorBefore();
    const tether = await field({ sandbox: box, name: 'web', server: outage.server });
    expect(await answer(tether.port, 'name\n')).toContain('web-');
    await outage.begin();
    const waiting = answer(tether.port, 'name\n');
    await outage.turnAway(5);
    await outage.end();
    expect(await waiting).toContain('web-');
  }, 60_000);

  it('finds the current pod when the watch has died silently', async () => {
    await box.create('Deployment', server('moved', 1));
    const pods = podsOf(box, 'moved');
    const [former = ''] = await pods.ready(1);
    const outage = await doorBefore();
    const tether = await field({ sandbox: box, name: 'moved', server: outage.server });
    expect(await answer(tether.port, 'name\n')).toBe(`${former}\n`);
    outage.freeze();
    await pods.remove(former);
    const isOther = async (): Promise<boolean> => !(await pods.names()).includes(former);
    await eventually(isOther);
    const [latter] = await pods.ready(1);
    // The first attempt may be given up before every dead connection is detected.
    const first = await answer(tether.port, 'name\n').catch(() => null);
    expect([null, `${latter}\n`]).toContain(first);
    expect(await answer(tether.port, 'name\n')).toBe(`${latter}\n`);
  }, 60_000);

  it.skipIf(!hasApiServer)(
    'serves after the API server itself was stopped and started',
    async () => {
      const server = await apiServer();
      const tether = await field({ sandbox: box, name: 'web', server: access(server.kubeconfig).server });
      const open = client(tether.port, 'stay\n');
      await open.until((text) => text.endsWith('\n'));
      await server.stop();
      expect(await open.ended).toBe('ECONNRESET');
      await server.start();
      expect(await answer(tether.port, 'name\n')).toContain('web-');
    },
    60_000,
  );

  it('recovers every connection under load', async () => {
    const outage = await doorBefore();
    const tether = await field({ sandbox: box, name: 'web', server: outage.server });
    let isOver = false;
    let served = 0;
    const load = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const { ended, text } = client(tether.port, 'name\n');
        if ((await ended) !== 'end') continue;
        // Every answer that completed is whole, whatever happened meanwhile.
        expect(text()).toMatch(/^web-.*\n$/);
        served += 1;
      }
    });
    const more = (count: number): Promise<boolean> => {
      const enough = served + count;
      return eventually(() => served >= enough);
    };
    for (let round = 0; round < 3; round += 1) {
      await more(8);
      await outage.begin();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await outage.end();
    }
    await more(8);
    isOver = true;
    await Promise.all(load);
  }, 60_000);
});
