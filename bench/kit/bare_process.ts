// The process behind bare_client.ts. It ends everything it has started when its parent exits.

import uWS, { type HttpResponse } from 'uWebSockets.js';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeSync } from 'node:fs';
import net from 'node:net';
import { spawn as spawnPty } from 'node-pty';
import type { BareTasks } from './bare_client.ts';

const POLL_MS = 2_000;
/** uWebSockets.js closes a response after 10 s without activity. */
const COMMENT_MS = 5_000;
/** Only processes that started. One that failed has no pid, and signals to group 0 would hit this process. */
const children = new Map<ChildProcess, number>();
const terminals = new Set<number>();
const subscribers: HttpResponse[] = [];

const killGroup = (pid: number): void => {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // The process has already ended.
  }
};

const terminal = (cmd: string) =>
  spawnPty('/bin/sh', ['-c', cmd], { cols: 120, rows: 32, cwd: '/', env: process.env, encoding: null });

/**
 * Frames that are sent together after the current turn of the event loop: a floor that writes each frame
 * separately would be too easy to beat.
 */
let waiting = '';

function flush(): void {
  for (const subscriber of subscribers) subscriber.cork(() => subscriber.write(waiting));
  waiting = '';
}

type Handlers = { [K in keyof BareTasks]: (data: BareTasks[K]) => number | Promise<number> };

const handlers: Handlers = {
  spawn: ({ cmd, count, port }) => {
    let pid = 0;
    for (let n = 0; n < count; n += 1) {
      const child = spawn('/bin/sh', ['-c', cmd], {
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: port === undefined ? process.env : { ...process.env, PORT: String(port) },
      });
      if (child.pid === undefined) throw new Error(`cannot start ${cmd}`);
      pid = child.pid;
      children.set(child, pid);
      child.on('exit', () => children.delete(child));
    }
    return pid;
  },
  stop: async () => {
    const ends = [...children.keys()].map((child) => once(child, 'exit'));
    for (const pid of children.values()) process.kill(-pid, 'SIGTERM');
    return (await Promise.all(ends)).length;
  },
  crash: async () => {
    const child = [...children.keys()].at(-1);
    if (!child) throw new Error('nothing was started');
    child.kill('SIGKILL');
    await once(child, 'exit');
    return 0;
  },
  spawnTerminal: ({ cmd }) => {
    const { pid } = terminal(cmd);
    terminals.add(pid);
    return pid;
  },
  readTerminal: ({ cmd }) => {
    const pty = terminal(cmd);
    let bytes = 0;
    pty.onData((part) => {
      bytes += part.length;
    });
    return new Promise((resolve) => pty.onExit(() => resolve(bytes)));
  },
  echoInTerminal: async ({ keys }) => {
    const pty = terminal('exec cat');
    terminals.add(pty.pid);
    const times: number[] = [];
    let onEcho = (): void => {};
    pty.onData(() => onEcho());
    for (let count = 0; count < keys; count += 1) {
      const echoed = new Promise<void>((resolve) => {
        onEcho = resolve;
      });
      const began = performance.now();
      writeSync(pty.fd, 'x');
      await echoed;
      times.push(performance.now() - began);
    }
    killGroup(pty.pid);
    return times.toSorted((a, b) => a - b)[keys >> 1] ?? Number.NaN;
  },
  serve: ({ body, frame }) =>
    new Promise((resolve) => {
      const app = uWS.App();
      app.get('/v1/events', (response) => {
        response.onAborted(() => subscribers.splice(subscribers.indexOf(response), 1));
        response.cork(() => {
          response.writeHeader('Content-Type', 'text/event-stream');
          response.write(': open\n\n');
        });
        subscribers.push(response);
      });
      app.get('/*', (response) => void response.end(body));
      app.post('/*', (response, request) => {
        if (waiting === '') setImmediate(flush);
        waiting += frame.replace('*', request.getUrl().slice(1));
        response.end('{}');
      });
      setInterval(() => {
        for (const subscriber of subscribers) subscriber.cork(() => subscriber.write(':\n\n'));
      }, COMMENT_MS);
      app.listen('127.0.0.1', 0, 1, (socket) => resolve(socket ? uWS.us_socket_local_port(socket) : 0));
    }),
  relay: ({ to }) =>
    new Promise((resolve) => {
      const server = net.createServer((client) => {
        const other = net.connect({ port: to, host: '127.0.0.1', noDelay: true });
        for (const [from, into] of [
          [client, other],
          [other, client],
        ] as const) {
          from.pipe(into);
          from.on('error', () => into.destroy());
        }
      });
      server.listen({ port: 0, host: '127.0.0.1', noDelay: true }, () => {
        const address = server.address();
        resolve(typeof address === 'object' && address ? address.port : 0);
      });
    }),
  poll: ({ pids }) => {
    setInterval(() => {
      for (const pid of pids) readFileSync(`/proc/${pid}/stat`, 'latin1');
    }, POLL_MS);
    return 0;
  },
};

process.on('message', async ({ task, data }: { task: keyof BareTasks; data: never }) => {
  try {
    process.send?.(await handlers[task](data));
  } catch (error) {
    process.send?.(String(error));
  }
});
process.on('disconnect', () => {
  for (const pid of children.values()) killGroup(pid);
  for (const pid of terminals) killGroup(pid);
  process.exit();
});
