// The pumps of a door between real sockets: many connections share one buffer, and their receivers pause.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { BytePump, pumpedSocket } from '../../src/adapters/byte_pump.ts';
import { loadLibc } from '../../src/adapters/process/libc.ts';
import { KIB } from '../../src/settings/limits.ts';
import { eventually } from '../kit/eventually.ts';
import { must } from '../kit/must.ts';
import { random } from '../kit/random.ts';

const libc = await loadLibc();
const open: { close(): void }[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.close();
});

async function listen(onConnection: (socket: Socket) => void, options = {}): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true, ...options }, (socket) => {
    sockets.add(socket);
    onConnection(socket);
  });
  open.push({
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Carries each connection to `port`. */
const relayTo = (port: number, onMoved = (): void => {}): Promise<number> =>
  listen(
    (accepted) => {
      const [down, up] = [new BytePump(libc, onMoved), new BytePump(libc, onMoved)];
      const service = connect({ port, host: '127.0.0.1', allowHalfOpen: true, onread: down.onread }, () => {
        const client = must(pumpedSocket(accepted, up, libc));
        for (const [one, other] of [
          [client, service],
          [service, client],
        ] as const)
          one.on('error', () => other.destroy());
        up.attach(client, service);
        down.attach(service, client);
      });
    },
    { pauseOnConnect: true },
  );

it('the byte pump forwards every byte in order to receivers that pause', async () => {
  const seed = Number(process.env['BERTH_SEED'] ?? Date.now() % 1e9);
  const below = random(seed);
  const echo = await listen((socket) => socket.pipe(socket));
  const port = await relayTo(echo);
  const one = async (): Promise<void> => {
    const socket = connect({ port, host: '127.0.0.1' });
    const [sent, got] = [createHash('sha256'), createHash('sha256')];
    socket.on('data', (bytes) => {
      got.update(bytes);
      if (below(20) > 0) return;
      socket.pause();
      setImmediate(() => socket.resume());
    });
    for (let left = 40; left > 0; left -= 1) {
      const bytes = Buffer.alloc(1 + below(600 * KIB), below(256));
      sent.update(bytes);
      if (!socket.write(bytes)) await once(socket, 'drain');
    }
    socket.end();
    await once(socket, 'end');
    expect(got.digest('hex'), `seed ${seed}`).toBe(sent.digest('hex'));
  };
  await Promise.all(Array.from({ length: 6 }, one));
});

it('the byte pump reads no more than its receiver accepts, and ends when the receiver has closed', async () => {
  const receivers: Socket[] = [];
  const sink = await listen((socket) => receivers.push(socket.on('error', () => undefined)));
  let moves = 0;
  const port = await relayTo(sink, () => {
    moves += 1;
  });
  const socket = connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
  const block = Buffer.alloc(256 * KIB);
  const writeOn = (): void => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on('drain', writeOn);
  writeOn();
  // The kernel's buffers are full.
  let before = -1;
  await eventually(() => {
    const isStill = moves > 0 && moves === before;
    before = moves;
    return isStill;
  });
  must(receivers[0]).resetAndDestroy();
  await eventually(() => socket.destroyed);
});
