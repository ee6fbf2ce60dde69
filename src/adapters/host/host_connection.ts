// The daemon's side of the process host: connects to it, and starts one when there is none.
import { mkdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { HOST_PROTOCOL_VERSION } from '../../protocol/host.ts';
import type { Hello, HelloReply } from '../../protocol/host_handshake.ts';
import { Failure, type Pipe } from '../../runtime/actor.ts';
import { socketPipe } from '../pipes.ts';
import { readFirstLine, socketExists, socketPath } from './host_socket.ts';
import { hostFolder, spawnHost, thisDaemon } from './spawn_host.ts';

/** Codes of the Failures of this file; they never reach a client. */
type HostConnectionCode =
  /** Another daemon has the host: `detail` is its pid. */
  | 'second_daemon'
  /** The host speaks a protocol this daemon does not. */
  | 'host_refused'
  /** Nobody answers. */
  | 'host_absent';

const failure = (code: HostConnectionCode, message: string, detail?: unknown): Failure =>
  new Failure(code, message, detail);

export interface HostConnection {
  pipe: Pipe;
  hostPid: number;
}

type HelloIdentity = Pick<Hello, 'version' | 'session' | 'node' | 'services'>;

const RETRY_MS = 2;
/** A host that was started listens much sooner; if it lost a race, or was just ending, another is started. */
const RESPAWN_MS = 2_000;

/** Connects once. Rejects with host_absent, host_refused or second_daemon; `null`: it ends to be replaced. */
async function connectOnce(stateDir: string, hello: Hello): Promise<HostConnection | null> {
  const socket = await connectSocket(hostFolder(stateDir));
  socket.write(`${JSON.stringify(hello)}\n`);
  let answer: HelloReply;
  try {
    answer = JSON.parse(await readFirstLine(socket));
  } catch (error) {
    socket.destroy();
    throw failure('host_absent', `the process host does not answer: ${error}`);
  }
  if (answer.is === 'welcome') return { pipe: resumingPipe(socket), hostPid: answer.hostPid };
  socket.destroy();
  if (answer.is === 'taken')
    throw failure(
      'second_daemon',
      `a daemon with pid ${answer.daemonPid} has this state directory`,
      answer.daemonPid,
    );
  if (answer.is === 'refused') throw failure('host_refused', `the process host refuses: ${answer.reason}`);
  return null;
}

function connectSocket(folder: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    // While a host comes up this is asked hundreds of times: an attempt to connect would take its processor from it.
    if (!socketExists(folder)) return reject(failure('host_absent', 'no process host: it has no socket'));
    const { path, release } = socketPath(folder);
    const socket = connect(path);
    const absent = (error: Error) => reject(failure('host_absent', `no process host: ${error.message}`));
    socket.once('error', absent);
    socket.once('connect', () => {
      socket.off('error', absent);
      // Until the pipe listens: its close says all there is to say.
      socket.on('error', () => {});
      resolve(socket);
    });
    socket.once('close', release);
  });
}

/** The socket is paused after its first line, and flows once somebody receives. */
function resumingPipe(socket: Socket): Pipe {
  const pipe = socketPipe(socket);
  return {
    ...pipe,
    receive(onBytes, onClose) {
      pipe.receive(onBytes, onClose);
      socket.resume();
    },
  };
}

export interface ConnectHostOptions {
  stateDir: string;
  /** The built file of the host. */
  entry: string;
  identity: HelloIdentity;
  withinMs: number;
  /** One has been started just now: it is waited for before another is. */
  isSpawned?: boolean;
}

/**
 * Connects a thread of the daemon to the host of a state directory, starting one when there is none. Rejects with
 * second_daemon, host_refused, or, after `withinMs`, host_absent.
 */
export async function connectHost(options: ConnectHostOptions): Promise<HostConnection> {
  const { stateDir, entry, identity, withinMs, isSpawned } = options;
  const hello: Hello = { protocol: HOST_PROTOCOL_VERSION, ...thisDaemon(), ...identity };
  mkdirSync(hostFolder(stateDir), { recursive: true, mode: 0o700 });
  const began = performance.now();
  let spawnedAt = isSpawned ? began : Number.NEGATIVE_INFINITY;
  for (;;) {
    try {
      const connection = await connectOnce(stateDir, hello);
      if (connection) return connection;
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'host_absent') throw error;
      const now = performance.now();
      if (now - began > withinMs) throw error;
      if (now - spawnedAt > RESPAWN_MS) {
        spawnedAt = now;
        spawnHost(stateDir, entry);
      }
    }
    await pause(RETRY_MS);
  }
}

/** How long after a failure a host that was lost is looked for again. */
const RECONNECT_MS = 1_000;

/**
 * What `join` gives, tried again until it gives it: the host that was lost may be long in coming, and without one the daemon is
 * of no use. undefined once `isOver`. What is in the way is reported, and only when it is something new.
 */
export async function reconnectHost<T>(
  connectAgain: () => Promise<T>,
  isOver: () => boolean,
  report: (line: string) => void,
): Promise<T | undefined> {
  let said = '';
  while (!isOver()) {
    try {
      return await connectAgain();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== said) report(`the process host cannot be had yet: ${reason}`);
      said = reason;
    }
    await pause(RECONNECT_MS);
  }
  return undefined;
}
