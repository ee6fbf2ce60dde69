// Runs the built command line as users do: as a process, with pipes or in a real terminal.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, vi } from 'vitest';
import { type Daemon, type DaemonOptions, startDaemon, stopDaemon } from '../e2e/daemon.ts';

// Every call is a process of its own, and a test makes a dozen: what is slow on a busy machine is no failure.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export const BIN = fileURLToPath(new URL('../../dist/bin.cjs', import.meta.url));

export interface Ran {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

const folders: string[] = [];
const daemons: Daemon[] = [];

/** Ports for services below those that the system gives to connections, in blocks that only one daemon of all test runs has. */
const BLOCKS = { first: 10_000, count: 400, ports: 20 };
const locks: string[] = [];

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

/** Whether the block is ours now: its file could be made, or was left by a run that is gone. */
function take(path: string): boolean {
  if (existsSync(path) && !isAlive(Number(readFileSync(path, 'utf8')))) rmSync(path, { force: true });
  try {
    writeFileSync(path, String(process.pid), { flag: 'wx' });
    return true;
  } catch {
    return false;
  }
}

/** Settings with ports for services that no other daemon gives: two of them would meet on the first free one. */
export function servicePorts(): string {
  const at = join(tmpdir(), 'berth-test-ports');
  mkdirSync(at, { recursive: true });
  const numbers = Array.from(
    { length: BLOCKS.count },
    (_, index) => (index + process.pid * 7) % BLOCKS.count,
  );
  const block = numbers.find((number) => take(join(at, String(number))));
  if (block === undefined) throw new Error('no block of ports is free');
  locks.push(join(at, String(block)));
  const from = BLOCKS.first + block * BLOCKS.ports;
  return `[services]\nports = [${from}, ${from + BLOCKS.ports - 1}]\n`;
}

/** A daemon of its own, ended in order after the test. */
export async function daemonOf(options: DaemonOptions = {}): Promise<Daemon> {
  const daemon = await startDaemon({ ...options, config: `${options.config ?? ''}\n${servicePorts()}` });
  daemons.push(daemon);
  return daemon;
}

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'berth-cli-'));
  folders.push(made);
  return made;
}

afterEach(async () => {
  for (const daemon of daemons.splice(0)) if (daemon.process.exitCode === null) await stopDaemon(daemon);
  for (const lock of locks.splice(0)) rmSync(lock, { force: true });
  for (const one of folders.splice(0)) rmSync(one, { recursive: true, force: true, maxRetries: 20 });
});

/** An environment in which nothing of this machine's user is found: no settings, no daemon, no colour. */
export function cleanEnv(home: string, more: Record<string, string> = {}): Record<string, string> {
  const kept = Object.entries(process.env).filter(
    ([key, value]) => value !== undefined && !/^(BERTH_|XDG_|NO_COLOR|FORCE_COLOR|CI$|TERM$)/.test(key),
  );
  return { ...Object.fromEntries(kept.map(([key, value]) => [key, value ?? ''])), HOME: home, ...more };
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  /** Called with all of stdout whenever it grew. */
  onStdout?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
}

/** Runs `berth` with `args` and resolves when it has ended. */
export function berth(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: options.env ?? cleanEnv(tmpdir()),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    options.onStdout?.(stdout, (signal) => void child.kill(signal));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** A folder with a program `berth` in it, for shells. */
export function binFolder(): string {
  const bin = join(folder(), 'bin');
  mkdirSync(bin);
  const script = join(bin, 'berth');
  writeFileSync(script, `#!/bin/sh\nexec ${JSON.stringify(process.execPath)} ${JSON.stringify(BIN)} "$@"\n`);
  chmodSync(script, 0o755);
  return bin;
}

/** A state directory that says a daemon listens on `port`, and that this process is it. */
export function stateOf(port: number): string {
  const state = folder();
  const startTime = 0;
  writeFileSync(
    join(state, 'daemon.json'),
    JSON.stringify({ pid: process.pid, port, startTime, gatewayPort: null, version: '0' }),
  );
  return state;
}
