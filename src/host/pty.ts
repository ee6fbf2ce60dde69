// Starts an agent: a shell in its own terminal. The only file that imports node-pty.
//
// node-pty alone loses the last output of short-lived programs, because it treats a hang-up as the end
// although there is more to read, and every later child inherits its descriptors. So the host keeps a
// duplicate of each descriptor: it reads from the duplicate while there is more, writes to it without
// waiting, and empties it after the exit.
import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Pty } from 'node-pty';
import { type Libc, signalNameOf } from '../adapters/process/libc.ts';
import type { Clock } from '../runtime/actor.ts';
import { KIB, MIB } from '../settings/limits.ts';
import {
  type ChildEvents,
  environmentOf,
  SHELL,
  type StartRequest,
  shellStart,
  spawnFailure,
  withUmask,
} from './child.ts';

export interface HostTerminal {
  pid: number;
  /**
   * Sends input. Resolves with true when the terminal has taken it, with false when it is gone. Up to 1 MiB
   * is kept for a program that does not read; further input is dropped.
   */
  write(data: Uint8Array): Promise<boolean>;
  resize(cols: number, rows: number): void;
}

/** Starts a shell in a terminal. Fails start_failed or storage_full. */
export type SpawnTerminal = (request: StartRequest, libc: Libc, events: ChildEvents) => HostTerminal;

/**
 * A terminal returns at most `READ_BYTES` per read. All output available at once goes to the log together.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * KIB);
const READ_BYTES = 4 * KIB;
const MAX_INPUT_BYTES = MIB;
/** The pause before input is offered again to a program that does not read. */
const INPUT_RETRY_MS = 5;
const EAGAIN = -constants.errno.EAGAIN;

/**
 * Appends the available output to the first `filled` bytes of `readBuffer`, until it is full. Returns the new
 * fill.
 */
function readAvailable(libc: Libc, fd: number, filled: number): number {
  let size = filled;
  while (size + READ_BYTES <= readBuffer.length) {
    const count = libc.read(fd, readBuffer.subarray(size));
    if (count <= 0) break;
    size += count;
  }
  return size;
}

interface InputQueue {
  write: HostTerminal['write'];
  close(): void;
}

/** Keeps input until the program reads it. */
function createInputQueue(libc: Libc, fd: number, clock: Clock): InputQueue {
  const waiting: { data: Uint8Array; settle: (isTaken: boolean) => void }[] = [];
  let bytes = 0;
  let cancelRetry: (() => void) | null = null;
  const offer = () => {
    cancelRetry = null;
    for (let next = waiting[0]; next; next = waiting[0]) {
      const { data, settle } = next;
      const count = libc.write(fd, data);
      if (count === EAGAIN) {
        cancelRetry = clock.after(INPUT_RETRY_MS, offer);
        return;
      }
      // The other side is closed, so the waiting input is lost.
      const done = count < 0 ? data.length : count;
      bytes -= done;
      if (done < data.length) next.data = data.subarray(done);
      else {
        waiting.shift();
        settle(count >= 0);
      }
    }
  };
  return {
    write(data) {
      if (bytes + data.length > MAX_INPUT_BYTES || data.length === 0) return Promise.resolve(true);
      return new Promise((settle) => {
        // A copy, because the frame does not belong to us.
        waiting.push({ data: Uint8Array.from(data), settle });
        bytes += data.length;
        if (!cancelRetry) offer();
      });
    },
    close() {
      cancelRetry?.();
      cancelRetry = null;
      for (const { settle } of waiting.splice(0)) settle(false);
    },
  };
}

function resizePty(terminal: Pty, cols: number, rows: number): void {
  try {
    terminal.resize(cols, rows);
  } catch {
    // The process has just ended.
  }
}

/** Loads node-pty. Rejects with the reason when it does not load. */
export async function loadTerminalSpawner(clock: Clock): Promise<SpawnTerminal> {
  const { spawn } = await import('node-pty');
  return (request, libc, events) => {
    const { service: name, env, umask } = request;
    const { args, cwd } = shellStart(request);
    const size = request.pty ?? { cols: 80, rows: 24 };
    let terminal: Pty | undefined;
    let fd: number;
    try {
      terminal = withUmask(umask, () =>
        spawn(SHELL, args, { ...size, cwd, env: environmentOf(env), encoding: null }),
      );
      libc.closeOnExec(terminal.fd);
      fd = libc.duplicate(terminal.fd);
    } catch (error) {
      if (terminal) process.kill(-terminal.pid, 'SIGKILL');
      throw spawnFailure(name, error);
    }
    const input = createInputQueue(libc, fd, clock);
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
