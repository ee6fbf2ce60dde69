// Streams over one connection: docs/reference.md "Relay". The connection is a queue of messages in memory,
// which the test moves on one by one.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { creditFrame, FRAME, muxFrame, muxReset, newFrame } from '../../../src/adapters/relay/frames.ts';
import { Mux, type MuxTransport } from '../../../src/adapters/relay/mux.ts';
import type { MuxStream } from '../../../src/adapters/relay/mux_stream.ts';
import { RELAY } from '../../../src/settings/cloud_limits.ts';
import { KIB, MIB } from '../../../src/settings/limits.ts';
import { must } from '../../kit/must.ts';

/** One direction: what was sent and has not arrived. */
class Wire implements MuxTransport {
  readonly frames: Buffer[] = [];
  closedBy: string | null = null;
  bufferedBytes = 0;
  /** Whether what is on its way has left this machine. */
  isLong = false;

  send(frame: Buffer): void {
    this.frames.push(frame);
    if (!this.isLong) this.bufferedBytes += frame.length;
  }

  opened(): void {
    // Nobody here waits for the peer.
  }

  close(reason: string): void {
    this.closedBy = reason;
  }
}

/** What the user of a stream has heard. */
class Heard {
  readonly stream: MuxStream;
  readonly chunks: Buffer[] = [];
  readonly ends: string[] = [];
  drained = 0;

  constructor(stream: MuxStream) {
    this.stream = stream;
    stream.listen({
      onData: (bytes) => this.chunks.push(bytes),
      onEnd: () => this.ends.push('end'),
      onDrained: () => {
        this.drained += 1;
      },
      onClosed: () => this.ends.push('closed'),
      onReset: (code, text) => this.ends.push(`${code}: ${text}`),
    });
  }

  get bytes(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

/** A client and a server; `takes`: what the server does with a stream. */
function connection(takes: (stream: MuxStream) => void = () => undefined) {
  const up = new Wire();
  const down = new Wire();
  const accepted: Heard[] = [];
  const client = new Mux(up, null);
  const server = new Mux(down, {
    onStream: (stream) => {
      takes(stream);
      accepted.push(new Heard(stream));
    },
  });
  const sides = { up: [up, server, client], down: [down, client, server] } as const;
  /** Moves one message on; false: there is none. */
  const step = (way: 'up' | 'down'): boolean => {
    const [wire, receiver, sender] = sides[way];
    const frame = wire.frames.shift();
    if (!frame) return false;
    if (!wire.isLong) wire.bufferedBytes -= frame.length;
    receiver.receive(frame);
    sender.flush();
    return true;
  };
  const settle = (): void => {
    while (step('up') || step('down'));
  };
  const open = (): Heard => new Heard(client.open(Buffer.from('{}')));
  return { up, down, client, server, accepted, step, settle, open };
}

const filled = (length: number, seed: number): Buffer =>
  Buffer.alloc(
    length,
    Uint8Array.from({ length: 256 }, (_, index) => (index * 31 + seed) & 0xff),
  );

const action = fc.oneof(
  fc.record({
    do: fc.constant('write' as const),
    by: fc.nat(5),
    bytes: fc.integer({ min: 0, max: 200 * KIB }),
  }),
  fc.record({
    do: fc.constantFrom('pause' as const, 'resume' as const, 'end' as const),
    by: fc.nat(5),
    bytes: fc.constant(0),
  }),
  fc.record({ do: fc.constantFrom('up' as const, 'down' as const), by: fc.nat(40), bytes: fc.constant(0) }),
);

describe('streams over one connection', () => {
  it('deliver what was written, in order, within their windows', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const here = connection();
        const near = [here.open(), here.open(), here.open()];
        here.settle();
        const users = [...near, ...here.accepted];
        const written = users.map(() => [] as Buffer[]);
        const hasEnded = new Set<number>();
        for (const [index, one] of actions.entries()) {
          const { stream } = must(users[one.by % users.length]);
          if (one.do === 'up' || one.do === 'down')
            for (let left = one.by; left > 0; left -= 1) here.step(one.do);
          else if (one.do === 'pause') stream.pause();
          else if (one.do === 'resume') stream.resume();
          else if (one.do === 'end') {
            hasEnded.add(one.by);
            stream.end();
          } else if (!hasEnded.has(one.by)) {
            const bytes = filled(one.bytes, index);
            must(written[one.by]).push(bytes);
            stream.write(bytes);
          }
        }
        for (const { stream } of users) {
          stream.resume();
          stream.end();
        }
        here.settle();
        expect([here.up.closedBy, here.down.closedBy]).toEqual([null, null]);
        for (const [index, user] of users.entries()) {
          const sent = Buffer.concat(must(written[(index + 3) % 6]));
          expect(user.bytes.equals(sent)).toBe(true);
          expect(user.ends).toEqual(['end', 'closed']);
        }
      }),
      { numRuns: 40 },
    );
  });

  it('continue next to a reader that has stopped', () => {
    const here = connection();
    const stopped = here.open();
    const others = Array.from({ length: 50 }, () => here.open());
    here.settle();
    stopped.stream.pause();
    for (const { stream } of here.accepted) stream.write(filled(MIB, 7));
    here.settle();
    for (const { bytes } of others) expect(bytes.length).toBe(MIB);
    expect(stopped.chunks).toEqual([]);
    stopped.stream.resume();
    here.settle();
    expect(stopped.bytes.equals(filled(MIB, 7))).toBe(true);
  });

  it('let a writer continue only when there is room', () => {
    const here = connection();
    const near = here.open();
    here.settle();
    const far = must(here.accepted[0]);
    far.stream.pause();
    expect(near.stream.write(filled(RELAY.windowBytes, 1))).toBe(true);
    here.settle();
    expect(near.stream.write(filled(RELAY.maxUnsentOfStream + 1, 2))).toBe(false);
    here.settle();
    expect([near.drained, near.stream.bufferedBytes]).toEqual([0, RELAY.maxUnsentOfStream + 1]);
    far.stream.resume();
    here.settle();
    expect([near.drained, near.stream.bufferedBytes]).toEqual([1, 0]);
  });

  it('keep data that arrives before the user listens', () => {
    const here = connection();
    const heard: Heard[] = [];
    const server = new Mux(new Wire(), { onStream: (stream) => heard.push(new Heard(stream)) });
    const stream = here.client.open(Buffer.from('{}'));
    stream.write(Buffer.from('early'));
    stream.end();
    for (const frame of here.up.frames) server.receive(frame);
    expect([heard[0]?.bytes.toString(), heard[0]?.ends]).toEqual(['early', ['end']]);
  });

  it('store many small frames in little memory', () => {
    const here = connection();
    here.open();
    here.settle();
    const far = must(here.accepted[0]);
    far.stream.pause();
    for (let index = 0; index < 4_096; index += 1)
      here.server.receive(muxFrame(FRAME.data, far.stream.id, Buffer.of(index & 0xff)));
    far.stream.resume();
    expect([far.chunks.length, far.bytes.length]).toEqual([1, 4_096]);
  });
});

describe('the window of a stream', () => {
  it('grows while it limits the sender, up to a maximum', () => {
    const here = connection();
    here.down.isLong = true;
    const near = here.open();
    here.settle();
    const far = must(here.accepted[0]);
    for (let index = 0; index < 12; index += 1) {
      far.stream.write(Buffer.alloc(16 * MIB));
      here.settle();
      near.chunks.length = 0;
    }
    expect(near.stream.grownBytes).toBe(RELAY.maxWindowBytes - RELAY.windowBytes);
  });

  it('stays the same for a sender that writes little', () => {
    const here = connection();
    const near = here.open();
    here.settle();
    for (let index = 0; index < 100; index += 1) {
      must(here.accepted[0]).stream.write(filled(8 * KIB, index));
      here.settle();
    }
    expect([near.bytes.length, near.stream.grownBytes]).toEqual([800 * KIB, 0]);
  });

  it('stops growing at the limit of its connection, until another stream ends', () => {
    const here = connection();
    here.down.isLong = true;
    const near = Array.from({ length: 8 }, () => here.open());
    here.settle();
    const fill = (): number => {
      for (const { stream } of here.accepted) stream.write(Buffer.alloc(16 * MIB));
      here.settle();
      for (const { chunks } of near) chunks.length = 0;
      return near.reduce((sum, { stream }) => sum + stream.grownBytes, 0);
    };
    for (let index = 0; index < 8; index += 1) expect(fill()).toBeLessThanOrEqual(RELAY.maxGrownBytes);
    const small = must(
      near.find(({ stream }) => stream.grownBytes < RELAY.maxWindowBytes - RELAY.windowBytes),
    );
    const before = small.stream.grownBytes;
    for (const one of near) if (one !== small) one.stream.reset('closed', '');
    here.settle();
    for (let index = 0; index < 8; index += 1) fill();
    expect(small.stream.grownBytes).toBeGreaterThan(before);
  });
});

/** Bytes both ways, half-closes and a second stream: `cut` is called before each message. */
function exchange(cut: (here: ReturnType<typeof connection>, near: Heard, at: number) => void) {
  const here = connection();
  const near = here.open();
  near.stream.write(filled(100 * KIB, 1));
  near.stream.end();
  let at = 0;
  for (let moved = true; moved; at += 1) {
    cut(here, near, at);
    const far = here.accepted[0];
    if (at === 3) far?.stream.write(filled(150 * KIB, 2));
    if (at === 6) far?.stream.end();
    moved = here.step('up') || here.step('down');
  }
  return { here, near, messages: at };
}

describe('a reset', () => {
  const { messages } = exchange(() => undefined);

  it('by the client ends the stream at any moment, once, and no other stream', () => {
    for (let when = 0; when < messages; when += 1) {
      const { here, near } = exchange((_, { stream }, at) => {
        if (at === when) stream.reset('closed', 'enough');
      });
      const [far] = here.accepted;
      const isOver = far ? ['closed: enough', 'closed'].includes(far.ends.at(-1) ?? '') : true;
      expect([when, isOver]).toEqual([when, true]);
      expect([near.ends.filter((end) => end !== 'end' && end !== 'closed'), here.up.closedBy]).toEqual([
        [],
        null,
      ]);
      const next = here.open();
      here.settle();
      expect(here.accepted.map(({ stream }) => stream.id)).toContain(next.stream.id);
    }
  });

  it('by the server ends the stream in the same way', () => {
    for (let when = 1; when < messages; when += 1) {
      const { here, near } = exchange(({ accepted }, _, at) => {
        if (at === when) accepted[0]?.stream.reset('failed', 'the pod is gone');
      });
      expect([when, ['failed: the pod is gone', 'closed'].includes(near.ends.at(-1) ?? '')]).toEqual([
        when,
        true,
      ]);
      expect([here.up.closedBy, here.down.closedBy]).toEqual([null, null]);
    }
  });
});

describe('a hostile peer', () => {
  const data = (length: number) => muxFrame(FRAME.data, 1, Buffer.alloc(length));
  const open = (id: number, length = 2) => muxFrame(FRAME.open, id, Buffer.alloc(length));
  const cases: readonly [name: string, frames: Buffer[], reason: RegExp][] = [
    ['nothing', [Buffer.alloc(0)], /without a frame/],
    ['half a head', [Buffer.alloc(4)], /without a frame/],
    ['an unknown type', [open(1), newFrame(99, 1, 0)], /type 99/],
    ['an unknown type for the connection', [newFrame(99, 0, 0)], /type 99 without a stream/],
    ['a ping with a body', [muxFrame(FRAME.ping, 0, Buffer.alloc(9))], /a body/],
    ['data for no stream', [data(1)], /never opened/],
    ['a stream twice', [open(7), open(7)], /opened before/],
    ['a stream of the past', [open(7), open(3)], /opened before/],
    ['a long request', [open(1, RELAY.maxRequestBytes + 1)], /too long/],
    ['more than the window', [open(1), data(RELAY.windowBytes), data(1)], /window/],
    ['data after the end', [open(1), muxFrame(FRAME.end, 1), data(1)], /after its end/],
    ['two ends', [open(1), muxFrame(FRAME.end, 1), muxFrame(FRAME.end, 1)], /second end/],
    ['an end with a body', [open(1), muxFrame(FRAME.end, 1, Buffer.alloc(1))], /end with a body/],
    ['much credit', [open(1), creditFrame(1, 2 ** 32 - 1)], /more credit/],
    [
      'credit in pieces',
      [open(1), ...Array.from({ length: 3 }, () => creditFrame(1, 2 ** 30))],
      /more credit/,
    ],
    ['a short credit', [open(1), muxFrame(FRAME.credit, 1, Buffer.alloc(3))], /credit/],
    ['a reset without a code', [open(1), muxFrame(FRAME.reset, 1)], /reset/],
    ['a reset with an unknown code', [open(1), muxFrame(FRAME.reset, 1, Buffer.of(200))], /reset/],
  ];
  it.each(cases)('that sends %s ends the connection', (_, frames, reason) => {
    const here = connection((stream) => stream.pause());
    for (const frame of frames) here.server.receive(frame);
    expect(here.down.closedBy).toMatch(reason);
    expect(here.server.isFree).toBe(false);
    for (const { ends } of here.accepted) expect(ends).toHaveLength(1);
  });

  it('that opens a stream as a server ends the connection', () => {
    const here = connection();
    here.client.receive(open(1));
    expect(here.up.closedBy).toMatch(/has not opened/);
  });

  it('that sends requests and does not read the responses ends the connection', () => {
    const here = connection();
    const ping = muxFrame(FRAME.ping, 0);
    for (let sent = 0; here.down.closedBy === null && sent < MIB; sent += 1) here.server.receive(ping);
    expect(here.down.closedBy).toMatch(/does not read/);
  });

  it('never causes an exception', () => {
    const message = fc.oneof(
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      fc
        .record({
          type: fc.integer({ min: 0, max: 12 }),
          id: fc.nat(4),
          body: fc.uint8Array({ maxLength: 20 }),
        })
        .map(({ type, id, body }) => muxFrame(type, id, Buffer.from(body))),
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 60 }), (messages) => {
        const here = connection((stream) => stream.write(Buffer.alloc(100)));
        for (const frame of messages) {
          here.server.receive(frame);
          here.client.receive(frame);
        }
        for (const { ends } of here.accepted) {
          const last = ends.filter((end) => end !== 'end');
          expect(last.length).toBeLessThanOrEqual(1);
        }
      }),
    );
  });
});

describe('a connection', () => {
  it('carries a limited number of streams', () => {
    const here = connection();
    for (let index = 0; index < RELAY.maxStreams; index += 1) here.open();
    here.settle();
    expect(here.client.isFree).toBe(false);
    const more = here.open();
    here.settle();
    expect([here.accepted.length, more.ends[0]]).toEqual([
      RELAY.maxStreams,
      `refused: ${RELAY.maxStreams} connections are open: no more are taken`,
    ]);
  });

  it('accepts no more streams once the server closes it, and finishes the open ones', () => {
    const here = connection();
    const near = here.open();
    here.settle();
    here.server.leave();
    const late = here.open();
    near.stream.end();
    must(here.accepted[0]).stream.end();
    here.settle();
    expect([late.ends, near.ends, here.client.isFree]).toEqual([
      ['unseen: this server takes no more connections'],
      ['end', 'closed'],
      false,
    ]);
  });

  it('that breaks resets its streams', () => {
    const here = connection();
    const near = here.open();
    here.client.close('the cable is cut');
    here.client.close('again');
    here.client.receive(muxReset(1, 'failed', ''));
    expect(near.ends).toEqual(['lost: the cable is cut']);
  });
});

describe('a user who disconnects', () => {
  it('has its data delivered first, also to a reader that has stopped for a while', () => {
    const here = connection((stream) => stream.pause());
    const { stream } = here.open();
    const sent = Buffer.alloc(2 * RELAY.windowBytes, 7);
    stream.write(sent);
    stream.leave();
    here.settle();
    const far = must(here.accepted[0]);
    expect([far.bytes.length, far.stream.isLeft]).toEqual([0, false]);
    far.stream.resume();
    here.settle();
    expect(far.bytes.equals(sent)).toBe(true);
    expect(far.ends).toEqual(['closed: ']);
    expect(here.client.size + here.server.size).toBe(0);
  });

  it('is reported before all of its data is read, and is sent nothing more', () => {
    const here = connection((stream) => stream.pause());
    const near = here.open();
    near.stream.write(Buffer.alloc(10));
    near.stream.leave();
    here.settle();
    const far = must(here.accepted[0]);
    expect([far.stream.isLeft, far.ends]).toEqual([true, []]);
    far.stream.write(Buffer.alloc(10));
    here.settle();
    far.stream.reset('closed', '');
    here.settle();
    expect([near.bytes.length, near.ends, here.server.size]).toEqual([0, [], 0]);
  });
});
