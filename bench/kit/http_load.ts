// Sends requests to a server as fast as it answers them. The client uses plain sockets that stay open, so
// that it takes little processor time itself.
import net from 'node:net';

const KIB = 1_024;
const incoming = Buffer.allocUnsafeSlow(256 * KIB);
const OK = 'HTTP/1.1 2';

/**
 * Sends `request`, a complete GET, over `connections` connections for `ms`, with one request at a time on
 * each. Returns the responses per second.
 */
export function runHttpLoad(port: number, request: string, connections: number, ms: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const sockets: net.Socket[] = [];
    let answered = 0;
    const end = (): void => {
      for (const socket of sockets) socket.destroy();
    };
    const fail = (error: Error): void => {
      end();
      reject(error);
    };
    const open = (): void => {
      let size = 0;
      let got = 0;
      const callback = (count: number): boolean => {
        if (got === 0 && incoming.toString('latin1', 0, OK.length) !== OK)
          fail(new Error(incoming.toString('latin1', 0, count)));
        // Every response has the length of the first.
        if (size === 0) {
          const head = incoming.toString('latin1', 0, count);
          size = head.indexOf('\r\n\r\n') + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1]);
        }
        got += count;
        if (got < size) return true;
        got = 0;
        answered += 1;
        socket.write(request, 'latin1');
        return true;
      };
      const socket = net.connect({ port, host: '127.0.0.1', onread: { buffer: incoming, callback } });
      socket.on('error', fail);
      socket.write(request, 'latin1');
      sockets.push(socket);
    };
    for (let count = 0; count < connections; count += 1) open();
    const began = performance.now();
    setTimeout(() => {
      end();
      resolve(answered / ((performance.now() - began) / 1_000));
    }, ms);
  });
}
