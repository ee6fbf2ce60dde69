// A built daemon with a state directory of its own: the subject of every benchmark of the whole program.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { commandLine, listPids } from './process_stats.ts';

/** The build is in the folder of this file's bundle, or in the folder above it. */
export const builtFile = (name: string): string =>
  fileURLToPath(new URL(import.meta.url.includes('/chunks/') ? `../${name}` : name, import.meta.url));

/** Time limit of an orderly shutdown. After it, the daemon and its host are killed. */
const END_TIMEOUT_MS = 20_000;
const HOST_POLL_MS = 5;

export interface Daemon {
  pid: number;
  hostPid: number;
  port: number;
  /** Milliseconds from the spawn until the daemon prints that it is listening. */
  startMs: number;
  ask: DaemonRequester['ask'];
  /** Ends the daemon and everything it supervises. */
  end(): Promise<void>;
  /** Kills the daemon without warning. The next daemon on this folder takes over what it leaves. */
  kill(): Promise<void>;
}

/**
 * The environment of every measured process. Other variables change the figures: NODE_EXTRA_CA_CERTS alone
 * adds 25 ms to the start of a Node process.
 */
export const PLAIN_ENVIRONMENT: NodeJS.ProcessEnv = { PATH: process.env['PATH'] };

/** The environment of a daemon with its home and state directory in `folder`. */
export const environmentIn = (folder: string): NodeJS.ProcessEnv => ({
  ...PLAIN_ENVIRONMENT,
  HOME: folder,
  BERTH_STATE_DIR: join(folder, 'state'),
  BERTH_PORT: '0',
});

export interface DaemonRequester {
  /** Resolves with the parsed body; rejects on any status but 2xx. */
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  close(): void;
}

/** A client of an HTTP server on this machine. It keeps up to `connections` connections open. */
export function daemonRequester(port: number, connections = 64): DaemonRequester {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const ask: DaemonRequester['ask'] = (method, path, body) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      const headers =
        text === undefined
          ? {}
          : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
      const request = http.request({ agent, host: '127.0.0.1', port, method, path, headers }, (answer) => {
        let got = '';
        answer.setEncoding('utf8');
        answer.on('data', (part) => {
          got += part;
        });
        answer.on('end', () =>
          (answer.statusCode ?? 500) < 300
            ? resolve(JSON.parse(got))
            : reject(new Error(`${method} ${path}: ${answer.statusCode} ${got}`)),
        );
      });
      request.on('error', reject);
      request.end(text);
    });
  return { ask, close: () => agent.destroy() };
}

/** The pid of the process host of the daemon in `folder`. In a new folder, it starts after the daemon. */
async function hostOf(folder: string): Promise<number> {
  const path = join(folder, 'state');
  for (
    const began = performance.now();
    performance.now() - began < END_TIMEOUT_MS;
    await pause(HOST_POLL_MS)
  ) {
    if (!existsSync(join(path, 'host/host.sock'))) continue;
    const found = listPids().find((pid) => {
      const [, entry = '', stateDir] = commandLine(pid);
      return entry.endsWith('/workers/host.cjs') && stateDir === path;
    });
    if (found !== undefined) return found;
  }
  throw new Error('the daemon has no process host');
}

/**
 * Starts a daemon in `folder`. Resolves when it prints that it is listening. `config` is the text of its
 * configuration file, `environment` are additional variables.
 */
export async function startDaemon(
  folder: string,
  config?: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<Daemon> {
  const path = join(folder, 'config.toml');
  if (config !== undefined) writeFileSync(path, config);
  const options = config === undefined ? [] : ['--config', path];
  const began = performance.now();
  const child = spawn(process.execPath, [builtFile('bin.cjs'), 'daemon', ...options], {
    env: { ...environmentIn(folder), ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
      const found = Number(/listening on \S+:(\d+)\n/.exec(said)?.[1]);
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error('the daemon ended')));
  });
  const startMs = performance.now() - began;
  const { ask, close } = daemonRequester(port);
  const finish = async (signal: NodeJS.Signals): Promise<void> => {
    close();
    child.kill(signal);
    await ended;
  };
  const hostPid = await hostOf(folder);
  return {
    pid: child.pid ?? 0,
    hostPid,
    port,
    startMs,
    ask,
    async end() {
      const timer = setTimeout(() => {
        child.kill('SIGKILL');
        process.kill(hostPid, 'SIGKILL');
      }, END_TIMEOUT_MS);
      await finish('SIGTERM');
      clearTimeout(timer);
    },
    kill: () => finish('SIGKILL'),
  };
}

/** Runs `use` with a folder that is removed afterwards. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs `use` with a daemon, then ends the daemon and everything it supervises, also after a failure. */
export function withDaemon<T>(use: (daemon: Daemon) => Promise<T>, config?: string): Promise<T> {
  return withFolder(async (folder) => {
    const daemon = await startDaemon(folder, config);
    try {
      return await use(daemon);
    } finally {
      await daemon.end();
    }
  });
}

/** The command of a service that does nothing. */
export const IDLE = 'exec sleep 1000';

/** Registers `count` services that run `cmd`, named `svc-1` and so on, all in one group. */
export async function registerMany(
  daemon: Daemon,
  count: number,
  cmd: string = IDLE,
  group = 'bench',
): Promise<void> {
  const one = (_: unknown, index: number): Promise<unknown> =>
    daemon.ask('POST', '/v1/services', {
      name: `svc-${index + 1}`,
      port: 14_000 + index,
      group,
      cwd: '/tmp',
      cmd,
    });
  await Promise.all(Array.from({ length: count }, one));
}
