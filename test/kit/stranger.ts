// A program of somebody else that has taken the port of a daemon: it answers as it likes, and keeps every
// byte that it is sent.
import net from 'node:net';
import { networkInterfaces } from 'node:os';

export interface StrangerAnswer {
  status: number;
  body: string;
}

export interface Stranger {
  /** Everything received so far. */
  heard(): string;
  /** Gives the port back. */
  leave(): Promise<void>;
}

const hasIpv6 = (): boolean =>
  Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

/** Takes `port` on every loopback address; `answer` gets the path of each request. */
export async function takePort(
  port: number,
  answer: (path: string) => StrangerAnswer | Promise<StrangerAnswer>,
): Promise<Stranger> {
  let heard = '';
  const sockets = new Set<net.Socket>();
  const onConnection = (socket: net.Socket): void => {
    sockets.add(socket.setEncoding('latin1'));
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', async (text: string) => {
      heard += text;
      const [, path] = /^[A-Z]+ (\S+) HTTP/.exec(text) ?? [];
      if (path === undefined) return;
      const { status, body } = await answer(path);
      const head = `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
      socket.write(`${head}\r\n\r\n${body}`);
    });
  };
  const servers = await Promise.all(
    ['127.0.0.1', ...(hasIpv6() ? ['::1'] : [])].map(async (host) => {
      const server = net.createServer(onConnection);
      await new Promise<void>((resolve, reject) => {
        server.on('error', reject);
        server.listen(port, host, resolve);
      });
      return server;
    }),
  );
  return {
    heard: () => heard,
    leave: async () => {
      for (const socket of sockets) socket.destroy();
      await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
    },
  };
}
