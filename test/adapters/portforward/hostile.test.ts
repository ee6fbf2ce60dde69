// Bytes that no API server may send end only their own connection; the next one is carried.
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameReader, pingFrame, synStreamFrame } from '../../../src/adapters/portforward/spdy_frames.ts';
import type { ForwardError } from '../../../src/adapters/portforward/transport.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import {
  connectionsTo,
  DATA_ID,
  data,
  ERROR_ID,
  type Far,
  farEnd,
  frame,
  message,
  open,
  reply,
  upgradeTo,
  word,
} from './far_end.ts';

const goodSpdy = (far: Far): void => {
  void far
    .until((received) => received.length > 0)
    .then(() =>
      far.socket.write(
        Buffer.concat([
          reply(ERROR_ID),
          reply(DATA_ID),
          data(DATA_ID, 'good', true),
          data(ERROR_ID, '', true),
        ]),
      ),
    );
};
const PORT_80 = [Buffer.from([0, 80, 0]), Buffer.from([1, 80, 0])].map((bytes) => message(bytes));
const goodWebSocket = (far: Far): void => {
  far.socket.write(Buffer.concat([...PORT_80, message('\0good'), message(Buffer.from([3, 232]), 8)]));
};

/**
 * A server answers the first connection with `bytes` and the second correctly: only the second is carried.
 */
async function endsAt(bytes: Buffer, transport: 'spdy' | 'websocket'): Promise<void> {
  const good = transport === 'spdy' ? goodSpdy : goodWebSocket;
  const far = await farEnd(async (end, index) => {
    if (index !== 1) return good(end);
    if (transport === 'spdy') await end.until((received) => received.length > 0);
    end.socket.write(bytes);
  });
  const connections = connectionsTo(far, transport);
  expect(await open(connections).over).toMatchObject({ code: expect.stringMatching(/hostile|lost/) });
  const next = open(connections);
  expect(await next.over).toBe('ended');
  expect(next.text()).toBe('good');
}

describe('a SPDY connection', () => {
  const wrong: [name: string, bytes: Buffer][] = [
    ['another version', Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1])],
    ['a stream of its own', synStreamFrame(2, [['a', 'b']], false, true)],
    ['a control frame of 16 MiB', Buffer.from([0x80, 3, 0, 2, 0, 0xff, 0xff, 0xff])],
    ['data on stream 0', data(0, 'x')],
    ['a reset of two bytes', frame(3, Buffer.from([0, 1]))],
    ['a ping of no bytes', frame(6, Buffer.alloc(0))],
  ];
  it.each(wrong)('ends at %s, and the next connection works', (_, bytes) =>
    endsAt(Buffer.concat([reply(DATA_ID), bytes, Buffer.alloc(64, 0xff)]), 'spdy'),
  );

  it('ignores header blocks: a bomb in one is skipped', async () => {
    const bomb = deflateSync(Buffer.alloc(8 * 1024 * 1024)).subarray(0, 12_000);
    const far = await farEnd((end) => {
      void end
        .until((received) => received.length > 0)
        .then(() =>
          end.socket.write(
            Buffer.concat([
              reply(ERROR_ID, bomb),
              frame(8, Buffer.concat([word(DATA_ID), bomb])),
              reply(DATA_ID, bomb),
              data(DATA_ID, 'good', true),
              data(ERROR_ID, '', true),
            ]),
          ),
        );
    });
    const stream = open(connectionsTo(far, 'spdy'));
    expect(await stream.over).toBe('ended');
    expect(stream.text()).toBe('good');
  });

  it('withstands floods of pings, pongs and frames of unknown streams', async () => {
    const flood = Buffer.concat(
      Array.from({ length: 2_000 }, (_, index) => [
        pingFrame(index),
        data(99, 'x'),
        frame(4, word(0)),
        reply(77),
      ]).flat(),
    );
    const far = await farEnd((end) => {
      end.socket.write(flood);
      goodSpdy(end);
    });
    const stream = open(connectionsTo(far, 'spdy'));
    expect(await stream.over).toBe('ended');
    expect(stream.text()).toBe('good');
  });

  it('is closed when too much arrives for a client that has disconnected', async () => {
    let isClosed = (): void => undefined;
    const closed = new Promise<void>((resolve) => {
      isClosed = resolve;
    });
    const far = await farEnd((end, index) => {
      if (index > 1) return;
      end.socket.on('close', isClosed);
      const start = Buffer.concat([reply(ERROR_ID), reply(DATA_ID), data(DATA_ID, 'first')]);
      void end.until((received) => received.length > 0).then(() => end.socket.write(start));
      const more = (): void => {
        while (!end.socket.destroyed && end.socket.write(data(DATA_ID, Buffer.alloc(65_536))));
      };
      end.socket.on('drain', more);
      void end.until((received) => received.includes(data(DATA_ID, '', true))).then(more);
    });
    const stream = open(connectionsTo(far, 'spdy'));
    await eventually(() => stream.text() !== '');
    stream.destroy();
    await closed;
  });

  it("delivers the node's message from the error stream, also after the end of the data", async () => {
    const said = 'error forwarding port 80: connection reset by peer';
    const far = await farEnd((end) => {
      void end
        .until((received) => received.length > 0)
        .then(() =>
          end.socket.write(
            Buffer.concat([
              reply(ERROR_ID),
              reply(DATA_ID),
              data(DATA_ID, 'half', true),
              data(ERROR_ID, said),
              data(ERROR_ID, '', true),
            ]),
          ),
        );
    });
    const stream = open(connectionsTo(far, 'spdy'));
    expect(await stream.over).toEqual({ code: 'broken', text: said });
  });

  it('carries one stream at a time, and the next one once the node has confirmed the end of the last', async () => {
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      if (ends.length === 1) goodSpdy(end);
    });
    const streams = (end: Far | undefined): number =>
      end ? end.received().toString('latin1').split('\x80\x03\x00\x01').length - 1 : 0;
    const connections = connectionsTo(far, 'spdy');
    const first = open(connections);
    await first.opened;
    first.write(Buffer.from('one'));
    first.write(Buffer.from('two'));
    expect(await first.over).toBe('ended');
    await ends[0]?.until((received) => received.includes(pingFrame(1)));
    const second = open(connections);
    await second.opened;
    await eventually(() => streams(ends[1]) > 0);
    expect(streams(ends[0])).toBe(2);
    ends[0]?.socket.write(pingFrame(1));
    while (streams(ends[0]) === 2) {
      const next = open(connections);
      await next.opened;
      await new Promise((resolve) => setImmediate(resolve));
      next.destroy();
    }
  });
});

describe('a SPDY connection whose client disconnected before the pod had read everything', () => {
  async function leave(count = 1) {
    const clock = virtualClock();
    const ends: Far[] = [];
    const dialer = await farEnd((end) => {
      ends.push(end);
      const replies = Buffer.concat([reply(ERROR_ID), reply(DATA_ID)]);
      void end.until((received) => received.length > 0).then(() => end.socket.write(replies));
    });
    const connections = connectionsTo(dialer, 'spdy', clock);
    const streams = Array.from({ length: count }, () => open(connections));
    await Promise.all(streams.map(({ opened }) => opened));
    for (const stream of streams) {
      stream.write(Buffer.from('one'));
      stream.write(Buffer.from('two'));
      stream.destroy();
    }
    const [end] = ends;
    if (!end) throw new Error('no connection');
    const closed = new Promise<string>((resolve) => end.socket.on('close', () => resolve('closed')));
    await end.until((received) => received.includes(pingFrame(1)));
    /** Whether the connection still answers a ping of the server, which has an even id. */
    const echo = (id: number): Promise<string> => {
      end.socket.write(pingFrame(id));
      return Promise.race([closed, end.until((bytes) => bytes.includes(pingFrame(id))).then(() => 'open')]);
    };
    return { clock, connections, ends, end, closed, echo };
  }

  it('remains open, serves nobody else, and is closed when the node is done', async () => {
    const { clock, connections, ends, end, closed, echo } = await leave();
    await clock.advance(TETHER.drainCheckTimeoutMs);
    expect(await echo(2)).toBe('open');
    // Also beyond the next check of all connections.
    await clock.advance(TETHER.streamCloseTimeoutMs - TETHER.drainCheckTimeoutMs - 1);
    expect(await echo(4)).toBe('open');
    end.socket.write(pingFrame(1));
    expect(await echo(6)).toBe('open');
    await open(connections).opened;
    expect(ends.length).toBeGreaterThan(1);
    expect(end.received().toString('latin1').split('\x80\x03\x00\x01')).toHaveLength(3);
    end.socket.write(Buffer.concat([data(DATA_ID, '', true), data(ERROR_ID, '', true)]));
    expect(await closed).toBe('closed');
  });

  it('serves others when the node has shown that it is done, also after this process stood still', async () => {
    const { clock, connections, end, echo } = await leave();
    clock.standStill(TETHER.drainCheckTimeoutMs);
    await clock.advance(0);
    end.socket.write(pingFrame(1));
    expect(await echo(2)).toBe('open');
    await open(connections).opened;
    await end.until((received) => received.toString('latin1').split('\x80\x03\x00\x01').length === 5);
  });

  it('is kept for a slow pod while it makes progress, and closed after a long silence', async () => {
    const { clock, connections, closed, echo } = await leave();
    await clock.advance(TETHER.stuckTimeoutMs / 2);
    // Time in which this process did not run is no silence of the pod.
    clock.standStill(TETHER.stuckTimeoutMs);
    await clock.advance(TETHER.stuckTimeoutMs / 2 - 1);
    expect(await echo(2)).toBe('open');
    await clock.advance(TETHER.stuckTimeoutMs - TETHER.streamCloseTimeoutMs);
    expect(await echo(4)).toBe('open');
    await clock.advance(TETHER.stuckTimeoutMs + TETHER.streamCloseTimeoutMs);
    expect(await closed).toBe('closed');
    expect(connections.isEmpty).toBe(true);
  });

  it('is closed when the pod has everything and the node never finishes', async () => {
    const { clock, end, closed, echo } = await leave();
    end.socket.write(pingFrame(1));
    expect(await echo(2)).toBe('open');
    await clock.advance(TETHER.streamCloseTimeoutMs);
    expect(await closed).toBe('closed');
  });

  it('is closed beyond the limit of such connections', async () => {
    const count = TETHER.maxStuckConnections + 4;
    const { clock, ends } = await leave(count);
    const stuck = (): Far[] => ends.filter((end) => end.received().includes('two'));
    while (stuck().length < count) await new Promise((resolve) => setImmediate(resolve));
    const watched = stuck().map(({ socket, until }) => {
      const closed = new Promise<boolean>((resolve) => socket.on('close', () => resolve(false)));
      const echoed = until((bytes) => bytes.includes(pingFrame(2))).then(() => true);
      return { socket, isOpen: Promise.race([closed, echoed]) };
    });
    await clock.advance(TETHER.streamCloseTimeoutMs);
    for (const { socket } of watched) socket.write(pingFrame(2));
    const isOpen = await Promise.all(watched.map((end) => end.isOpen));
    expect(isOpen.filter(Boolean)).toHaveLength(TETHER.maxStuckConnections);
  });
});

describe('the response to the request for a forward', () => {
  const answers: [name: string, head: string, code: string][] = [
    [
      'a redirect',
      'HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n',
      'unsupported',
    ],
    ['garbage', '\0\0\0\0garbage\r\n\r\n', 'lost'],
    ['no such pod', status(404, 'pods "p" not found'), 'absent'],
    ['no kubelet', status(500, 'error dialing backend'), 'unreachable'],
  ];
  it.each(answers)('may be %s', async (_, head, code) => {
    const far = await farEnd(
      () => undefined,
      () => head,
    );
    expect(await open(connectionsTo(far, 'spdy')).over).toMatchObject({ code });
  });

  it('may never end', async () => {
    const far = await farEnd(
      (end) => {
        const more = (): void => {
          while (!end.socket.destroyed && end.socket.write(Buffer.alloc(65_536, 65)));
        };
        end.socket.on('drain', more);
        more();
      },
      () => 'HTTP/1.1 200 OK\r\n\r\n',
    );
    expect(await open(connectionsTo(far, 'spdy')).over).toMatchObject({ code: 'unsupported' });
  });

  it('may be missing while the server restarts, and SPDY is used afterwards', async () => {
    let server: 'ends' | 'gone' | 'begins' | 'serves' = 'ends';
    const far = await farEnd(goodSpdy, (key, protocol) =>
      server === 'serves' ? upgradeTo(key, protocol) : null,
    );
    const connect = far.connect.bind(far);
    far.connect = async (signal) => {
      if (server === 'gone') throw new Error('connect ECONNREFUSED');
      return connect(signal);
    };
    const connections = connectionsTo(far, 'spdy');
    // One restart cuts off all connections under way at the same time.
    const both = [open(connections), open(connections)];
    for (const { over } of both) expect(await over).toMatchObject({ code: 'lost' });
    server = 'gone';
    const refusal = async () => (await open(connections).over) as ForwardError;
    while ((await refusal()).code !== 'unreachable');
    server = 'begins';
    expect(await refusal()).toMatchObject({ code: 'lost' });
    server = 'serves';
    const next = open(connections);
    expect(await next.over).toBe('ended');
    expect(next.text()).toBe('good');
  });
});

function status(code: number, text: string): string {
  const body = JSON.stringify({ kind: 'Status', code, message: text });
  return `HTTP/1.1 ${code} Some\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

describe('a WebSocket', () => {
  const wrong: [name: string, bytes: Buffer][] = [
    ['an empty message', message('')],
    ['channel 255', message(Buffer.from([255, 1]))],
    ['another port', message(Buffer.from([0, 81, 0]))],
    [
      'another port, byte by byte',
      Buffer.concat([message(Buffer.from([0, 80])), message(Buffer.from([0, 1]))]),
    ],
    ['text', message('\0\0\0', 1)],
    ['a fragment without a beginning', message('x', 0)],
    ['a masked frame', Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])],
    ['reserved bits', Buffer.from([0xf2, 1, 0])],
    ['a message of 4 GiB', Buffer.from([0x82, 127, 0, 0, 0, 1, 0, 0, 0, 0])],
  ];
  it.each(wrong)('ends at %s, and the next connection works', (_, bytes) => endsAt(bytes, 'websocket'));

  it('prepares the connection for the next one as soon as it is open itself', async () => {
    const far = await farEnd(goodWebSocket);
    let dials = 0;
    const connect = far.connect.bind(far);
    far.connect = (signal) => {
      dials += 1;
      return connect(signal);
    };
    const connections = connectionsTo(far, 'websocket');
    for (const made of [2, 3]) {
      const { opened, over } = open(connections);
      await opened;
      expect(dials).toBe(made);
      expect(await over).toBe('ended');
    }
  });

  it('reads the port and the data however they are split or joined, and answers no ping', async () => {
    const parts = [
      message(Buffer.from([0, 80])),
      message('ping', 9),
      message(Buffer.from([0])),
      message(Buffer.from([0, 0])),
      message(Buffer.from([1, 80, 0])),
      message('\0go'),
      message('\0o', 2, false),
      message('d', 0),
      message(Buffer.from([3, 232]), 8),
    ];
    let received: Buffer = Buffer.alloc(0);
    const far = await farEnd((end) => {
      for (const part of parts) end.socket.write(part);
      end.socket.on('close', () => {
        received = end.received();
      });
    });
    const stream = open(connectionsTo(far, 'websocket'));
    expect(await stream.over).toBe('ended');
    expect(stream.text()).toBe('good');
    await eventually(() => received.length > 0);
    // Opcodes of the sent frames: a close, no pong.
    expect((received[0] ?? 0) & 0x0f).toBe(8);
  });
});

describe('the reader of frames', () => {
  const record = () => {
    const seen: unknown[] = [];
    const reader = new FrameReader({
      onData: (id, bytes) => {
        const last = seen.at(-1);
        if (Array.isArray(last) && last[0] === 'data' && last[1] === id) last[2] += bytes.toString('hex');
        else seen.push(['data', id, bytes.toString('hex')]);
      },
      onFin: (id) => seen.push(['fin', id]),
      onReply: (id) => seen.push(['replied', id]),
      onReset: (id) => seen.push(['reset', id]),
      onPing: (id) => seen.push(['ping', id]),
      onGoAway: () => seen.push(['goAway']),
    });
    return { seen, reader };
  };
  const id = fc.integer({ min: 1, max: 2 ** 31 - 1 });
  const anyFrame = fc.oneof(
    fc
      .tuple(id, fc.uint8Array({ minLength: 1, maxLength: 300 }), fc.boolean())
      .map(([one, bytes, fin]) => data(one, Buffer.from(bytes), fin)),
    id.map((one) => pingFrame(one)),
    id.map((one) => reply(one)),
    id.map((one) => frame(3, Buffer.concat([word(one), word(5)]))),
    fc.constant(frame(7, Buffer.alloc(8))),
    fc.constant(frame(4, Buffer.alloc(12))),
  );

  it('gives the same events however the bytes are split', () => {
    fc.assert(
      fc.property(
        fc.array(anyFrame, { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 50 })),
        (frames, cuts) => {
          const bytes = Buffer.concat(frames);
          const whole = record();
          expect(whole.reader.push(bytes)).toBeNull();
          const cut = record();
          let at = 0;
          for (const size of [...cuts, bytes.length]) {
            expect(cut.reader.push(bytes.subarray(at, at + size))).toBeNull();
            at += size;
          }
          expect(cut.seen).toEqual(whole.seen);
        },
      ),
    );
  });

  it('never throws, whatever it reads', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(anyFrame, fc.uint8Array({ maxLength: 40 })), { maxLength: 20 }),
        (parts) => {
          const { reader } = record();
          for (const part of parts) if (reader.push(Buffer.from(part)) !== null) return;
        },
      ),
    );
  });
});
