// A way to a TCP port of this machine that a test cuts off.
import { connect, createServer, type Socket } from 'node:net';

export interface TcpWay {
  port: number;
  /** Ends every connection on it. */
  cut(): void;
  close(): void;
}

/**
 * Each connection leads to the port that `to` returns at that moment. `filter` sees what comes from there, and nothing
 * of what goes there; null: nothing passes, in no direction.
 */
export async function tcpWay(to: () => number, filter: (chunk: Buffer) => Buffer | null): Promise<TcpWay> {
  const sockets = new Set<Socket>();
  const way = createServer((client) => {
    const there = connect(to(), '127.0.0.1');
    for (const socket of [client, there])
      sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
    client.on('data', (chunk) => filter(Buffer.alloc(0)) && there.write(chunk));
    there.on('data', (chunk) => {
      const passed = filter(chunk);
      if (passed) client.write(passed);
    });
    client.on('close', () => there.destroy());
    there.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => way.listen(0, '127.0.0.1', resolve));
  const address = way.address();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    cut,
    close() {
      cut();
      way.close();
    },
  };
}
