// The two real pipes: a MessagePort and a unix socket. One node asks another over each; the socket also shows
// the faults of a stream.
import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { frameSplitter, messagePortPipe, pendingPipe, socketPipe } from '../../src/adapters/pipes.ts';
import { actor, type Pipe } from '../../src/runtime/actor.ts';
import { deferred } from '../../src/runtime/deferred.ts';
import { afterThisTest, realTime, settle, tempDir, type World, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

async function sockets(): Promise<[Socket, Socket]> {
  const path = join(tempDir(), 's');
  const server = createServer();
  server.listen(path);
  await once(server, 'listening');
  const near = dial(path);
  const [far] = (await once(server, 'connection')) as [Socket];
  server.close();
  afterThisTest(() => {
    near.destroy();
    far.destroy();
  });
  return [near, far];
}

function join2(ends: [Pipe, Pipe]): { near: World; far: World; lost: Promise<string> } {
  const place = (address: string) => (address.startsWith('far') ? 'far' : 'near');
  const near = world({ name: 'near', nodeOf: place, clock: realTime });
  const far = world({ name: 'far', nodeOf: place, clock: realTime });
  near.node.connect('far', ends[0]);
  far.node.connect('near', ends[1]);
  return { near, far, lost: new Promise((resolve) => near.node.onPeerLost((_, reason) => resolve(reason))) };
}

interface Bytes {
  turn(message: { bytes: Uint8Array }): { bytes: Uint8Array };
}
const bytes = actor<Bytes, null>('bytes', () => ({ turn: ({ bytes }) => ({ bytes: bytes.toReversed() }) }));

const KINDS: [string, () => Promise<[Pipe, Pipe]>][] = [
  [
    'a port',
    async () => {
      const { port1, port2 } = new MessageChannel();
      return [messagePortPipe(port1), messagePortPipe(port2)];
    },
  ],
  [
    'a socket that comes late',
    async () => {
      const [near, far] = await sockets();
      return [
        pendingPipe(settle().then(() => socketPipe(near))),
        pendingPipe(settle().then(() => socketPipe(far))),
      ];
    },
  ],
  [
    'a socket',
    async () => {
      const [near, far] = await sockets();
      return [socketPipe(near), socketPipe(far)];
    },
  ],
];

it.each(KINDS)('%s delivers asks of every size, in order', async (_, open) => {
  const { near, far } = join2(await open());
  await far.start('far', bytes, null);
  const ref = near.ref<Bytes>('far');
  const lengths = [0, 1, 100, 4_000, 5_000, 70_000, 2_000_000, 3];
  const replies = await Promise.all(
    lengths.map((length) => ref.ask('turn', { bytes: new Uint8Array(length).map((_, index) => index) })),
  );
  expect(replies.map((reply) => reply.bytes.length)).toEqual(lengths);
  for (const { bytes } of replies) {
    expect(bytes.every((byte, index) => byte === ((bytes.length - 1 - index) & 255))).toBe(true);
  }
});

it.each(KINDS)('%s that closes settles the open asks with `gone`', async (_, open) => {
  const { near, far, lost } = join2(await open());
  const { type, open: release } = probe();
  await far.start('far', type, null);
  const code = codeOf(near.ref<Probe>('far').ask('hold', { key: 'x' }));
  await near
    .ref<Probe>('far')
    .ask('echo', { value: 1 }, { deadlineMs: 1 })
    .catch(() => {});
  far.node.disconnect('near');
  expect(await code).toBe('gone');
  // A socket closed with unread bytes is reset.
  expect(await lost).toMatch(/closed|ECONNRESET/);
  release('x');
});

it.each(KINDS)('%s still delivers the last replies of a node that stops', async (_, open) => {
  const { near, far } = join2(await open());
  await far.start('far', bytes, null);
  const replies = [1, 50_000].map((length) =>
    near.ref<Bytes>('far').ask('turn', { bytes: new Uint8Array(length) }),
  );
  await near.ref<Bytes>('far').ask('turn', { bytes: new Uint8Array(1) });
  await far.node.stop();
  expect((await Promise.all(replies)).map(({ bytes }) => bytes.length)).toEqual([1, 50_000]);
});

it('a port that receives anything but bytes is closed', async () => {
  const { port1, port2 } = new MessageChannel();
  const lost = new Promise((resolve) => messagePortPipe(port1).receive(() => {}, resolve));
  port2.postMessage({ not: 'bytes' });
  expect(await lost).toBe('not bytes');
  port1.close();
});

it('a socket whose peer announces an absurd frame is closed with the reason', async () => {
  const [near, far] = await sockets();
  const { lost } = join2([socketPipe(near), { send: () => {}, receive: () => {}, close: () => {} }]);
  far.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
  expect(await lost).toBe('a frame of 4294967295 bytes');
});

it('a pipe that never opens is closed with the reason', async () => {
  const never = pendingPipe(Promise.reject(new Error('nobody is there')));
  const { near, lost } = join2([never, { send: () => {}, receive: () => {}, close: () => {} }]);
  const asked = near.node.ref<Bytes>('far').ask('turn', { bytes: new Uint8Array(1) });
  expect(await codeOf(asked)).toBe('gone');
  expect(await lost).toBe('nobody is there');
});

it('a pipe that was closed before it opened closes the connection that it gets', async () => {
  const [near, far] = await sockets();
  const gate = deferred<Pipe>();
  const {
    near: { node },
  } = join2([pendingPipe(gate.promise), socketPipe(far)]);
  node.disconnect('far');
  gate.resolve(socketPipe(near));
  await once(near, 'close');
});

it('frames arrive complete however the stream is split', () => {
  const frames = [0, 1, 3, 4, 5, 300, 3_000].map((length) => new Uint8Array(length).fill(length & 255));
  const stream = Buffer.concat(
    frames.flatMap((frame) => {
      const header = Buffer.alloc(4);
      header.writeUInt32BE(frame.length);
      return [header, frame];
    }),
  );
  for (const size of [1, 2, 3, 5, 7, 64, 1000, stream.length]) {
    const seen: Uint8Array[] = [];
    const take = frameSplitter((frame) => seen.push(frame.slice()));
    for (let at = 0; at < stream.length; at += size)
      expect(take(stream.subarray(at, at + size))).toBe(undefined);
    expect(seen).toEqual(frames);
  }
});
