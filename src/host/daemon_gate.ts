// Admits the threads of one daemon to the host: docs/reference.md "State directory". While that daemon lives,
// a second one is refused with the pid of the first, which keeps two daemons off one state directory. The
// daemon that started the host counts as the first if it lives: it may already be listening, so another
// daemon that merely connects sooner must not replace it.
import { once } from 'node:events';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { listeningPath, readFirstLine, socketInode } from '../adapters/host/host_socket.ts';
import { socketPipe } from '../adapters/pipes.ts';
import { mayBeAlive } from '../adapters/process/process_table.ts';
import { type FieldTypes, hasFields } from '../adapters/storage/field_types.ts';
import { HOST_PROTOCOL_VERSION } from '../protocol/host.ts';
import type { DaemonProcess, Hello, HelloReply } from '../protocol/host_handshake.ts';
import type { Pipe } from '../runtime/actor.ts';
import { stateDirId } from '../settings/state_paths.ts';

export interface DaemonGateConfig {
  folder: string;
  version: string;
  /** The daemon that started this host; null: the first to connect is admitted. */
  startedBy: DaemonProcess | null;
  /** Called before each look at the folder or at a daemon; calls `moveTo` if the folder was renamed. */
  follow: () => void;
  /** Whether nothing would be lost if the host exited now. */
  isIdle: () => boolean;
  /** A thread of the daemon was admitted. */
  onWelcome: (hello: Hello, pipe: Pipe) => void;
  /** A connection was closed, or a daemon of another version is waiting for this host to exit. */
  onLeft: () => void;
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

const SHARED = 'whose files this state directory shares by hard links: copy it with `cp -a`';

const isDaemonAlive = ({ daemonPid, daemonStart }: DaemonProcess): boolean =>
  mayBeAlive(daemonPid, daemonStart);

const isSameDaemon = (a: DaemonProcess, b: DaemonProcess): boolean =>
  a.daemonPid === b.daemonPid && a.daemonStart === b.daemonStart;

/** The socket of the host, and the daemon it belongs to. */
export class DaemonGate {
  private readonly config: DaemonGateConfig;
  private server = this.createServer();
  /** Identifies the socket's file. */
  private inode = 0n;
  private folder: string;
  private socket: ReturnType<typeof listeningPath>;
  private stateDir: string;
  /** Of the directory in which this host was started. */
  private readonly stateId: string;
  private readonly sockets = new Set<Socket>();
  /** The daemon admitted last, or waiting for this host to exit. */
  private owner: Hello | null = null;
  private first: Hello | null = null;
  /** Whether the last `reopen` found no folder. */
  private isFolderMissing = false;

  constructor(config: DaemonGateConfig) {
    this.config = config;
    this.folder = config.folder;
    this.socket = listeningPath(config.folder);
    this.stateDir = dirname(config.folder);
    this.stateId = stateDirId(this.stateDir);
  }

  /**
   * Opens the gate. Rejects with the system's error. The caller holds the lock of the folder, so an existing
   * socket was left by a killed host.
   */
  async listen(): Promise<void> {
    rmSync(this.socket.path, { force: true, recursive: true });
    this.server.listen(this.socket.path);
    await once(this.server, 'listening');
    this.inode = socketInode(this.folder) ?? 0n;
  }

  /**
   * Opens the gate again when its socket or the folder was removed, because no later daemon would find this
   * host.
   */
  async reopen(): Promise<void> {
    this.config.follow();
    const { folder } = this;
    const wasMissing = this.isFolderMissing;
    this.isFolderMissing = !existsSync(folder);
    if (!existsSync(this.stateDir) || socketInode(this.folder) === this.inode) return;
    // Not at once, because the whole state directory may be being removed.
    if (this.isFolderMissing && !wasMissing) return;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Its open connections continue.
    this.server.close();
    this.socket.release();
    this.socket = listeningPath(folder);
    this.server = this.createServer();
    await this.listen();
  }

  /** The folder was renamed, with the socket in it. */
  moveTo(folder: string): void {
    this.folder = folder;
    this.stateDir = dirname(folder);
  }

  private createServer(): Server {
    return createServer((socket) => void this.greet(socket));
  }

  /** The daemon that this host belongs to, or that waits for its exit; null once it is dead. */
  daemon(): Hello | null {
    const { owner } = this;
    return owner && (this.sockets.size > 0 || isDaemonAlive(owner)) ? owner : null;
  }

  /** Whether any daemon has ever been admitted. */
  get hasMetDaemon(): boolean {
    return this.first !== null;
  }

  /** The number of open connections. */
  get connections(): number {
    return this.sockets.size;
  }

  /** Whether `daemon` would get another version of the host by starting one. */
  isOutdated({ version }: Hello): boolean {
    // The daemon that started this host would only start the same version again: its files were replaced
    // while it runs.
    return version !== this.config.version && this.first !== null && version !== this.first.version;
  }

  close(): void {
    this.server.close();
    rmSync(this.socket.path, { force: true });
    this.socket.release();
  }

  private async greet(socket: Socket): Promise<void> {
    socket.on('error', () => {
      // The close event follows and is enough.
    });
    const hello = await readFirstLine(socket).then(parseHello, () => null);
    this.config.follow();
    const reply = this.judge(hello);
    socket.write(`${JSON.stringify(reply)}\n`);
    if (hello && reply.is === 'welcome') return this.admit(hello, socket);
    if (hello && reply.is === 'leaving') this.owner = hello;
    socket.end(this.config.onLeft);
  }

  private judge(hello: Hello | null): HelloReply {
    const { owner, config } = this;
    const { startedBy, version, isIdle } = config;
    if (!hello) return { is: 'refused', reason: 'no hello' };
    if (Math.abs(hello.protocol - HOST_PROTOCOL_VERSION) > 1)
      return { is: 'refused', reason: `it speaks protocol ${HOST_PROTOCOL_VERSION}, not ${hello.protocol}` };
    if (this.isForeign(hello)) return { is: 'refused', reason: `it is that of ${this.stateDir}, ${SHARED}` };
    if (owner && owner.session !== hello.session && isDaemonAlive(owner))
      return { is: 'taken', daemonPid: owner.daemonPid };
    if (!owner && startedBy && !isSameDaemon(startedBy, hello) && isDaemonAlive(startedBy))
      return { is: 'taken', daemonPid: startedBy.daemonPid };
    if (this.isOutdated(hello) && isIdle()) return { is: 'leaving' };
    const protocol = Math.min(hello.protocol, HOST_PROTOCOL_VERSION);
    return { is: 'welcome', protocol, version, hostPid: process.pid };
  }

  /**
   * Whether the daemon is that of another directory, which shares the socket. A directory that replaces the
   * host's own at its path is not another one.
   */
  private isForeign({ stateId }: Hello): boolean {
    if (stateId === undefined || stateId === this.stateId) return false;
    return !existsSync(this.stateDir) || stateId !== stateDirId(this.stateDir);
  }

  private admit(hello: Hello, socket: Socket): void {
    // Any earlier daemon is dead, so its open connections must not act any more.
    if (this.owner?.session !== hello.session) for (const old of this.sockets) old.destroy();
    this.owner = hello;
    this.first ??= hello;
    this.sockets.add(socket);
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.config.onLeft();
    });
    this.config.onWelcome(hello, socketPipe(socket));
    socket.resume();
  }
}
