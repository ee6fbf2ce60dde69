// Runs the built command line as users do: as a process, with pipes or in a real terminal.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, vi } from 'vitest';
import { BIN } from '../kit/built_program.ts';
import { type Daemon, type DaemonOptions, startDaemon, stopDaemon } from '../kit/daemon.ts';
import { removeFolder } from '../kit/remove_folder.ts';

// Every call is a separate process, and a test makes a dozen: slowness on a busy machine is no failure.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export interface Ran {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

const folders: string[] = [];
const daemons: Daemon[] = [];
const calls = new Set<ChildProcess>();

/** A daemon of its own, ended in order after the test. */
export async function daemonOf(options: DaemonOptions = {}): Promise<Daemon> {
  const daemon = await startDaemon(options);
  daemons.push(daemon);
  return daemon;
}

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'berth-cli-'));
  folders.push(made);
  return made;
}

afterEach(async () => {
  // A call of a failed test: one that follows would wait for ever for its daemon to come back.
  for (const call of calls) call.kill('SIGKILL');
  for (const daemon of daemons.splice(0)) if (daemon.process.exitCode === null) await stopDaemon(daemon);
  for (const one of folders.splice(0)) await removeFolder(one);
});

/** An environment that hides this machine's user: no settings, no daemon, no colour. */
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
  /** Called with all of stdout whenever it has grown. */
  onStdout?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
  /** The same for stderr. */
  onStderr?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
  /** Called with what sends the process a signal. */
  onStart?: (kill: (signal: NodeJS.Signals) => void) => void;
}

/** Runs `berth` with `args` and resolves when it has ended. */
export function berth(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const child = spawn(process.execPath, [BIN, ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: options.env ?? cleanEnv(tmpdir()),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  calls.add(child);
  options.onStart?.((signal) => void child.kill(signal));
  child.on('exit', () => calls.delete(child));
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
    options.onStderr?.(stderr, (signal) => void child.kill(signal));
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

/** A state directory that claims that this process is a daemon listening on `port`. */
export function stateOf(port: number): string {
  const state = folder();
  const startTime = 0;
  writeFileSync(
    join(state, 'daemon.json'),
    JSON.stringify({ pid: process.pid, port, startTime, gatewayPort: null, version: '0' }),
  );
  return state;
}
