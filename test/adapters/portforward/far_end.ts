// The far end of a forward on the wire, to send by hand what a real server never sends. Ordinary traffic is
// tested with a real server.
import { createHash } from 'node:crypto';
import { connect, createServer, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { ClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import { PodConnections } from '../../../src/adapters/portforward/pod_connections.ts';
import type { SpdyDialer } from '../../../src/adapters/portforward/spdy_dialer.ts';
import { dialSpdyTunnel } from '../../../src/adapters/portforward/spdy_tunnel.ts';
import type {
  ForwardError,
  ForwardStream,
  ForwardStreamEvents,
} from '../../../src/adapters/portforward/transport.ts';
import { ClusterTransports, SPDY_DIALERS } from '../../../src/adapters/portforward/transports.ts';
import type { Clock } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { afterThisTest } from '../../kit/actors.ts';

/** The ids of the first stream of a connection. */
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

/** A message of a WebSocket server, of up to 65,535 bytes. */
export const message = (payload: Buffer | string, opcode = 2, fin = true): Buffer => {
  const bytes = Buffer.from(payload);
  const first = (fin ? 0x80 : 0) | opcode;
  const { length } = bytes;
  const head = Buffer.from(length < 126 ? [first, length] : [first, 126, length >> 8, length & 255]);
  return Buffer.concat([head, bytes]);
};

/** The messages of a WebSocket client, complete ones only. */
export function messagesIn(received: Buffer): { opcode: number; payload: Buffer }[] {
  const found: { opcode: number; payload: Buffer }[] = [];
  for (let at = 0; at + 6 <= received.length; ) {
    const short = (received[at + 1] ?? 0) & 0x7f;
    const wide = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (at + 6 + wide > received.length) break;
    const length =
      wide === 0 ? short : received.readUIntBE(at + 2 + Math.max(0, wide - 6), Math.min(wide, 6));
    const mask = received.subarray(at + 2 + wide, at + 6 + wide);
    const end = at + 6 + wide + length;
    if (end > received.length) break;
    const payload = received.subarray(end - length, end).map((byte, index) => byte ^ (mask[index % 4] ?? 0));
    found.push({ opcode: (received[at] ?? 0) & 15, payload: Buffer.from(payload) });
    at = end;
  }
  return found;
}

export interface Far {
  socket: Socket;
  /** The path of the request: it names the pod. */
  path: string;
  /** Everything received since the upgrade. */
  received(): Buffer;
  until(fits: (received: Buffer) => boolean): Promise<void>;
}

/**
 * Accepts connections, upgrades each to the requested protocol, and passes it to `serve`. `head`: another
 * response instead; null cuts the connection.
 */
export async function farEnd(
  serve: (far: Far, index: number) => void,
  head: (
    webSocketKey: string | undefined,
    protocol: string | undefined,
    path: string,
  ) => string | null = upgradeTo,
): Promise<ClusterDialer> {
  const sockets = new Set<Socket>();
  let index = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    let received = Buffer.alloc(0);
    let isUpgraded = false;
    const looks = new Set<() => void>();
    const far: Far = {
      socket,
      path: '',
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
        const request = received.toString('latin1', 0, end);
        far.path = request.split(' ')[1] ?? '';
        const header = (name: string) => new RegExp(`${name}: (\\S+)`, 'i').exec(request)?.[1];
        received = received.subarray(end + 4);
        const answer = head(header('sec-websocket-key'), header('sec-websocket-protocol'), far.path);
        if (answer === null) {
          socket.resetAndDestroy();
          return;
        }
        socket.write(answer, 'latin1');
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
    redact: (text) => text,
    connect: () =>
      new Promise((resolve, reject) => {
        const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () =>
          resolve(socket as TLSSocket),
        );
        socket.on('error', reject);
      }),
  };
}

/** The response that grants a request: a WebSocket with its key, of `protocol`, else SPDY. */
export function upgradeTo(webSocketKey: string | undefined, protocol: string | undefined): string {
  if (webSocketKey === undefined)
    return 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n';
  const accept = createHash('sha1')
    .update(`${webSocketKey}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  return `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${protocol}\r\n\r\n`;
}

/** The transports to try: all, which means SPDY where it works, or only some. */
const TRANSPORTS: Record<'spdy' | 'tunnel' | 'websocket', readonly SpdyDialer[]> = {
  spdy: SPDY_DIALERS,
  tunnel: [dialSpdyTunnel],
  websocket: [],
};

export const connectionsTo = (
  dialer: ClusterDialer,
  transport: keyof typeof TRANSPORTS,
  clock: Clock = systemClock,
): PodConnections => {
  const cluster = new ClusterTransports(dialer, clock, TRANSPORTS[transport]);
  const connections = new PodConnections(cluster, { namespace: 'n', name: 'p' });
  afterThisTest(() => {
    connections.close();
    cluster.close();
  });
  return connections;
};

export interface Heard extends ForwardStream {
  text(): string;
  opened: Promise<void>;
  /** `ended`, or the error. */
  over: Promise<'ended' | ForwardError>;
  drained(): number;
}

/** Opens a stream and records its events. */
export function open(connections: PodConnections, port = 80): Heard {
  let text = '';
  let drains = 0;
  let opened = (): void => undefined;
  let over = (_: 'ended' | ForwardError): void => undefined;
  let stream: ForwardStream | null = null;
  const isOpened = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const isOver = new Promise<'ended' | ForwardError>((resolve) => {
    over = resolve;
  });
  const events: ForwardStreamEvents = {
    onOpened: (made) => {
      stream = made;
      opened();
    },
    onData: (bytes) => {
      text += bytes.toString('latin1');
    },
    onDrained: () => {
      drains += 1;
    },
    onEnded: () => over('ended'),
    onFailed: over,
  };
  const request = connections.open(port, events);
  const openStream = (): ForwardStream => {
    if (!stream) throw new Error('not opened');
    return stream;
  };
  return {
    write: (bytes) => openStream().write(bytes),
    end: () => openStream().end(),
    pause: () => openStream().pause(),
    resume: () => openStream().resume(),
    destroy: () => request.destroy(),
    text: () => text,
    opened: isOpened,
    over: isOver,
    drained: () => drains,
  };
}
