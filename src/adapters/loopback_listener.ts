// Listeners on loopback: 127.0.0.1 and ::1 with one port, because `localhost` may resolve to either.
import { createServer, type Server, type Socket } from 'node:net';
import { DESCRIPTORS } from '../settings/limits.ts';
import { areDescriptorsUsed } from './process/open_files_limit.ts';

/** Why listening on an address failed: an errno name such as EADDRINUSE. */
export interface ListenRefusal {
  refused: string;
}

/** The refusal of one of several addresses. */
export interface AddressRefusal extends ListenRefusal {
  address: string;
}

/** Listens on one address; port 0: any free port. */
type Listen = (host: string, port: number) => Promise<{ port: number } | ListenRefusal>;

export interface LoopbackListener {
  readonly port: number;
  /** The descriptors of its sockets, valid until it is closed. */
  readonly descriptors: readonly number[];
  /** Resolves when the port is free again. Connections that were accepted go on. */
  close(): Promise<void>;
}

/** The machine has no such address. */
const ABSENT_ADDRESS: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'EAFNOSUPPORT']);
/** Another program has the port, or it is privileged. */
const PORT_TAKEN: ReadonlySet<string> = new Set(['EADDRINUSE', 'EACCES']);
/** The addresses that `localhost` may resolve to besides ::1. */
const IPV4_OF_LOCALHOST: ReadonlySet<string> = new Set(['127.0.0.1', '0.0.0.0']);
/** Attempts to find a port that is free on both addresses. */
const MAX_ATTEMPTS = 20;

/**
 * Listens on `first`, an IPv4 address, and on ::1 with the same port; 0: any port free on both. ::1 is
 * skipped only if the machine has none, because a program on it would get what is meant for `localhost`.
 * `undo` stops listening on `first`.
 */
export async function listenWithIpv6Loopback(
  first: string,
  port: number,
  listen: Listen,
  undo: () => void,
): Promise<{ port: number } | AddressRefusal> {
  for (let attempt = 1; ; attempt += 1) {
    const one = await listen(first, port);
    if ('refused' in one) return { ...one, address: first };
    const other = await listen('::1', one.port);
    if (!('refused' in other) || ABSENT_ADDRESS.has(other.refused)) return one;
    undo();
    if (port !== 0 || other.refused !== 'EADDRINUSE' || attempt === MAX_ATTEMPTS)
      return { ...other, address: '::1' };
  }
}

/**
 * Listens on `bind`. With 127.0.0.1 and 0.0.0.0 that includes ::1, because another user could otherwise take
 * `localhost` there. `undo` stops listening on `bind`.
 */
export const listenOnBind = (
  bind: string,
  port: number,
  listen: Listen,
  undo: () => void,
): Promise<{ port: number } | AddressRefusal> =>
  IPV4_OF_LOCALHOST.has(bind)
    ? listenWithIpv6Loopback(bind, port, listen, undo)
    : listen(bind, port).then((result) => ('refused' in result ? { ...result, address: bind } : result));

/** Why nothing can listen on a port of `bind`, found by listening for a moment; null: it can. */
export async function portRefusal(bind: string, port: number): Promise<AddressRefusal | null> {
  const servers: Server[] = [];
  const listen: Listen = async (host, at) => {
    const server = createServer((socket) => socket.destroy());
    const result = await listenOn(server, host, at);
    if (!('refused' in result)) servers.push(server);
    return result;
  };
  const result = await listenOnBind(bind, port, listen, () => {});
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return 'refused' in result ? result : null;
}

/** Rejects with the system's error if it concerns neither the port nor the address. */
function listenOn(server: Server, host: string, port: number): Promise<{ port: number } | ListenRefusal> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const { code = '' } = error;
      if (PORT_TAKEN.has(code) || ABSENT_ADDRESS.has(code)) resolve({ refused: code });
      else reject(error);
    };
    server.once('error', failed);
    server.listen({ host, port, backlog: 511, exclusive: true }, () => {
      server.off('error', failed);
      // A failed accept (no descriptors left) concerns one connection only.
      server.on('error', () => undefined);
      const address = server.address();
      resolve({ port: typeof address === 'object' && address ? address.port : port });
    });
  });
}

/** The descriptor of a listening server, which Node exposes only on its handle. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & { _handle?: { fd: number } };
  if (!handle) throw new TypeError('the server does not listen');
  return handle.fd;
}

/**
 * Listens on 127.0.0.1 and ::1; port 0: any port free on both. Sockets stay open for writing when their
 * client has half-closed. They are read as soon as there is a listener for their data or, with `paused`, once
 * they are resumed. A connection that arrives when descriptors are short is reset. Rejects with the system's
 * error if it does not concern the port.
 */
export async function listenOnLoopback(
  port: number,
  onConnection: (socket: Socket) => void,
  { paused = false } = {},
): Promise<LoopbackListener | AddressRefusal> {
  const servers: Server[] = [];
  const close = async (): Promise<void> => {
    const closed = servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve)));
    await Promise.all(closed);
  };
  const accept = (socket: Socket): void => {
    if (areDescriptorsUsed(DESCRIPTORS.acceptForwarded))
      socket.on('error', () => undefined).resetAndDestroy();
    else onConnection(socket);
  };
  const listen: Listen = async (host, at) => {
    const server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: paused }, accept);
    const result = await listenOn(server, host, at);
    if (!('refused' in result)) servers.push(server);
    return result;
  };
  const result = await listenWithIpv6Loopback('127.0.0.1', port, listen, () => void close());
  if ('refused' in result) return result;
  return { port: result.port, descriptors: servers.map(descriptorOf), close };
}
