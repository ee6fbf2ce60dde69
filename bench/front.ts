// The front next to a bare uWebSockets.js server that sends the same headers and bytes, and its event streams
// next to a bare write loop. Each server runs in a process of its own. The figures are per second of the
// server's own processor time: what it would do with a core to itself, whatever else the machine runs.
import { type ChildProcess, execFileSync, fork, spawnSync } from 'node:child_process';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { EVENTS, type Order, type Role, serve } from './front_servers.ts';
import { PLAIN_ENVIRONMENT } from './kit/daemon.ts';
import { type Benchmark, compare, type Row } from './kit/harness.ts';
import { runHttpLoad } from './kit/http_load.ts';

const SUBSCRIBERS = 1_000;
const CONNECTIONS = 64;
const SECONDS = 1;
/** Many short turns: other load on the machine then hits both sides alike. */
const TURNS = 25;
const PATHS: readonly [name: string, path: string][] = [
  ['resolve', '/v1/resolve/svc-42'],
  ['one service', '/v1/services/svc-42'],
  ['list of 100', '/v1/services'],
];

const ROLES: readonly Role[] = ['front', 'journal', 'bare'];

/** A server in a process of its own. */
export class Server {
  readonly port: number;
  private readonly child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
  }

  static async start(role: Role, bodies: [string, string][] = [], folder = ''): Promise<Server> {
    const child = fork(fileURLToPath(import.meta.url), [role, folder], { env: PLAIN_ENVIRONMENT });
    if (role === 'bare') child.send(bodies);
    return new Server(child, await reply(child));
  }

  /** Carries out `order` and resolves with the seconds of processor time used so far. */
  ask(order: Order): Promise<number> {
    const answer = reply(this.child);
    this.child.send(order);
    return answer;
  }

  end(): void {
    this.child.kill();
  }
}

const reply = (child: ChildProcess): Promise<number> =>
  new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`a server ended (${code})`));
    child.once('exit', ended);
    child.once('message', (value) => {
      child.off('exit', ended);
      resolve(Number(value));
    });
  });

const hasWrk = spawnSync('wrk', ['--version']).error === undefined;

/**
 * Keeps `CONNECTIONS` requests in flight; returns the number of responses. Uses wrk where it is installed: it
 * leaves the server more processor time.
 */
async function loadFor(port: number, path: string): Promise<number> {
  if (!hasWrk) {
    const request = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`;
    return (await runHttpLoad(port, request, CONNECTIONS, SECONDS * 1_000)) * SECONDS;
  }
  const options = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, `http://127.0.0.1:${port}${path}`];
  const said = execFileSync('wrk', options, { encoding: 'utf8' });
  if (/Non-2xx/.test(said)) throw new Error(said);
  return Number(/(\d+) requests in/.exec(said)?.[1]);
}

async function perCpuSecond(server: Server, work: () => Promise<number>): Promise<number> {
  const before = await server.ask('cpu');
  const done = await work();
  return done / ((await server.ask('cpu')) - before);
}

/** One subscriber; resolves when every event has come, once and in order. */
function subscriber(port: number): { opened: Promise<void>; complete: Promise<void>; end: () => void } {
  const socket = net.connect(port, '127.0.0.1');
  let last = 0;
  let rest = '';
  let isOpen = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    isOpen = resolve;
  });
  const complete = new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`cut off after event ${last}`)));
    socket.on('data', (part) => {
      isOpen();
      const text = rest + part.toString('latin1');
      let at = text.indexOf('\nevent: service');
      let done = 0;
      for (; at >= 0; at = text.indexOf('\nevent: service', at + 1)) {
        const id = Number(text.slice(text.lastIndexOf(' ', at) + 1, at));
        if (id !== last + 1) reject(new Error(`event ${id} after ${last}`));
        last = id;
        done = at + 1;
      }
      rest = text.slice(Math.max(done, text.length - 100));
      if (last === EVENTS) resolve();
    });
  });
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  return { opened, complete, end: () => socket.destroy() };
}

async function fanOut(role: 'front' | 'bare'): Promise<number> {
  const server = await Server.start(role);
  const subscribers = Array.from({ length: SUBSCRIBERS }, () => subscriber(server.port));
  await Promise.all(subscribers.map(({ opened }) => opened));
  const delivered = await perCpuSecond(server, async () => {
    await Promise.all([server.ask('emit'), ...subscribers.map(({ complete }) => complete)]);
    return SUBSCRIBERS * EVENTS;
  });
  for (const { end } of subscribers) end();
  server.end();
  return delivered;
}

async function run(): Promise<Row[]> {
  const front = await Server.start('front');
  const bodies = await Promise.all(
    PATHS.map(async ([, path]): Promise<[string, string]> => {
      const answer = await fetch(`http://127.0.0.1:${front.port}${path}`);
      return [path, await answer.text()];
    }),
  );
  const bare = await Server.start('bare', bodies);
  const rows: Row[] = [];
  for (const [name, path] of PATHS) {
    const sample = (server: Server) => () => perCpuSecond(server, () => loadFor(server.port, path));
    rows.push(
      await compare(name, 'requests per CPU second', {
        floor: sample(bare),
        subject: sample(front),
        turns: TURNS,
      }),
    );
  }
  front.end();
  bare.end();
  const floor = () => fanOut('bare');
  rows.push(
    await compare('1,000 subscribers', 'events per CPU second', {
      floor,
      subject: () => fanOut('front'),
      turns: 9,
    }),
  );
  return rows;
}

export const front: Benchmark = {
  name: 'front',
  question:
    'how near do reads and event streams come to uWebSockets.js doing nothing but sending the same bytes?',
  run,
};

const role = ROLES.find((name) => name === process.argv[2]);
if (role && process.argv[1] === fileURLToPath(import.meta.url) && process.send)
  await serve(role, process.argv[3] ?? '');
