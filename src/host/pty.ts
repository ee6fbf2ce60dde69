// Starts an agent: a shell in a terminal of its own. The only importer of node-pty.
//
// node-pty alone loses the end of what short-lived programs print (it takes a hang-up for the end although there is more to
// read) and gives its descriptors to every later child. So the host keeps a duplicate of each: it reads on from that while
// there is more, writes through it without waiting, and empties it after the exit.
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Pty } from 'node-pty';
import { type Libc, signalNameOf } from '../adapters/process/libc.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import { KIB, MIB } from '../settings/limits.ts';
import { type ChildEvents, environmentOf, SHELL, spawnFailure, withUmask } from './child.ts';

export interface HostTerminal {
  pid: number;
  /** Input; what a program does not read waits, and is dropped beyond 1 MiB. */
  write(data: Uint8Array): void;
  resize(cols: number, rows: number): void;
}

export type SpawnTerminal = (request: SpawnRequest, libc: Libc, events: ChildEvents) => HostTerminal;

/** A terminal gives at most 4 KiB at a time: what is there at once goes to the log together. */
const readBuffer = Buffer.allocUnsafeSlow(64 * KIB);
const READ_BYTES = 4 * KIB;
const MAX_INPUT_BYTES = MIB;
/** How long until input is offered again to a program that does not read. */
const INPUT_RETRY_MS = 5;
const EAGAIN = -constants.errno.EAGAIN;

/** Reads until `buffer` is full or nothing is there; `filled` bytes are in it already. Returns how many are then. */
function readAvailable(libc: Libc, fd: number, filled: number): number {
  let size = filled;
  while (size + READ_BYTES <= readBuffer.length) {
    const count = libc.read(fd, readBuffer.subarray(size));
    if (count <= 0) break;
    size += count;
  }
  return size;
}

function createInputQueue(libc: Libc, fd: number): { write(data: Uint8Array): void; close(): void } {
  const waiting: Uint8Array[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const offer = () => {
    timer = undefined;
    for (let data = waiting[0]; data; data = waiting[0]) {
      const count = libc.write(fd, data);
      if (count === EAGAIN) {
        timer = setTimeout(offer, INPUT_RETRY_MS);
        return;
      }
      // Nobody is there any more: all that waits is lost.
      const done = count < 0 ? data.length : count;
      bytes -= done;
      if (done === data.length) waiting.shift();
      else waiting[0] = data.subarray(done);
    }
  };
  return {
    write(data) {
      if (bytes + data.length > MAX_INPUT_BYTES || data.length === 0) return;
      // A copy: the frame it came in is not ours to keep.
      waiting.push(Uint8Array.from(data));
      bytes += data.length;
      if (!timer) offer();
    },
    close() {
      clearTimeout(timer);
      waiting.length = 0;
    },
  };
}

function resizePty(terminal: Pty, cols: number, rows: number): void {
  try {
    terminal.resize(cols, rows);
  } catch {
    // It has just ended.
  }
}

/** Loads node-pty. Rejects with the reason where it does not. */
export async function loadTerminalSpawner(): Promise<SpawnTerminal> {
  const { spawn } = await import('node-pty');
  return (request, libc, events) => {
    const { service, cmd, cwd, env, umask } = request;
    const size = request.pty ?? { cols: 80, rows: 24 };
    let terminal: Pty | undefined;
    let fd: number;
    try {
      terminal = withUmask(umask, () =>
        spawn(SHELL, ['-c', cmd], { ...size, cwd, env: environmentOf(env), encoding: null }),
      );
      libc.closeOnExec(terminal.fd);
      fd = libc.duplicate(terminal.fd);
    } catch (error) {
      if (terminal) process.kill(-terminal.pid, 'SIGKILL');
      throw spawnFailure(service, error);
    }
    const input = createInputQueue(libc, fd);
    terminal.onData((bytes) => {
      const filled = readAvailable(libc, fd, bytes.copy(readBuffer));
      events.onOutput(1, readBuffer.subarray(0, filled));
    });
    terminal.onExit(({ exitCode, signal }) => {
      input.close();
      for (let size = readAvailable(libc, fd, 0); size > 0; size = readAvailable(libc, fd, 0))
        events.onOutput(1, readBuffer.subarray(0, size));
      closeSync(fd);
      events.onExit(signal ? null : exitCode, signal ? signalNameOf(signal) : null);
    });
    return { pid: terminal.pid, write: input.write, resize: (cols, rows) => resizePty(terminal, cols, rows) };
  };
}
