// Ports for this test file alone, for programs that need their port before they listen. They lie outside the
// range that the system uses for outgoing connections and for port 0.
import { createServer, type Server } from 'node:net';
import { afterAll } from 'vitest';

const FROM = 23_000;
const BLOCKS = 14;
const BLOCK = 690;
/** The first ports of a block, after that which claims it: the daemons of the file give them out, and nothing else. */
const DAEMONS = 200;

const listens = (server: Server, port: number): Promise<boolean> =>
  new Promise((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
  });

/** Claims a block by its first port: another file, or another run of this one, gets another block. */
async function takeBlock(): Promise<{ guard: Server; from: number }> {
  const first = process.pid % BLOCKS;
  for (let index = 0; index < BLOCKS; index += 1) {
    const from = FROM + ((first + index) % BLOCKS) * BLOCK;
    const guard = createServer().unref();
    if (await listens(guard, from)) return { guard, from };
  }
  throw new Error('every block of ports is taken');
}

const { guard, from: first } = await takeBlock();
afterAll(() => {
  guard.close();
});

/**
 * Settings that give the daemons of this file service ports of its own: daemons of other files choose the first free
 * ports as well, and one's service may listen only after the other has chosen.
 */
export const SERVICE_PORTS = `[services]\nports = [${first + 1}, ${first + DAEMONS}]\n`;

let next = first + DAEMONS + 1;

/** The next `size` ports of this file's block. */
export function ownPorts(size: number): [from: number, to: number] {
  const from = next;
  next += size;
  if (next > first + BLOCK) throw new Error('the block of ports is used up');
  return [from, next - 1];
}

/** A port that is free and that no other test gets. */
export const freePort = (): number => ownPorts(1)[0];
