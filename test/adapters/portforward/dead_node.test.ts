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
  type Heard,
  message,
  open,
  reply,
  word,
} from './far_end.ts';
import { type NodeState, ReferenceNode } from './reference_node.ts';

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

  describe('while new connections to it are answered', () => {
    /** An open stream to a node as the reference implementation, and those to which more is connected. */
    async function stream() {
      const clock = virtualClock();
      const state: NodeState = { frozen: new Set(), isRead: true };
      const nodes: ReferenceNode[] = [];
      const ends: Far[] = [];
      const dialer = await farEnd((far) => {
        ends.push(far);
        nodes.push(new ReferenceNode(far, state));
      });
      const opened = open(connectionsTo(dialer, 'spdy', clock));
      await opened.opened;
      /** Resolves with how it ended; null: it has not. */
      const passed = async (ms: number) => {
        await pass(clock, ms);
        return Promise.race([opened.over, Promise.resolve(null)]);
      };
      const freeze = (): void => {
        state.frozen = new Set(ends);
      };
      const work = (): void => {
        for (const node of nodes) node.work();
      };
      const thaw = (): void => {
        state.frozen = new Set();
        work();
      };
      return { clock, state, nodes, stream: opened, passed, freeze, thaw, work };
    }

    /** Writes as much as is accepted, of at most `count` chunks. Returns how many. */
    function fill(stream: Heard, chunk: Buffer, count: number): number {
      for (let written = 1; written <= count; written += 1) if (!stream.write(chunk)) return written;
      return count;
    }

    const LITTLE = Buffer.alloc(6);
    it.each([
      ['had just been written to', LITTLE, 2, 0, 2],
      ['is written to afterwards', LITTLE, 1, 1, 2],
      ['gets many small pieces afterwards', LITTLE, 2, 10_000, 2],
      // An answer behind so much could still come over a slow path.
      ['gets more than it accepts afterwards', UPLOAD, 2, 10_000, 3],
    ])('is lost soon when it %s', async (_, chunk, before, afterwards, times) => {
      const { nodes, stream: one, passed, freeze } = await stream();
      fill(one, chunk, before);
      expect(await passed(5 * TETHER.deadPeerMs)).toBeNull();
      fill(one, chunk, before);
      freeze();
      fill(one, chunk, afterwards);
      expect(await passed(times * TETHER.deadPeerMs)).toEqual(DEAD);
      expect(nodes[0]?.readBytes).toBeGreaterThan(0);
    });

    it('continues on a slow path whose buffers take all at once, until the path dies', async () => {
      const { state, nodes, stream: one, passed, work } = await stream();
      const carriedPerSecond = 25_000;
      state.carriedBytes = 0;
      let accepted = 0;
      for (let seconds = 0, drains = -1; seconds < 200; seconds += 1) {
        if (drains < one.drained()) {
          drains = one.drained();
          accepted += fill(one, UPLOAD, 10_000);
        }
        state.carriedBytes += carriedPerSecond;
        work();
        expect(await passed(1_000)).toBeNull();
      }
      expect(accepted * UPLOAD.length).toBeGreaterThan(10 * TETHER.maxBufferedBytes);
      expect(nodes[0]?.readBytes).toBeGreaterThan(0.9 * 200 * carriedPerSecond);
      expect(await passed(3 * TETHER.deadPeerMs)).toEqual(DEAD);
    });

    it('continues after its path has stood still during an upload for almost as long as a dead node is given', async () => {
      const { stream: one, passed, freeze, thaw } = await stream();
      // Each time at another moment between two checks.
      for (let freezes = 0; freezes < 5; freezes += 1) {
        fill(one, UPLOAD, 10);
        expect(await passed(2_000)).toBeNull();
        freeze();
        fill(one, UPLOAD, 10);
        expect(await passed(TETHER.deadPeerMs - 2_000)).toBeNull();
        thaw();
        expect(await passed(1_000)).toBeNull();
      }
    });

    it('continues when only its pod reads nothing, and the pod gets everything later', async () => {
      const { state, nodes, stream: one, passed } = await stream();
      state.isRead = false;
      let written = 0;
      // Until what has left makes no more room.
      for (let drains = -1; drains < one.drained(); ) {
        drains = one.drained();
        written += fill(one, UPLOAD, 10_000);
        expect(await passed(TETHER.pingIntervalMs)).toBeNull();
      }
      const drains = one.drained();
      expect(await passed(40 * TETHER.deadPeerMs)).toBeNull();
      expect(one.drained()).toBe(drains);
      state.isRead = true;
      for (const node of nodes) node.work();
      expect(await passed(TETHER.pingIntervalMs)).toBeNull();
      expect(nodes[0]?.readBytes).toBe(written * UPLOAD.length);
      expect(nodes[0]?.maxQueued).toBeLessThan(50);
      expect(one.drained()).toBeGreaterThan(drains);
    });

    it('sends in one frame what was written while another was on its way, all of it before the end', async () => {
      const { nodes, stream: one } = await stream();
      for (const bytes of [1_000, 2_000, 3_000]) one.write(Buffer.alloc(bytes));
      one.end();
      await eventually(() => nodes[0]?.frames.at(-1) === 0);
      expect(nodes[0]?.frames).toEqual([1_000, 5_000, 0]);
    });

    it('carries all that its pod reads', async () => {
      const { nodes, stream: one } = await stream();
      const chunk = Buffer.alloc(1_000);
      let written = 0;
      while (written < 500) {
        const drains = one.drained();
        written += fill(one, chunk, 500 - written);
        if (written < 500) await eventually(() => one.drained() > drains);
      }
      await eventually(() => nodes[0]?.readBytes === 500 * chunk.length);
    });

    it('is lost when its pod had read nothing before', async () => {
      const { state, stream: one, passed, freeze } = await stream();
      state.isRead = false;
      fill(one, UPLOAD, 10_000);
      expect(await passed(4 * TETHER.deadPeerMs)).toBeNull();
      freeze();
      // The longer the pod has read nothing, the rarer are the pings.
      expect(await passed(8 * TETHER.deadPeerMs)).toEqual(DEAD);
    });
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
