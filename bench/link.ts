// Two real threads. The subject is the round trip of an ask: ref, message, batch, port, mailbox, handler and
// back. The floor is the least that the platform needs: postMessage of the same object (structured clone) and
// a Map of pending calls. Both are measured by the processor time of all threads, which a busy machine does
// not change, and by the clock.
import { isMainThread, MessageChannel, type MessagePort, Worker, workerData } from 'node:worker_threads';
import { messagePortPipe } from '../src/adapters/pipes.ts';
import { actor } from '../src/runtime/actor.ts';
import { systemClock } from '../src/runtime/clock.ts';
import { untypedNode } from '../test/kit/untyped_node.ts';
import { type Benchmark, comparisons, type Row, throughput } from './kit/harness.ts';

const TURN_MS = 200;
const TURNS = 21;
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
  const node = untypedNode({ name: 'far', clock: systemClock, nodeOf: place });
  await node.start(
    'echo',
    actor<Echo, null>('echo', () => ({ echo: (message) => message })),
    null,
  );
  node.connect('near', messagePortPipe(asks));
  plain.on('message', (message: { id: number; message: unknown }) => plain.postMessage(message));
  plain.postMessage({ id: 0, message: null });
}

/** Round trips per second of processor time, and per second of the clock. */
const both = (once: () => Promise<unknown>, inFlight: number) => async (): Promise<number[]> => {
  const before = process.cpuUsage();
  const perSecond = await throughput(once, inFlight, TURN_MS);
  const { user, system } = process.cpuUsage(before);
  return [(perSecond * TURN_MS * 1_000) / (user + system), perSecond];
};

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
  const node = untypedNode({ name: 'near', clock: systemClock, nodeOf: place });
  node.connect('far', messagePortPipe(asks.port1));
  const ref = node.ref<Echo>('echo');
  const ask = () => ref.ask('echo', MESSAGE);
  const rows: Row[] = [];
  for (const inFlight of [1, 64, 512]) {
    const sides = { floor: both(post, inFlight), subject: both(ask, inFlight), turns: TURNS };
    const [spent, passed] = await comparisons(
      [`${inFlight} in flight`, `${inFlight} in flight, by the clock`],
      'round trips/s',
      sides,
    );
    if (spent && passed) rows.push({ ...spent, unit: 'round trips per CPU second' }, passed);
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
