// Two real threads. The subject is the whole way of an ask: ref, msgpack, batch, port, mailbox, handler and back. The
// floor is the least that can be done with the platform: postMessage of the same object (structured clone) and a Map
// of who waits.
import { isMainThread, MessageChannel, type MessagePort, Worker, workerData } from 'node:worker_threads';
import { portPipe } from '../src/adapters/pipes.ts';
import { actor } from '../src/runtime/actor.ts';
import { realClock } from '../src/runtime/clock.ts';
import { createNode } from '../src/runtime/node.ts';
import { type Benchmark, compare, throughput } from './harness.ts';

const TURN_MS = 400;
const MESSAGE = { name: 'web', port: 3000, status: 'running', pid: 12345 };

interface Echo {
  echo(message: typeof MESSAGE): typeof MESSAGE;
}

interface Ports {
  bench: 'link';
  asks: MessagePort;
  plain: MessagePort;
}

const place = (address: string) => (address === 'echo' ? 'far' : 'near');

/** Runs on the second thread. */
async function echo({ asks, plain }: Ports): Promise<void> {
  const node = createNode({ name: 'far', clock: realClock, place });
  await node.start(
    'echo',
    actor<Echo, null>('echo', () => ({ echo: (message) => message })),
    null,
  );
  node.connect('near', portPipe(asks));
  plain.on('message', (letter: { id: number; message: unknown }) => plain.postMessage(letter));
  plain.postMessage({ id: 0, message: null });
}

async function run() {
  const asks = new MessageChannel();
  const plain = new MessageChannel();
  const ports: Ports = { bench: 'link', asks: asks.port2, plain: plain.port2 };
  const worker = new Worker(new URL(import.meta.url), {
    workerData: ports,
    transferList: [asks.port2, plain.port2],
  });
  const waiting = new Map<number, (message: unknown) => void>();
  const ready = new Promise<unknown>((resolve) => waiting.set(0, resolve));
  plain.port1.on('message', ({ id, message }: { id: number; message: unknown }) => {
    waiting.get(id)?.(message);
    waiting.delete(id);
  });
  await ready;
  let lastId = 0;
  const post = () =>
    new Promise<unknown>((resolve) => {
      lastId += 1;
      waiting.set(lastId, resolve);
      plain.port1.postMessage({ id: lastId, message: MESSAGE });
    });
  const node = createNode({ name: 'near', clock: realClock, place });
  node.connect('far', portPipe(asks.port1));
  const ref = node.ref<Echo>('echo');
  const rows = [];
  for (const inFlight of [1, 64, 512]) {
    rows.push(
      await compare(`${inFlight} in flight`, 'round trips/s', {
        floor: () => throughput(post, inFlight, TURN_MS),
        subject: () => throughput(() => ref.ask('echo', MESSAGE), inFlight, TURN_MS),
      }),
    );
  }
  await node.stop();
  await worker.terminate();
  return rows;
}

export const link: Benchmark = {
  name: 'link',
  question: 'What does an ask between two threads cost, next to a bare postMessage there and back?',
  run,
};

if (!isMainThread && workerData?.bench === 'link') await echo(workerData);
