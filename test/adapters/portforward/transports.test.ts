// Which transport to a pod is used and remembered, and what an API server may and may not send in a tunnel.
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/runtime/actor.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { MIB } from '../../../src/settings/limits.ts';
import { afterThisTest, virtualClock } from '../../kit/actors.ts';
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
  messagesIn,
  open,
  reply,
  upgradeTo,
} from './far_end.ts';

const PROTOCOL = 'SPDY/3.1+portforward.k8s.io';
const WHOLE = Buffer.concat([
  reply(ERROR_ID),
  reply(DATA_ID),
  data(DATA_ID, 'good', true),
  data(ERROR_ID, '', true),
  // Every connection carries one stream.
  frame(7, Buffer.alloc(8)),
]);
const answerWith = (far: Far, bytes: Buffer): void =>
  void far.until((received) => received.length > 0).then(() => far.socket.write(bytes));
const CLOSE = message(Buffer.from([3, 232]), 8);

describe('the transport to a pod', () => {
  const status = (code: number, text: string): string => {
    const body = JSON.stringify({ kind: 'Status', code, message: text });
    return `HTTP/1.1 ${code} Some\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  type Asked = 'spdy' | 'tunnel' | 'websocket';
  type Answer = string | null | ((key: string | undefined) => string);
  /** The response to each transport: the proper one, a cut, or a text. */
  async function server(answers: Partial<Record<Asked, Answer>>, clock?: Clock) {
    const asked: Asked[] = [];
    const ports = [0, 1].map((channel) => message(Buffer.from([channel, 80, 0])));
    const far = await farEnd(
      (end) => {
        const transport = asked.at(-1) ?? 'spdy';
        if (typeof answers[transport] === 'string') end.socket.end();
        else if (transport === 'websocket')
          end.socket.write(Buffer.concat([...ports, message('\0good'), CLOSE]));
        else answerWith(end, transport === 'tunnel' ? message(WHOLE) : WHOLE);
      },
      (key, protocol) => {
        const transport = key === undefined ? 'spdy' : protocol === PROTOCOL ? 'tunnel' : 'websocket';
        asked.push(transport);
        const answer = answers[transport];
        if (typeof answer === 'function') return answer(key);
        return answer === undefined ? upgradeTo(key, protocol) : answer;
      },
    );
    const connections = connectionsTo(far, 'spdy', clock);
    const served = async (): Promise<void> => {
      const stream = open(connections);
      expect(await stream.over).toBe('ended');
      expect(stream.text()).toBe('good');
    };
    return { asked, connections, served };
  }
  const barred = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 6\r\n\r\n<html>';
  const denied = status(403, 'cannot create resource "pods/portforward"');

  it('is SPDY if it works', async () => {
    const { asked, served } = await server({});
    await served();
    expect(new Set(asked)).toEqual(new Set(['spdy']));
  });

  it.each([
    ['a proxy bars it', barred],
    ['the account may not create forwards', denied],
  ])('is a tunnel from the first connection if %s', async (_, spdy) => {
    const { asked, served } = await server({ spdy });
    for (let round = 0; round < 3; round += 1) await served();
    expect(asked[0]).toBe('spdy');
    expect(new Set(asked.slice(1))).toEqual(new Set(['tunnel']));
  });

  const agreed =
    (header: string) =>
    (key: string | undefined): string =>
      upgradeTo(key, 'x').replace('Sec-WebSocket-Protocol: x\r\n', header);
  const strangers: [name: string, answer: Answer][] = [
    ['says what an old node says', 'HTTP/1.1 400 Bad\r\nContent-Length: 7\r\n\r\nno port'],
    ['refuses with nothing', 'HTTP/1.1 403 Forbidden\r\n\r\n'],
    ['agrees to nothing', agreed('')],
    ['agrees to something else', agreed('Sec-WebSocket-Protocol: v4.channel.k8s.io\r\n')],
    ['upgrades to something else', () => upgradeTo(undefined, undefined)],
    ['has another key', () => upgradeTo('another', PROTOCOL)],
    ['compresses', (key) => upgradeTo(key, `${PROTOCOL}\r\nSec-WebSocket-Extensions: permessage-deflate`)],
  ];
  it.each(strangers)(
    'is a WebSocket per connection if SPDY is blocked and the server %s',
    async (_, tunnel) => {
      const { asked, served } = await server({ spdy: barred, tunnel });
      for (let round = 0; round < 3; round += 1) await served();
      expect(asked).toEqual(['spdy', 'tunnel', 'websocket', 'websocket', 'websocket']);
    },
  );

  it('is the next one once a request has been cut off twice', async () => {
    const { asked, connections, served } = await server({ spdy: null, tunnel: null });
    for (let round = 0; round < 2; round += 1)
      expect(await open(connections).over).toMatchObject({ code: 'lost' });
    for (let round = 0; round < 2; round += 1) await served();
    expect(asked).toEqual(['spdy', 'spdy', 'tunnel', 'tunnel', 'websocket', 'websocket']);
  });

  it('is determined anew after some time', async () => {
    const clock = virtualClock();
    const answers: Partial<Record<Asked, Answer>> = { spdy: barred, tunnel: barred };
    const { asked, served } = await server(answers, clock);
    await served();
    delete answers.spdy;
    await clock.advance(TETHER.transportRetryMs - 1);
    await served();
    expect(asked).toEqual(['spdy', 'tunnel', 'websocket', 'websocket']);
    await clock.advance(2);
    await served();
    expect(new Set(asked.slice(4))).toEqual(new Set(['spdy']));
  });
});

describe('a tunnel', () => {
  it('carries SPDY however the messages are split, and answers pings', async () => {
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      const parts = [
        message(''),
        ...[...WHOLE.subarray(0, 30)].map((byte) => message(Buffer.from([byte]))),
        message('', 2, false),
        message(WHOLE.subarray(30, 40), 0, false),
        message('you', 9),
        message(WHOLE.subarray(40), 0),
      ];
      answerWith(end, Buffer.concat(parts));
    });
    const stream = open(connectionsTo(far, 'tunnel'));
    expect(await stream.over).toBe('ended');
    expect(stream.text()).toBe('good');
    const [end] = ends;
    const pongs = (received: Buffer) => messagesIn(received).filter(({ opcode }) => opcode === 10);
    await end?.until((received) => pongs(received).length > 0);
    expect(pongs(end?.received() ?? Buffer.alloc(0)).map(({ payload }) => payload.toString())).toEqual([
      'you',
    ]);
  });

  it('opens its streams in messages that form SPDY together', async () => {
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      answerWith(end, message(Buffer.concat([reply(ERROR_ID), reply(DATA_ID)])));
    });
    const stream = open(connectionsTo(far, 'tunnel'));
    await stream.opened;
    const bytes = Buffer.alloc(70_000, 'x');
    stream.write(bytes);
    stream.end();
    const spdy = (received: Buffer): Buffer =>
      Buffer.concat(messagesIn(received).flatMap(({ opcode, payload }) => (opcode === 2 ? [payload] : [])));
    const said = Buffer.concat([data(DATA_ID, bytes), data(DATA_ID, '', true)]);
    await ends[0]?.until((received) => spdy(received).includes(said));
  });

  const wrong: [name: string, bytes: Buffer][] = [
    ['a text message', message(WHOLE, 1)],
    ['a fragment without a beginning', message(WHOLE, 0)],
    ['another message within one', Buffer.concat([message('', 2, false), message(WHOLE)])],
    ['a masked frame', Buffer.from([0x82, 0x81, 1, 2, 3, 4, 5])],
    ['a compressed message', Buffer.concat([Buffer.from([0xc2]), message(WHOLE).subarray(1)])],
    ['a message of 2 MiB', Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0x20, 0, 0])],
    ['a ping in parts', message('', 9, false)],
    ['a close with a code that is none', message(Buffer.from([0, 1]), 8)],
    ['SPDY of another version', message(Buffer.from([0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]))],
    ['a stream of its own', message(frame(1, Buffer.alloc(10)))],
  ];
  it.each(wrong)('ends at %s, and the next connection is carried', async (_, bytes) => {
    const far = await farEnd((end, index) =>
      answerWith(end, index === 1 ? Buffer.concat([bytes, message(WHOLE)]) : message(WHOLE)),
    );
    const connections = connectionsTo(far, 'tunnel');
    expect(await open(connections).over).toMatchObject({
      code: expect.stringMatching(/hostile|lost/),
      text: expect.not.stringContaining('does not answer'),
    });
    const next = open(connections);
    expect(await next.over).toBe('ended');
    expect(next.text()).toBe('good');
  });

  it.each([
    ['is closed', (far: Far) => void far.socket.write(CLOSE)],
    ['is closed, and with it the connection', (far: Far) => void far.socket.end(CLOSE)],
    ['is cut', (far: Far) => void far.socket.resetAndDestroy()],
  ])('that %s is lost, but not the data before', async (_, end) => {
    const far = await farEnd((far) => {
      const start = Buffer.concat([reply(ERROR_ID), reply(DATA_ID), data(DATA_ID, 'half')]);
      answerWith(far, message(start));
      const isTaken = (received: Buffer): boolean =>
        messagesIn(received).some(({ payload }) => payload.includes(data(DATA_ID, 'go')));
      void far.until(isTaken).then(() => end(far));
    });
    const stream = open(connectionsTo(far, 'tunnel'));
    await stream.opened;
    await eventually(() => stream.text() !== '');
    stream.write(Buffer.from('go'));
    expect(await stream.over).toEqual({ code: 'lost', text: 'the API server closed the connection' });
    expect(stream.text()).toBe('half');
  });

  it('ends at an error right after the response to its request', async () => {
    const wrongAtOnce = message('wrong', 1).toString('latin1');
    const far = await farEnd(
      () => undefined,
      (key, protocol) => upgradeTo(key, protocol) + wrongAtOnce,
    );
    expect(await open(connectionsTo(far, 'tunnel')).over).toMatchObject({
      code: 'lost',
      text: expect.stringContaining('text message'),
    });
  });

  it('buffers no data that its user does not read, and delivers all of it later', async () => {
    const CHUNK = message(data(DATA_ID, Buffer.alloc(32_000, 'x')));
    const CHUNKS = 2_000;
    const ends: Far[] = [];
    const far = await farEnd((end) => void ends.push(end));
    const stream = open(connectionsTo(far, 'tunnel'));
    await stream.opened;
    const [end] = ends;
    if (!end) throw new Error('no tunnel');
    await end.until((received) => received.length > 0);
    const { socket } = end;
    socket.write(message(Buffer.concat([reply(ERROR_ID), reply(DATA_ID)])));
    stream.pause();
    for (let sent = 0; sent < CHUNKS; sent += 1) socket.write(CHUNK);
    socket.write(message(Buffer.concat([data(DATA_ID, '', true), data(ERROR_ID, '', true)])));
    // Both ends run here: when nothing has moved for many turns, nothing will.
    for (let still = 0, left = -1; still < 500; still = left === socket.writableLength ? still + 1 : 0) {
      left = socket.writableLength;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(socket.writableLength).toBeGreaterThan((CHUNKS * CHUNK.length) / 2);
    stream.resume();
    expect(await stream.over).toBe('ended');
    expect(stream.text().length).toBe(CHUNKS * 32_000);
  });

  it('reports when enough is queued for a server that reads nothing, and when it accepts more', async () => {
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      void end.until((received) => received.length > 0).then(() => end.socket.pause());
    });
    const stream = open(connectionsTo(far, 'tunnel'));
    await stream.opened;
    const [end] = ends;
    if (!end) throw new Error('no tunnel');
    await end.until((received) => received.length > 0);
    const bytes = Buffer.alloc(MIB);
    let written = 0;
    while (written < 64 && stream.write(bytes)) {
      written += 1;
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(written).toBeLessThan(64);
    expect(stream.drained()).toBe(0);
    end.socket.resume();
    await eventually(() => stream.drained() > 0);
  });

  it('keeps no pongs for a server that does not read them', async () => {
    const PINGS = 200_000;
    const ends: Far[] = [];
    const far = await farEnd((end) => {
      ends.push(end);
      void end
        .until((received) => received.length > 0)
        .then(() => {
          end.socket.pause();
          end.socket.write(Buffer.concat(Array(PINGS).fill(message(Buffer.alloc(125), 9))));
          end.socket.write(message(WHOLE));
        });
    });
    // The node answers after all these pings, which may take longer than it has on a busy machine.
    const stream = open(connectionsTo(far, 'tunnel', virtualClock()));
    expect(await stream.over).toBe('ended');
    const [end] = ends;
    if (!end) throw new Error('no tunnel');
    end.socket.resume();
    const last = setInterval(() => end.socket.write(message('last', 9)), 50);
    afterThisTest(() => clearInterval(last));
    const isLast = (received: Buffer): boolean =>
      messagesIn(received.subarray(-10)).some(({ opcode }) => opcode === 10);
    await end.until(isLast);
    expect(end.received().length).toBeLessThan((PINGS * 131) / 2);
  });
});
