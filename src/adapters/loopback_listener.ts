// Listeners on loopback.
import { createServer, type Server, type Socket } from 'node:net';

export interface LoopbackListener {
  readonly port: number;
  /** Resolves when the port is free again. Connections that were accepted go on. */
  close(): Promise<void>;
}

/** Resolves with true when it listens, with false if the port is taken or the machine has no such address. */
function tryListen(server: Server, host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const isTaken = error.code === 'EADDRINUSE' || error.code === 'EACCES';
      const isAbsent = error.code === 'EADDRNOTAVAIL' || error.code === 'EAFNOSUPPORT';
      if (isTaken || isAbsent) resolve(false);
      else reject(error);
    };
    server.once('error', failed);
    server.listen({ host, port, backlog: 511, exclusive: true }, () => {
      server.off('error', failed);
      // A failed accept (no descriptors left) concerns one connection only.
      server.on('error', () => undefined);
      resolve(true);
    });
  });
}

/**
 * Listens on 127.0.0.1 and, if `port` is free there, on ::1. Resolves with null if `port` is taken on
 * 127.0.0.1. Sockets stay open for writing when their client has half-closed, and are read as soon as there
 * is a listener for their data.
 */
export async function listenOnLoopback(
  port: number,
  onConnection: (socket: Socket) => void,
): Promise<LoopbackListener | null> {
  const make = (): Server => createServer({ allowHalfOpen: true, noDelay: true }, onConnection);
  const first = make();
  if (!(await tryListen(first, '127.0.0.1', port))) return null;
  const second = make();
  const servers = (await tryListen(second, '::1', port)) ? [first, second] : [first];
  return {
    port,
    close: async () => {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}
