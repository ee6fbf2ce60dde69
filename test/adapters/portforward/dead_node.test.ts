// A node that dies without a sign: its connections stay open and nothing comes any more. The test drives
// the clock.
import { describe, expect, it } from 'vitest';
import type { ClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { settle, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import {
  connectionsTo,
  DATA_ID,
  ERROR_ID,
  type Far,
  farEnd,
  frame,
  message,
  open,
  reply,
  word,
} from './far_end.ts';

const DEAD = { code: 'lost', text: 'the node does not answer any more' };
const opened = Buffer.concat([reply(ERROR_ID), reply(DATA_ID)]);
const isAsked = (received: Buffer): boolean => received.length > 0;

/** The ids of the pings in what a client of SPDY has sent. */
function pingsIn(received: Buffer): number[] {
  const found: number[] = [];
  for (let at = 0; at + 8 <= received.length; at += 8 + received.readUIntBE(at + 5, 3))
    if (received[at] === 0x80 && received[at + 3] === 6) found.push(received.readUInt32BE(at + 8));
  return found;
}

/** Has the connection answer every ping, those of before as well, until `isOver`. */
function answerPings(far: Far, isOver: () => boolean = () => false): void {
  let answered = 0;
  far.socket.on('data', () => {
    for (const id of pingsIn(far.received()).slice(answered)) {
      answered += 1;
      if (!isOver()) far.socket.write(frame(6, word(id)));
    }
  });
}

/** Advances the clock in small steps, in each of which what was sent over loopback arrives. */
async function pass(clock: TestClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 1_000) {
    await clock.advance(1_000);
    for (let turn = 0; turn < 20; turn += 1) await settle();
  }
}

/** More than a node takes without its pod. */
const UPLOAD = Buffer.alloc(64 * 1024, 'x');

describe('a stream on a node that dies', () => {
  /** A dialer whose further connections fail once `isAway` says so. */
  const mayBeAway = (far: ClusterDialer, isAway: () => boolean): ClusterDialer => ({
    ...far,
    connect: (signal) =>
      isAway() ? Promise.reject(new Error('no answer in 10000 ms')) : far.connect(signal),
  });
  /** A node that lives until `state.isDead`. */
  async function mortal() {
    const state = { isDead: false };
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      answerPings(end, () => state.isDead);
      void end.until(isAsked).then(() => end.socket.write(opened));
    });
    return { state, ends, dialer: mayBeAway(far, () => state.isDead) };
  }

  it('is lost within seconds when it was quiet', async () => {
    const clock = virtualClock();
    const { state, dialer } = await mortal();
    const stream = open(connectionsTo(dialer, 'spdy', clock));
    await stream.opened;
    // It lives on quietly for as long as it answers.
    await pass(clock, 5 * TETHER.deadPeerMs);
    state.isDead = true;
    const before = clock.monotonic();
    await eventually(async () => {
      await pass(clock, 1_000);
      return Promise.race([stream.over, Promise.resolve(false as const)]);
    });
    expect(await stream.over).toEqual(DEAD);
    expect(clock.monotonic() - before).toBeLessThan(2 * TETHER.deadPeerMs);
  });

  it('is lost soon when its pod is no longer ready', async () => {
    const clock = virtualClock();
    const { state, dialer } = await mortal();
    const connections = connectionsTo(dialer, 'spdy', clock);
    const stream = open(connections);
    await stream.opened;
    connections.retire();
    await pass(clock, 2 * TETHER.deadPeerMs);
    state.isDead = true;
    await pass(clock, 2 * TETHER.deadPeerMs);
    expect(await stream.over).toEqual(DEAD);
    expect(connections.isEmpty).toBe(true);
  });

  it('is lost soon when the node had not accepted what it had written', async () => {
    const clock = virtualClock();
    const { state, dialer } = await mortal();
    const stream = open(connectionsTo(dialer, 'spdy', clock));
    await stream.opened;
    state.isDead = true;
    stream.write(UPLOAD);
    await pass(clock, 2 * TETHER.deadPeerMs + TETHER.dialTimeoutMs);
    expect(await stream.over).toEqual(DEAD);
  });

  it('is lost soon when the node had accepted everything, even if another connection is answered', async () => {
    const clock = virtualClock();
    let isFirst = true;
    const dialer = await farEnd((end) => {
      if (isFirst) void end.until(isAsked).then(() => end.socket.write(opened));
      else answerPings(end);
      isFirst = false;
    });
    const stream = open(connectionsTo(dialer, 'spdy', clock));
    await stream.opened;
    await pass(clock, 2 * TETHER.deadPeerMs);
    expect(await stream.over).toEqual(DEAD);
  });

  it('continues when only its pod reads nothing, and another connection to the node is answered', async () => {
    const clock = virtualClock();
    let isFirst = true;
    const stuck: Far[] = [];
    const dialer = await farEnd((end) => {
      if (isFirst) {
        isFirst = false;
        stuck.push(end);
        void end.until(isAsked).then(() => end.socket.write(opened));
      } else answerPings(end);
    });
    const stream = open(connectionsTo(dialer, 'spdy', clock));
    await stream.opened;
    stream.write(UPLOAD);
    let isOver = false;
    void stream.over.then(() => {
      isOver = true;
    });
    await pass(clock, 10 * TETHER.deadPeerMs);
    expect(isOver).toBe(false);
    expect(stuck).toHaveLength(1);
  });

  it('is lost over a WebSocket too, once the node has shown that it answers', async () => {
    const clock = virtualClock();
    let isDead = false;
    const dialer = await farEnd((end) => {
      end.socket.write(Buffer.concat([0, 1].map((channel) => message(Buffer.from([channel, 80, 0])))));
      let pings = 0;
      end.socket.on('data', () => {
        // A ping of the client is masked and empty.
        const all = end.received().toString('latin1').split('\x89\x80').length - 1;
        for (; pings < all; pings += 1) if (!isDead) end.socket.write(message('', 10));
      });
    });
    const stream = open(connectionsTo(dialer, 'websocket', clock));
    await stream.opened;
    await pass(clock, 5 * TETHER.deadPeerMs);
    isDead = true;
    await pass(clock, 2 * TETHER.deadPeerMs);
    expect(await stream.over).toEqual(DEAD);
  });
});
