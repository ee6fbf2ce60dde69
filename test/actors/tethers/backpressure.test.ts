// Tethers on the real cluster: each direction moves as fast as its reader, and a slow reader blocks nobody
// else.
import { beforeAll, expect, it } from 'vitest';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { describeReal, sandbox } from '../../kit/kube_real.ts';
import { answer, type Client, client, field, lastError, podsOf, server } from './tether_kit.ts';

/** More than all sockets on the path can hold for one connection: clients here send and request far more. */
const HELD = 512 * MIB;

/** A client that reads nothing of what it requested. */
async function unread(port: number): Promise<Client> {
  const slow = client(port);
  slow.socket.pause();
  slow.socket.write('down 100000\n');
  return slow;
}

/** A client that sends more than anybody reads. */
async function untaken(port: number): Promise<Client> {
  const stuck = client(port, 'stuck\n');
  await stuck.until((text) => text === 'stuck\n');
  const block = Buffer.alloc(MIB);
  const more = (): void => {
    while (stuck.socket.write(block));
  };
  stuck.socket.on('drain', more);
  more();
  return stuck;
}

describeReal('a tether and slow readers', () => {
  const box = sandbox();

  beforeAll(async () => {
    await box.create('Deployment', server('web', 1));
    await podsOf(box, 'web').ready(1);
  }, 60_000);

  it('reads from the pod no faster than the client does, and continues later', async () => {
    const tether = await field({ sandbox: box, name: 'web' });
    const { socket, bytes } = await unread(tether.port);
    const held = await tether.settled('bytesOut');
    expect(held).toBeLessThan(HELD);
    socket.resume();
    while (bytes() < held + 16 * MIB) await new Promise((resolve) => socket.once('data', resolve));
  }, 60_000);

  it('reads from the client no faster than the pod does', async () => {
    const tether = await field({ sandbox: box, name: 'web' });
    await untaken(tether.port);
    expect(await tether.settled('bytesIn')).toBeLessThan(HELD);
  }, 60_000);

  it('delays neither open connections nor new ones', async () => {
    const tether = await field({ sandbox: box, name: 'web' });
    const before = client(tether.port, 'echo\n');
    const idle = client(tether.port, 'stay\n');
    await idle.until((text) => text.endsWith('\n'));
    await Promise.all([1, 2, 3].map(() => unread(tether.port)));
    await Promise.all([1, 2, 3].map(() => untaken(tether.port)));
    await tether.settled('bytesIn');
    await tether.settled('bytesOut');
    before.socket.write('still here\n');
    expect(await before.until((text) => text.endsWith('\n'))).toBe('still here\n');
    idle.socket.write('more\n');
    await idle.until((text) => text.split('\n').length === 3);
    const down = client(tether.port, 'down 8\n');
    expect(await down.ended).toBe('end');
    expect(down.bytes()).toBe(8 * MIB);
    for (let round = 0; round < 5; round += 1) expect(await answer(tether.port, 'name\n')).toContain('web-');
  }, 60_000);

  it('serves others when clients leave in the middle of a transfer', async () => {
    const tether = await field({ sandbox: box, name: 'web' });
    const idle = client(tether.port, 'stay\n');
    await idle.until((text) => text.endsWith('\n'));
    for (let round = 0; round < 6; round += 1) {
      const leaver = round % 2 === 0 ? await unread(tether.port) : await untaken(tether.port);
      leaver.socket.resetAndDestroy();
      expect(await answer(tether.port, 'name\n')).toContain('web-');
    }
    idle.socket.write('more\n');
    await idle.until((text) => text.split('\n').length === 3);
  }, 60_000);

  it('gives a half-closed client its whole response, however late', async () => {
    const { port } = await field({ sandbox: box, name: 'web' });
    const { socket, ended, bytes } = client(port, 'late 3 4\n');
    socket.end();
    expect(await ended).toBe('end');
    expect(bytes()).toBe(4 * MIB);
  }, 60_000);

  it('gives a half-closed client a response with a long pause in it', async () => {
    const clock = virtualClock();
    const { port } = await field({ sandbox: box, name: 'web', clock });
    const { socket, ended, text, until } = client(port, 'twice 3\n');
    socket.end();
    const name = await until((said) => said.endsWith('\n'));
    await clock.advance(TETHER.halfClosedTimeoutMs);
    expect(await ended).toBe('end');
    expect(text()).toBe(name + name);
  }, 60_000);

  it('gives a half-closed client its whole response, however slowly it reads', async () => {
    const clock = virtualClock();
    const { port } = await field({ sandbox: box, name: 'web', clock });
    const { socket, ended, bytes } = client(port, 'down 64\n');
    socket.end();
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    // The first pause lets every buffer on the path fill; the second gives the node time to cut the
    // connection if it was asked to.
    await answer(port, 'late 1 0\n');
    await clock.advance(TETHER.halfClosedTimeoutMs + TETHER.tickIntervalMs);
    await answer(port, 'late 2 0\n');
    socket.resume();
    expect(await ended).toBe('end');
    expect(bytes()).toBe(64 * MIB);
  }, 60_000);

  it('resets a half-closed client when the pod stays silent, because the response may be incomplete', async () => {
    const clock = virtualClock();
    const tether = await field({ sandbox: box, name: 'web', clock });
    const { socket, ended, text, until } = client(tether.port, 'echo\nhello\n');
    socket.end();
    await until((said) => said === 'hello\n');
    await clock.advance(TETHER.halfClosedTimeoutMs + TETHER.tickIntervalMs);
    expect(await ended).toBe('ECONNRESET');
    expect(text()).toBe('hello\n');
    await clock.advance(TETHER.tickIntervalMs);
    expect(await lastError(tether)).toContain('half-closed');
  }, 60_000);

  it('reports at intervals when bytes last moved, while a connection is open', async () => {
    const clock = virtualClock();
    const tether = await field({ sandbox: box, name: 'web', clock });
    const { socket, until } = client(tether.port, 'stay\n');
    await until((text) => text.endsWith('\n'));
    await clock.advance(TETHER.tickIntervalMs);
    const { lastByteAt } = await tether.workloads.next('traffic');
    socket.write('more\n');
    await until((text) => text.split('\n').length > 2);
    await clock.advance(TETHER.trafficReportIntervalMs);
    expect((await tether.workloads.next('traffic')).lastByteAt).toBe(lastByteAt + TETHER.tickIntervalMs);
    await clock.advance(3 * TETHER.trafficReportIntervalMs);
    expect(tether.workloads.of('traffic')).toHaveLength(2);
  });

  it('closes the connection to the pod when the client has closed and the pod has not', async () => {
    const tether = await field({ sandbox: box, name: 'web' });
    const { socket, until } = client(tether.port, 'stay\n');
    await until((text) => text.endsWith('\n'));
    const { lastByteAt } = await tether.workloads.next('traffic');
    socket.write('more\n');
    await until((text) => text.split('\n').length > 2);
    socket.destroy();
    await tether.until(({ connections, bytesIn }) => connections === 0 && bytesIn > 0);
    // Its last bytes are reported when it closes, not one report later.
    expect((await tether.workloads.next('traffic')).lastByteAt).toBeGreaterThan(lastByteAt);
  });
});
