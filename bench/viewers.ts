// Viewers of agents' terminals: the time to the first screen, to the echo of a keystroke, and until the
// program has read a prompt. The floors are a bare request, node-pty alone, and `tmux send-keys`. The rows of
// `berth ui` come from terminal_ui.ts.
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, mkdtempSync, type ReadStream, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { WebSocket } from 'ws';
import { type BareProcess, withBareProcess } from './kit/bare_client.ts';
import { type Daemon, withDaemon } from './kit/daemon.ts';
import { type Benchmark, cost, median, type Row } from './kit/harness.ts';
import { terminalUi } from './terminal_ui.ts';

const run = promisify(execFile);

/** Requests per sample. The sample is their median. */
const TIMES = 20;
/** Keystrokes per sample. The sample is the median of their times. */
const KEYS = 200;
/** Pause before each prompt, after which the agent is idle and accepts it. */
const QUIET_MS = 3_300;

const attachUrl = ({ port }: Daemon, name: string): string =>
  `ws://127.0.0.1:${port}/v1/agents/${name}/attach`;

/** Opens a viewer. Resolves at its first output. */
async function view(daemon: Daemon, name: string, query = ''): Promise<WebSocket> {
  const socket = new WebSocket(attachUrl(daemon, name) + query, ['berth.v1'], { perMessageDeflate: false });
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject);
    socket.on('message', (_data, isBinary) => isBinary && resolve());
  });
  return socket;
}

async function firstScreen(daemon: Daemon): Promise<Row> {
  const cmd = 'seq 2000; exec cat';
  await daemon.ask('POST', '/v1/agents/spinup', { name: 'shown', cmd });
  await daemon.ask('GET', '/v1/agents/shown/wait?for=idle');
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const times: number[] = [];
    for (let number = 0; number < TIMES; number += 1) {
      const began = performance.now();
      await work();
      times.push(performance.now() - began);
    }
    return median(times);
  };
  return cost('attach to first screen', 'ms', {
    floor: () => timed(() => daemon.ask('GET', '/v1/version')),
    subject: () => timed(async () => (await view(daemon, 'shown', '?mode=observe')).terminate()),
    turns: 5,
  });
}

async function keystroke(daemon: Daemon, bare: BareProcess): Promise<Row> {
  await daemon.ask('POST', '/v1/agents/spinup', { name: 'echoing', cmd: 'exec cat' });
  const socket = await view(daemon, 'echoing');
  // By then, the repaint that follows the attach has ended.
  await pause(200);
  const key = async (): Promise<number> => {
    const echoed = once(socket, 'message');
    const began = performance.now();
    socket.send(Buffer.from('x'));
    const [data] = await echoed;
    socket.send(JSON.stringify({ ack: data.length }));
    return performance.now() - began;
  };
  try {
    return await cost('keystroke to echo', 'ms', {
      floor: () => bare.ask('echoInTerminal', { keys: KEYS }),
      subject: async () => {
        const times: number[] = [];
        for (let count = 0; count < KEYS; count += 1) times.push(await key());
        return median(times);
      },
      turns: 5,
    });
  } finally {
    socket.terminate();
  }
}

/**
 * A minimal shell that writes each line that it reads to the pipe `to`. It then prints a shell prompt, by
 * which the daemon recognizes that the agent is idle. A working agent accepts no prompt.
 */
const passingShell = (to: string): string =>
  `exec 3>${to}; while printf '$ ' && IFS= read -r line; do printf '%s\\n' "$line" >&3; done`;

/** Milliseconds from the call of `type` until the program has written the typed text to the pipe. */
async function readBy(fifo: ReadStream, type: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  const read = once(fifo, 'data').then(() => performance.now() - began);
  await type();
  return read;
}

async function prompt(daemon: Daemon, folder: string): Promise<Row> {
  const [ours, theirs] = ['ours', 'theirs'].map((name) => join(folder, name));
  if (ours === undefined || theirs === undefined) throw new Error('there are two pipes');
  execFileSync('mkfifo', [ours, theirs]);
  const tmux = (...args: string[]) => ['-S', join(folder, 'tmux'), '-f', '/dev/null', ...args];
  await daemon.ask('POST', '/v1/agents/spinup', {
    name: 'asked',
    agent_type: 'shell',
    cmd: passingShell(ours),
  });
  execFileSync('tmux', tmux('new-session', '-d', '-s', 'bench', passingShell(theirs)));
  const [subject, floor] = [createReadStream(ours), createReadStream(theirs)];
  try {
    await daemon.ask('GET', '/v1/agents/asked/wait?for=idle');
    return await cost('prompt to program', 'ms', {
      floor: () => readBy(floor, () => run('tmux', tmux('send-keys', '-t', 'bench', 'hello', 'Enter'))),
      subject: async () => {
        await pause(QUIET_MS);
        return readBy(subject, () => daemon.ask('POST', '/v1/agents/asked/prompt', { text: 'hello' }));
      },
      turns: 5,
    });
  } finally {
    execFileSync('tmux', tmux('kill-server'));
    for (const stream of [subject, floor]) stream.destroy();
  }
}

export const viewers: Benchmark = {
  name: 'viewers',
  question: "How fast are agents' terminals and `berth ui` for those who sit at them?",
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'berth-bench-viewers-'));
    try {
      const people = await withBareProcess((bare) =>
        withDaemon(async (daemon) => [
          await firstScreen(daemon),
          await keystroke(daemon, bare),
          await prompt(daemon, folder),
        ]),
      );
      return [...people, ...(await terminalUi())];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
