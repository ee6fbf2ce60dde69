// A process that stands still, as by SIGSTOP or in a machine that is paused, while its nodes live on: what it
// did not hear meanwhile is no silence of theirs.
import { expect, it } from 'vitest';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { settle, virtualClock } from '../../kit/actors.ts';
import { connectionsTo, DATA_ID, data, ERROR_ID, farEnd, type Heard, message, open } from './far_end.ts';
import { type NodeState, ReferenceNode } from './reference_node.ts';

const HOUR_MS = 3_600_000;

/** Virtual time in which the test calls back the intervals, at once and also late. */
function lateClock() {
  const clock = virtualClock();
  const intervals = new Set<() => void>();
  const every = (_: number, callback: () => void) => {
    intervals.add(callback);
    return () => void intervals.delete(callback);
  };
  const fire = (): void => {
    for (const callback of intervals) callback();
  };
  return { ...clock, every, fire };
}

/** Lets what was sent over loopback arrive. */
const arrive = async (): Promise<void> => {
  for (let turn = 0; turn < 30; turn += 1) await settle();
};
/** How the stream has ended; null: it has not. */
const end = (stream: Heard) => Promise.race([stream.over, Promise.resolve(null)]);

/** A node that keeps its answers until it is told to `answer`. */
async function spdyNode() {
  const state: NodeState = { frozen: new Set(), isRead: true };
  const nodes: ReferenceNode[] = [];
  const dialer = await farEnd((far) => {
    nodes.push(new ReferenceNode(far, state));
    state.frozen.add(far);
  });
  const answer = (): void => {
    const frozen = [...state.frozen];
    state.frozen.clear();
    for (const node of nodes) node.work();
    for (const far of frozen) state.frozen.add(far);
  };
  return { dialer, answer };
}

async function webSocketNode() {
  let answer = (): void => undefined;
  const dialer = await farEnd(({ socket }) => {
    socket.write(Buffer.concat([0, 1].map((channel) => message(Buffer.from([channel, 80, 0])))));
    answer = () => socket.write(message('', 10));
  });
  return { dialer, answer: () => answer() };
}

/** An open stream whose node has been asked, and has not answered yet. */
async function asked(transport: 'spdy' | 'websocket') {
  const { dialer, answer } = await (transport === 'spdy' ? spdyNode() : webSocketNode());
  const clock = lateClock();
  const stream = open(connectionsTo(dialer, transport, clock));
  const isOpen = stream.opened.then(() => true);
  while (!(await Promise.race([isOpen, settle()]))) answer();
  await arrive();
  answer();
  await arrive();
  const ask = async (): Promise<void> => {
    await clock.advance(TETHER.pingIntervalMs);
    clock.fire();
    await arrive();
  };
  await ask();
  // A WebSocket is only given up once its node has shown that it answers.
  answer();
  await arrive();
  await ask();
  return { clock, stream, answer };
}

const TRANSPORTS = ['spdy', 'websocket'] as const;

it.each(TRANSPORTS)('does not count as silence of a node: %s', async (transport) => {
  const { clock, stream } = await asked(transport);
  clock.standStill(HOUR_MS);
  for (let checks = 0; checks < 2; checks += 1) {
    clock.fire();
    await arrive();
    expect(await end(stream)).toBeNull();
  }
  // The rest of the time counts.
  await clock.advance(TETHER.deadPeerMs);
  clock.fire();
  await arrive();
  expect(await end(stream)).toMatchObject({ text: 'the node does not answer any more' });
});

it.each(TRANSPORTS)('does not hide an answer that can be read at its end: %s', async (transport) => {
  const { clock, stream, answer } = await asked(transport);
  await clock.advance(TETHER.deadPeerMs);
  answer();
  clock.fire();
  await arrive();
  expect(await end(stream)).toBeNull();
});

it('does not cut off the reason why a pod ended a connection', async () => {
  const clock = virtualClock();
  let far = (_: Buffer): void => undefined;
  const dialer = await farEnd((end) => {
    far = (bytes) => end.socket.write(bytes);
    new ReferenceNode(end, { frozen: new Set(), isRead: true });
  });
  const stream = open(connectionsTo(dialer, 'spdy', clock));
  await stream.opened;
  far(data(DATA_ID, 'part', true));
  await arrive();
  clock.standStill(HOUR_MS);
  await clock.advance(0);
  far(data(ERROR_ID, 'the pod was ended', true));
  expect(await stream.over).toEqual({ code: 'broken', text: 'the pod was ended' });
});

it('does not cut off what a pod still sends to a client that has half-closed, over a WebSocket', async () => {
  const clock = virtualClock();
  let far = (_: Buffer): void => undefined;
  const dialer = await farEnd(({ socket }) => {
    socket.write(message(Buffer.from([0, 80, 0])));
    far = (bytes) => socket.write(bytes);
  });
  const stream = open(connectionsTo(dialer, 'websocket', clock));
  await stream.opened;
  stream.end();
  clock.standStill(HOUR_MS);
  await clock.advance(0);
  far(Buffer.concat([message('\0rest'), message(Buffer.from([3, 232]), 8)]));
  expect(await stream.over).toBe('ended');
  expect(stream.text()).toBe('rest');
});
