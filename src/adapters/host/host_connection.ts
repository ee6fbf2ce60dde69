// The daemon's side of the process host: connects to it, and starts one when there is none.
import { mkdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { HOST_PROTOCOL_VERSION } from '../../protocol/host.ts';
import type { Hello, HelloReply } from '../../protocol/host_handshake.ts';
import { type Clock, Failure, type Pipe } from '../../runtime/actor.ts';
import { systemClock } from '../../runtime/clock.ts';
import { stateDirId, statePaths } from '../../settings/state_paths.ts';
import { socketPipe } from '../pipes.ts';
import { SUSPENDED, wayToContinue } from '../process/process_table.ts';
import { readFirstLine, socketExists, socketPath } from './host_socket.ts';
import { spawnHost, thisDaemon } from './spawn_host.ts';
import { suspendedHost } from './suspended_host.ts';

/** Codes of the Failures of this file; they never reach a client. */
type HostConnectionCode =
  /** Another daemon has the host; `detail` is its pid. */
  | 'second_daemon'
  /** The host does not speak the protocol of this daemon. */
  | 'host_refused'
  /** No host answers. */
  | 'host_absent';

const failure = (code: HostConnectionCode, message: string, detail?: unknown): Failure =>
  new Failure(code, message, detail);

/** An open connection to the host. */
export interface HostConnection {
  pipe: Pipe;
  hostPid: number;
}

type HelloIdentity = Pick<Hello, 'version' | 'session' | 'node'>;

const RETRY_MS = 2;
/**
 * A host listens much sooner than this. One that does not has lost a race or is exiting, so another is
 * started.
 */
const RESPAWN_MS = 2_000;

/**
 * Connects once; null: the host is exiting and must be replaced. Rejects with host_absent, host_refused or
 * second_daemon.
 */
async function connectOnce(stateDir: string, hello: Hello): Promise<HostConnection | null> {
  const { host } = statePaths(stateDir);
  const socket = await connectSocket(host);
  socket.write(`${JSON.stringify(hello)}\n`);
  let answer: HelloReply;
  try {
    answer = JSON.parse(await readFirstLine(socket));
  } catch (error) {
    socket.destroy();
    const pid = suspendedHost(host);
    const why =
      pid === undefined ? `does not answer: ${error}` : `(pid ${pid}) ${SUSPENDED}: ${wayToContinue(pid)}`;
    throw failure('host_absent', `the process host ${why}`);
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
    // Checked hundreds of times while a host starts. Connecting each time would take processor time from it.
    if (!socketExists(folder)) return reject(failure('host_absent', 'no process host: it has no socket'));
    const { path, release } = socketPath(folder);
    const socket = connect(path);
    const absent = (error: Error) => reject(failure('host_absent', `no process host: ${error.message}`));
    socket.once('error', absent);
    socket.once('connect', () => {
      socket.off('error', absent);
      // Errors before the pipe is in use are ignored: the close that follows is enough.
      socket.on('error', () => {});
      resolve(socket);
    });
    socket.once('close', release);
  });
}

/** A pipe over a socket that is paused after its first line, and resumed once someone receives. */
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
  /** A host was just started, and is waited for before another is started. */
  isSpawned?: boolean;
}

/**
 * Connects a thread of the daemon to the host of a state directory, starting one when there is none. Rejects
 * with second_daemon, host_refused, or, after `withinMs`, host_absent; with a SettingsError when the host
 * could not write to its folder.
 */
export async function connectHost(options: ConnectHostOptions): Promise<HostConnection> {
  const { stateDir, entry, identity, withinMs, isSpawned } = options;
  // Hosts of earlier versions spread `service:<name>` over this many threads.
  const services = 1;
  mkdirSync(statePaths(stateDir).host, { recursive: true, mode: 0o700 });
  const own = { ...thisDaemon(), ...identity, stateId: stateDirId(stateDir) };
  const hello: Hello = { protocol: HOST_PROTOCOL_VERSION, ...own, services };
  // Real time and timers, because nothing else keeps the process alive while a daemon starts.
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

/** Pause between attempts to reach a host that was lost. */
const RECONNECT_MS = 1_000;

/**
 * Repeats `connectAgain` until it succeeds, because a daemon is useless without a host. Resolves with its
 * value, or with undefined once `isOver`. A failure is reported unless it repeats the previous one.
 */
export async function reconnectHost<T>(
  connectAgain: () => Promise<T>,
  isOver: () => boolean,
  report: (line: string) => void,
  clock: Clock = systemClock,
): Promise<T | undefined> {
  let reported = '';
  while (!isOver()) {
    try {
      return await connectAgain();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== reported) report(`the process host cannot be had yet: ${reason}`);
      reported = reason;
    }
    await new Promise<void>((resolve) => clock.after(RECONNECT_MS, resolve));
  }
  return undefined;
}
