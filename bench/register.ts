// Registrations over HTTP on a real daemon, each answered when it is on disk. One at a time the floor is a bare write and
// fdatasync of as many bytes; 500 at once it is the same number of reads, which are answered from memory.
import { spawn } from 'node:child_process';
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Benchmark, compare, type Row, throughput } from './harness.ts';

const TURN_MS = 400;
const AT_ONCE = 500;

/** The built `berth`, beside or above the file this is bundled into. */
const BIN = fileURLToPath(
  new URL(import.meta.url.includes('/chunks/') ? '../bin.cjs' : 'bin.cjs', import.meta.url),
);

interface Daemon {
  port: number;
  end(): Promise<void>;
}

async function startDaemon(folder: string): Promise<Daemon> {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    BERTH_STATE_DIR: join(folder, 'state'),
    BERTH_PORT: '0',
  };
  const child = spawn(process.execPath, [BIN, 'daemon'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (text) => {
      const found = Number(/listening on \S+:(\d+)\n/.exec(String(text))?.[1]);
      if (found) resolve(found);
    });
    void ended.then(() => reject(new Error('the daemon ended')));
  });
  const end = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
  };
  return { port, end };
}

/** One request; resolves when its answer has arrived whole. */
function request(
  agent: http.Agent,
  port: number,
  method: string,
  path: string,
  body?: string,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers =
      body === undefined ? {} : { 'Content-Type': 'application/json', 'Content-Length': body.length };
    const sent = http.request({ agent, host: '127.0.0.1', port, method, path, headers }, (answer) => {
      answer.resume();
      answer.on('end', () =>
        (answer.statusCode ?? 500) < 300
          ? resolve()
          : reject(new Error(`${method} ${path}: ${answer.statusCode}`)),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function run(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const daemon = await startDaemon(folder);
  const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const ask = (method: string, path: string, body?: string) =>
    request(agent, daemon.port, method, path, body);
  const file = openSync(join(folder, 'floor'), 'w', 0o600);
  let count = 0;
  const body = (n: number): string => {
    // Another command each time: an identical registration changes nothing on disk.
    count += 1;
    return JSON.stringify({
      name: `service-${n}`,
      port: 20_000 + n,
      cmd: `exec sleep ${count}`,
      cwd: '/tmp',
    });
  };
  const numbers = Array.from({ length: AT_ONCE }, (_, n) => n);
  const together = (one: (n: number) => Promise<void>) => async (): Promise<number> => {
    const begin = performance.now();
    await Promise.all(numbers.map(one));
    return AT_ONCE / ((performance.now() - begin) / 1_000);
  };
  try {
    const single = await compare('one at a time', 'registrations/s', {
      floor: () =>
        throughput(
          async () => {
            writeSync(file, body(0));
            fdatasyncSync(file);
          },
          1,
          TURN_MS,
        ),
      subject: () => throughput(() => ask('POST', '/v1/services', body(0)), 1, TURN_MS),
    });
    await together((n) => ask('POST', '/v1/services', body(n)))();
    const burst = await compare(`${AT_ONCE} at once`, 'registrations/s', {
      floor: together((n) => ask('GET', `/v1/services/service-${n}`)),
      subject: together((n) => ask('POST', '/v1/services', body(n))),
    });
    return [single, burst];
  } finally {
    agent.destroy();
    closeSync(file);
    await daemon.end();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const register: Benchmark = {
  name: 'register',
  question: 'How long does a durable registration take, alone and 500 at once?',
  run,
};
