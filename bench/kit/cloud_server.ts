// Built `berth cloud serve` processes that share one database: the subject of the benchmark `shared`.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Json } from '../../test/kit/kube_double.ts';
import { builtFile, environmentIn } from './daemon.ts';

const TOKEN = 'bench';
const POLL_MS = 2;

export interface CloudServer {
  pid: number;
  port: number;
  /** Resolves with the parsed body; rejects on any status but 2xx. */
  ask(method: string, path: string, body?: object): Promise<Json>;
  /** Whether this server holds the lease, so it serves the clusters itself. */
  holds(): Promise<boolean>;
  signal(name: NodeJS.Signals): void;
  ended: Promise<void>;
  end(): Promise<void>;
}

export interface ServerTeam {
  url: string;
  keyFile: string;
  folder: string;
}

/** What all servers of one database share. Their state directories are created in `folder`. */
export function newTeam(folder: string, url: string): ServerTeam {
  const keyFile = join(folder, 'cloud.key');
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  return { url, keyFile, folder };
}

/** The header with the token of the servers. */
export const tokenHeaders = { Authorization: `Bearer ${TOKEN}` };

interface Answer {
  status: number;
  text: string;
}

function request(port: number, method: string, path: string, headers = {}, body?: object): Promise<Answer> {
  const text = body && JSON.stringify(body);
  const length = text && { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
  const options = { host: '127.0.0.1', port, method, path, agent: false };
  return new Promise((resolve, reject) => {
    const sent = http.request(
      { ...options, headers: { ...tokenHeaders, ...headers, ...length } },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString() }),
        );
      },
    );
    sent.on('error', reject);
    sent.end(text);
  });
}

/** Starts one more server of a team. Resolves when it prints that it is listening. */
export async function startServer({ url, keyFile, folder }: ServerTeam): Promise<CloudServer> {
  const home = join(folder, `server-${randomBytes(4).toString('hex')}`);
  const config = join(folder, 'server.toml');
  writeFileSync(config, `[cloud]\ntoken = "${TOKEN}"\nport = 0\nrelay_port = -1\nkey_file = "${keyFile}"\n`);
  const child = spawn(process.execPath, [builtFile('bin.cjs'), 'cloud', 'serve', '--config', config], {
    env: { ...environmentIn(folder), BERTH_STATE_DIR: home, BERTH_DATABASE_URL: url },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
      const found = Number(/listening on \S+:(\d+)\n/.exec(said)?.[1]);
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error('a server ended')));
  });
  return {
    pid: child.pid ?? 0,
    port,
    async ask(method, path, body) {
      const { status, text } = await request(port, method, path, {}, body);
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
      return JSON.parse(text);
    },
    async holds() {
      const { status } = await request(port, 'GET', '/k8s/clusters', { 'Berth-Passed-On': '1' });
      return status === 200;
    },
    signal: (name) => void child.kill(name),
    ended,
    async end() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Waits until one of `servers` holds the clusters, and returns it. */
export async function holderOf(servers: readonly CloudServer[]): Promise<CloudServer> {
  for (;;) {
    for (const server of servers) if (await server.holds()) return server;
    await pause(POLL_MS);
  }
}
