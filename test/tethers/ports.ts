// Local ports of this test file alone, outside the range that the system gives to outgoing connections.
import { createServer, type Server } from 'node:net';
import { afterAll } from 'vitest';

const FROM = 10_000;
const BLOCKS = 80;
const BLOCK = 100;

let guard: Server | null = null;
let next = 0;

afterAll(() => {
  guard?.close();
  guard = null;
});

const listens = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });

/** Takes a block by its first port: another file, or another run of this one, takes another block. */
async function takeBlock(): Promise<void> {
  const first = process.pid % BLOCKS;
  for (let index = 0; index < BLOCKS; index += 1) {
    const port = FROM + ((first + index) % BLOCKS) * BLOCK;
    const server = createServer().unref();
    if (!(await listens(server, port))) continue;
    guard = server;
    next = port + 1;
    return;
  }
  throw new Error('every block of ports is taken');
}

/** The next `size` ports of this file's block. */
export async function ownPorts(size: number): Promise<[from: number, to: number]> {
  if (!guard) await takeBlock();
  const from = next;
  next += size;
  if (Math.floor((next - 1) / BLOCK) !== Math.floor(from / BLOCK))
    throw new Error('the block of ports is used up');
  return [from, next - 1];
}
