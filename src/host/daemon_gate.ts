// Who may talk to the host: the threads of one daemon. A second daemon is turned away with the pid of the first as long as
// that one is alive, which is what keeps two daemons off one state directory
// (docs/reference.md "State directory"). The first is the one that has started the host, if it lives: it may
// listen already, so none that only came sooner may take its place.
import { rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { readFirstLine, socketPath } from '../adapters/host/host_socket.ts';
import { socketPipe } from '../adapters/pipes.ts';
import { mayBeAlive } from '../adapters/process/process_table.ts';
import { type FieldTypes, hasFields } from '../adapters/storage/field_types.ts';
import { HOST_PROTOCOL_VERSION } from '../protocol/host.ts';
import type { DaemonProcess, Hello, HelloReply } from '../protocol/host_handshake.ts';
import type { Pipe } from '../runtime/actor.ts';

export interface DaemonGateConfig {
  folder: string;
  version: string;
  /** The daemon this host was started by; null: whoever comes first. */
  startedBy: DaemonProcess | null;
  /** Whether nothing would be lost if the host ended now. */
  isIdle: () => boolean;
  /** A thread of the daemon has been let in. */
  onWelcome: (hello: Hello, pipe: Pipe) => void;
  /** A connection has gone, or a daemon of another version waits for the end of this host. */
  onLeft: () => void;
}

export interface DaemonGate {
  /** The daemon that has this host, or waits for its end, if it is alive. */
  daemon(): Hello | null;
  /** Whether a daemon has ever come. */
  readonly hasMetDaemon: boolean;
  /** Whether `daemon` would get a better host by starting one. */
  isOutdated(daemon: Hello): boolean;
  readonly connections: number;
  close(): void;
}

const HELLO_FIELDS: FieldTypes<Hello> = {
  protocol: 'number',
  version: 'string',
  daemonPid: 'number',
  daemonStart: 'number',
  session: 'string',
  node: 'string',
  services: 'number',
};

function parseHello(line: string): Hello | null {
  try {
    const value: unknown = JSON.parse(line);
    return hasFields(value, HELLO_FIELDS) ? value : null;
  } catch {
    return null;
  }
}

const isDaemonAlive = ({ daemonPid, daemonStart }: DaemonProcess): boolean =>
  mayBeAlive(daemonPid, daemonStart);

const isSameDaemon = (a: DaemonProcess, b: DaemonProcess): boolean =>
  a.daemonPid === b.daemonPid && a.daemonStart === b.daemonStart;

/** Opens the socket; resolves when it listens. The caller holds the lock: a socket that is there is a killed host's. */
export async function openDaemonGate(config: DaemonGateConfig): Promise<DaemonGate> {
  const { folder, version, startedBy } = config;
  let owner: Hello | null = null;
  let first: Hello | null = null;
  const sockets = new Set<Socket>();

  const daemon = () => (owner && (sockets.size > 0 || isDaemonAlive(owner)) ? owner : null);
  // The one that has started this host would only start the same again: its files were replaced while it runs.
  const outdated = (hello: Hello) =>
    hello.version !== version && first !== null && hello.version !== first.version;
  const judge = (hello: Hello | null): HelloReply => {
    if (!hello) return { is: 'refused', reason: 'no hello' };
    if (Math.abs(hello.protocol - HOST_PROTOCOL_VERSION) > 1)
      return { is: 'refused', reason: `it speaks protocol ${HOST_PROTOCOL_VERSION}, not ${hello.protocol}` };
    if (owner && owner.session !== hello.session && isDaemonAlive(owner))
      return { is: 'taken', daemonPid: owner.daemonPid };
    if (!owner && startedBy && !isSameDaemon(startedBy, hello) && isDaemonAlive(startedBy))
      return { is: 'taken', daemonPid: startedBy.daemonPid };
    if (outdated(hello) && config.isIdle()) return { is: 'leaving' };
    const protocol = Math.min(hello.protocol, HOST_PROTOCOL_VERSION);
    return { is: 'welcome', protocol, version, hostPid: process.pid };
  };
  const letIn = (hello: Hello, socket: Socket) => {
    // Whoever had it before is dead: what it had open must not act any more.
    if (owner?.session !== hello.session) for (const old of sockets) old.destroy();
    owner = hello;
    first ??= hello;
    sockets.add(socket);
    socket.on('close', () => {
      sockets.delete(socket);
      config.onLeft();
    });
    config.onWelcome(hello, socketPipe(socket));
    socket.resume();
  };
  const greet = async (socket: Socket) => {
    socket.on('error', () => {
      // Its close says all there is to say.
    });
    const hello = await readFirstLine(socket).then(parseHello, () => null);
    const answer = judge(hello);
    socket.write(`${JSON.stringify(answer)}\n`);
    if (hello && answer.is === 'welcome') return letIn(hello, socket);
    if (hello && answer.is === 'leaving') owner = hello;
    socket.end(config.onLeft);
  };

  const { path, release } = socketPath(folder);
  rmSync(path, { force: true });
  const server = createServer((socket) => void greet(socket));
  await listening(server, path);
  return {
    daemon,
    isOutdated: outdated,
    get hasMetDaemon() {
      return first !== null;
    },
    get connections() {
      return sockets.size;
    },
    close() {
      server.close();
      rmSync(join(folder, 'host.sock'), { force: true });
      release();
    },
  };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
