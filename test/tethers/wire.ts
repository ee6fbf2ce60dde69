// The far end of a forward on the wire, to say by hand what a real server never says. What the real one says is tested
// with the real one.
import { createHash } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Door } from '../../src/adapters/dial.ts';
import type { Setback, Stream, StreamEvents } from '../../src/adapters/portforward.ts';
import { ForwardCluster, PodLines } from '../../src/adapters/portforward_pool.ts';
import { afterThisTest } from '../kit.ts';

/** The ids of the first stream of a line. */
export const ERROR_ID = 1;
export const DATA_ID = 5;

export const frame = (type: number, payload: Buffer, flags = 0): Buffer => {
  const head = Buffer.from([0x80, 3, 0, type, flags, 0, 0, 0]);
  head.writeUIntBE(payload.length, 5, 3);
  return Buffer.concat([head, payload]);
};
export const word = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};
export const data = (id: number, payload: Buffer | string, fin = false): Buffer => {
  const bytes = Buffer.from(payload);
  const head = Buffer.concat([word(id), Buffer.from([fin ? 1 : 0, 0, 0, 0])]);
  head.writeUIntBE(bytes.length, 5, 3);
  return Buffer.concat([head, bytes]);
};
export const reply = (id: number, block = Buffer.alloc(4)): Buffer =>
  frame(2, Buffer.concat([word(id), block]));

/** A message of a WebSocket server, of up to 125 bytes. */
export const message = (payload: Buffer | string, opcode = 2, fin = true): Buffer => {
  const bytes = Buffer.from(payload);
  const head = Buffer.from([(fin ? 0x80 : 0) | opcode, bytes.length]);
  return Buffer.concat([head, bytes]);
};

export interface Far {
  socket: Socket;
  /** Everything that has come since the upgrade. */
  received(): Buffer;
  until(fits: (received: Buffer) => boolean): Promise<void>;
}

/**
 * Accepts connections, upgrades each to whatever was asked for, and hands it to `serve`. `head`: another answer instead;
 * null cuts the connection off.
 */
export async function farEnd(
  serve: (far: Far, index: number) => void,
  head: (webSocketKey: string | undefined) => string | null = upgradeTo,
): Promise<Door> {
  const sockets = new Set<Socket>();
  let index = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let received = Buffer.alloc(0);
    let isUpgraded = false;
    const looks = new Set<() => void>();
    const far: Far = {
      socket,
      received: () => received,
      until: (fits) =>
        new Promise((resolve) => {
          const look = (): void => {
            if (!fits(received)) return;
            looks.delete(look);
            resolve();
          };
          looks.add(look);
          look();
        }),
    };
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      const end = received.indexOf('\r\n\r\n');
      if (!isUpgraded && end >= 0) {
        isUpgraded = true;
        const key = /sec-websocket-key: (\S+)/i.exec(received.toString('latin1'))?.[1];
        received = received.subarray(end + 4);
        const answer = head(key);
        if (answer === null) {
          socket.resetAndDestroy();
          return;
        }
        socket.write(answer);
        index += 1;
        serve(far, index);
      }
      for (const look of looks) look();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterThisTest(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    host: 'far',
    prefix: '',
    headers: () => ({}),
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect(port, '127.0.0.1', () => resolve(socket as TLSSocket)).on('error', reject);
      }),
  };
}

/** The answer that gives what was asked for: a WebSocket with its key, else SPDY. */
export function upgradeTo(webSocketKey: string | undefined): string {
  if (webSocketKey === undefined)
    return 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
  const accept = createHash('sha1')
    .update(`${webSocketKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n`;
}

export const linesTo = (door: Door, way: 'spdy' | 'websocket'): PodLines => {
  const cluster = new ForwardCluster(door);
  if (way === 'websocket') cluster.noSpdyUntil = Number.POSITIVE_INFINITY;
  const lines = new PodLines(cluster, { namespace: 'n', name: 'p' });
  afterThisTest(() => {
    lines.close();
    cluster.close();
  });
  return lines;
};

export interface Heard extends Stream {
  text(): string;
  opened: Promise<void>;
  /** `ended`, or what went wrong. */
  over: Promise<'ended' | Setback>;
  drained(): number;
}

/** Opens a stream and keeps what it tells. */
export function open(lines: PodLines, port = 80): Heard {
  let text = '';
  let drains = 0;
  let opened = (): void => undefined;
  let over = (_: 'ended' | Setback): void => undefined;
  const isOpened = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const isOver = new Promise<'ended' | Setback>((resolve) => {
    over = resolve;
  });
  const events: StreamEvents = {
    opened,
    data: (bytes) => {
      text += bytes.toString('latin1');
    },
    drained: () => {
      drains += 1;
    },
    ended: () => over('ended'),
    failed: over,
  };
  const stream = lines.open(port, events);
  return {
    write: (bytes) => stream.write(bytes),
    end: () => stream.end(),
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    leave: () => stream.leave(),
    text: () => text,
    opened: isOpened,
    over: isOver,
    drained: () => drains,
  };
}
