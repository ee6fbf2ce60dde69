// Ports for servers that are stopped and started again on the same port, in tests and benches. They lie outside the
// range that the system uses for outgoing connections: none of these can take the port while the server is down.
import { createServer } from 'node:net';

const FROM = 17_000;
const COUNT = 3_000;

const given = new Set<number>();

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** A port that nothing listens on and that this process has given to nobody else. */
export async function restartablePort(): Promise<number> {
  // Other processes choose as well: a random first port keeps them apart.
  const first = Math.floor(Math.random() * COUNT);
  for (let index = 0; index < COUNT; index += 1) {
    const port = FROM + ((first + index) % COUNT);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
    given.delete(port);
  }
  throw new Error('every restartable port is taken');
}
