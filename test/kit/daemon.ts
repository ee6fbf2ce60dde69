// Starts the real daemon, as built, on a state directory of its own, and talks to it over real sockets.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { checkAnswer } from './api_document.ts';
import { BIN } from './built_program.ts';
import { SERVICE_PORTS } from './free_ports.ts';
import { type Answer, send } from './http_request.ts';
import { must } from './must.ts';
import { removeFolder } from './remove_folder.ts';

export { eventually } from './eventually.ts';

export interface SseEvent {
  id: number | null;
  event: string;
  data: any;
}

export interface EventStream {
  events: SseEvent[];
  /** Resolves with the first event, past or to come, that `fits`. */
  until(fits: (event: SseEvent) => boolean): Promise<SseEvent>;
  close(): void;
  closed: Promise<void>;
}

export interface Daemon {
  port: number;
  pid: number;
  stateDir: string;
  configFile: string;
  process: ChildProcess;
  stdout(): string;
  stderr(): string;
  request(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  events(query?: string, headers?: Record<string, string>): Promise<EventStream>;
  signal(name: NodeJS.Signals): void;
  exited: Promise<{ code: number | null; signal: string | null }>;
}

export interface DaemonOptions {
  stateDir?: string;
  /** TOML; `port = 0`, a gateway on any port and service ports of the file's own are added where it names none. */
  config?: string;
  env?: Record<string, string>;
  /** Default: the build of this tree. */
  bin?: string;
  /** The words of the command. Default: `daemon`. */
  command?: readonly string[];
  /** More arguments. */
  args?: readonly string[];
  /** Most descriptors that it may have open. Default: those of the tests. */
  maxFiles?: number;
}

const folders: string[] = [];
const running = new Set<Daemon>();
/** Daemons that do not listen yet: a test may end before they do. */
const starting = new Set<ChildProcess>();
/** State directories whose daemon did not end in order: some of its processes may still run. */
const untidy = new Set<string>();

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-e2e-'));
  folders.push(folder);
  return folder;
}

export const isAlive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
};

function stream(port: number, path: string, headers: Record<string, string>): Promise<EventStream> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, agent: false, headers }, (response) => {
      if (response.statusCode !== 200) {
        reject(new Error(`stream answered ${response.statusCode}`));
        response.resume();
        return;
      }
      const events: SseEvent[] = [];
      const waiters = new Set<() => void>();
      let rest = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        const frames = (rest + text).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames) {
          const fields = new Map(
            frame.split('\n').map((line): [string, string] => {
              const colon = line.indexOf(': ');
              return [line.slice(0, colon), line.slice(colon + 2)];
            }),
          );
          const data = fields.get('data');
          if (data === undefined) continue;
          const id = fields.get('id');
          events.push({
            id: id === undefined ? null : Number(id),
            event: fields.get('event') ?? 'message',
            data: JSON.parse(data),
          });
        }
        for (const waiter of waiters) waiter();
      });
      const closed = new Promise<void>((done) => {
        response.on('close', done);
        response.on('error', () => done());
      });
      resolve({
        events,
        closed,
        close: () => request.destroy(),
        until: (fits) =>
          new Promise((found, lost) => {
            const look = (): boolean => {
              const event = events.find(fits);
              if (event) found(event);
              return event !== undefined;
            };
            if (look()) return;
            const waiter = (): void => {
              if (look()) waiters.delete(waiter);
            };
            waiters.add(waiter);
            closed.then(() => lost(new Error('the stream ended first')));
          }),
      });
    });
    request.on('error', reject);
  });
}

/** Runs `berth daemon`, or another server; resolves once it prints its line, rejects with stderr if it ends first. */
export function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
  const stateDir = options.stateDir ?? join(newFolder(), 'state');
  const config = join(newFolder(), 'config.toml');
  // A table may not repeat the defaults: only the keys that the test leaves open are added.
  const source = options.config ?? '';
  const filled = [
    /^port\s*=/m.test(source.split('[')[0] ?? '') ? '' : 'port = 0\n',
    source,
    source.includes('[gateway]') ? '' : '\n[gateway]\nport = 0\n',
    source.includes('[services]') ? '' : `\n${SERVICE_PORTS}`,
  ].join('');
  writeFileSync(config, filled);
  const env: NodeJS.ProcessEnv = { ...process.env, ...options.env };
  for (const key of Object.keys(env)) if (key.startsWith('BERTH_') && !options.env?.[key]) delete env[key];
  const named = ['--state-dir', stateDir, '--config', config];
  const node = [
    process.execPath,
    options.bin ?? BIN,
    ...(options.command ?? ['daemon']),
    ...named,
    ...(options.args ?? []),
  ];
  const { maxFiles } = options;
  // Each becomes what it starts. A test's process may end without its hooks: the daemon must end with it.
  const [program = '', ...args] = [
    '/usr/bin/setpriv',
    '--pdeathsig=KILL',
    ...(maxFiles === undefined ? [] : ['/usr/bin/prlimit', `--nofile=${maxFiles}:${maxFiles}`]),
    ...node,
  ];
  // Detached from the terminal that the tests may run in: with one, SIGHUP would end it.
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env, detached: true });
  starting.add(child);
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) =>
    child.on('exit', (code, signal) => {
      starting.delete(child);
      resolve({ code, signal });
    }),
  );
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    exited.then(({ code, signal }) => reject(new Error(`the daemon ended (${code ?? signal}): ${stderr}`)));
    child.stdout.on('data', (text) => {
      stdout += text;
      const port = Number(/^berth: listening on https?:\/\/[^\s]*:(\d+)$/m.exec(stdout)?.[1]);
      if (!port) return;
      const daemon: Daemon = {
        port,
        pid: must(child.pid),
        stateDir,
        configFile: config,
        process: child,
        stdout: () => stdout,
        stderr: () => stderr,
        request: async (method, path, body, headers = {}) => {
          const answer = await send(port, method, path, { body, headers });
          // In every test, each response must be one that the API's document describes.
          checkAnswer(method, path, answer.status, answer.body);
          return answer;
        },
        events: (query = '', headers = {}) => stream(port, `/v1/events${query}`, headers),
        signal: (name) => void child.kill(name),
        exited,
      };
      starting.delete(child);
      running.add(daemon);
      untidy.add(stateDir);
      void exited.then(({ code }) => {
        running.delete(daemon);
        if (code === 0) untidy.delete(stateDir);
      });
      resolve(daemon);
    });
  });
}

/** Ends a daemon in order, with everything it supervises. */
export async function stopDaemon(daemon: Daemon): Promise<void> {
  daemon.signal('SIGTERM');
  await daemon.exited;
}

// A new daemon takes over what a killed daemon left on its state directory, and is then stopped.
afterEach(async () => {
  for (const child of [...starting]) child.kill('SIGKILL');
  for (const daemon of [...running]) {
    daemon.signal('SIGKILL');
    await daemon.exited;
  }
  for (const stateDir of [...untidy]) {
    if (existsSync(stateDir)) await stopDaemon(await startDaemon({ stateDir }));
    untidy.delete(stateDir);
  }
  for (const folder of folders.splice(0)) await removeFolder(folder);
});

/** The pid of the process host of a state directory: the process whose command line names that directory. */
export function hostPid(stateDir: string): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (line.includes('workers/host') && line.includes(stateDir)) return Number(pid);
    } catch {
      // It ended meanwhile.
    }
  }
  throw new Error('no process host');
}
