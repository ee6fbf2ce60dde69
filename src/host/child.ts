// Common parts of both ways to start a process: with FIFOs (spawn_piped.ts) and in a terminal (pty.ts).
import { accessSync, constants } from 'node:fs';
import { folderFault, isServed } from '../adapters/answering_path.ts';
import type { LogStream } from '../logs/format.ts';
import { fail } from '../protocol/errors.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import { type Failure, isFailure } from '../runtime/actor.ts';

/** The shell that runs every command. */
export const SHELL = '/bin/sh';

export interface ChildEvents {
  /** `bytes` are valid until the call returns. */
  onOutput(stream: LogStream, bytes: Uint8Array): void;
  /** Called once, after all output. `exitCode` is null when a signal ended the process. */
  onExit(exitCode: number | null, signal: string | null): void;
}

/** The Failure start_failed of the service `name`, with its reason. */
export function startFailed(name: string, reason: string): Failure {
  return fail('start_failed', `${name} could not be started: ${reason}`, {
    hint: 'Fix what the message names, then start it again.',
  });
}

/** The Failure storage_full of a start. */
export const diskFull = (name: string): Failure =>
  fail('storage_full', `${name} was not started: the disk is full`);

/**
 * The Failure for an exception during a start: the exception itself if it is a Failure, else storage_full or
 * start_failed.
 */
export function spawnFailure(name: string, error: unknown): Failure {
  if (isFailure(error)) return error;
  if (!(error instanceof Error)) return startFailed(name, String(error));
  const isDiskFull = 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
  return isDiskFull ? diskFull(name) : startFailed(name, error.message);
}

/**
 * Fails start_failed when the directory or the shell is missing, because the system's ENOENT does not say
 * which.
 */
export async function checkStartable({
  service: name,
  cwd,
}: Pick<SpawnRequest, 'service' | 'cwd'>): Promise<void> {
  const fault = await folderFault(cwd);
  if (fault !== null) throw startFailed(name, `its working directory ${fault}`);
  try {
    accessSync(SHELL, constants.X_OK);
  } catch {
    throw startFailed(name, `the shell ${SHELL} cannot be run`);
  }
}

/** What a host adds to a request before it starts the process. */
export interface StartRequest extends SpawnRequest {
  cgroup: string | null;
}

/** How the shell of a command is started. */
export interface ShellStart {
  args: string[];
  cwd: string;
}

/**
 * How the shell of `cmd` is started. A first shell does what must come before the command, and becomes the
 * second one. It moves itself into the cgroup, so that no part of the command runs outside. It enters a `cwd`
 * on a file system that may stop answering, because this thread waits until the child runs its program.
 */
export function shellStart({ cmd, cwd, cgroup }: Pick<StartRequest, 'cmd' | 'cwd' | 'cgroup'>): ShellStart {
  const entersItself = isServed(cwd);
  const steps: string[] = [];
  if (cgroup !== null) steps.push('echo $$ >"$1/cgroup.procs"');
  if (entersItself) steps.push('cd -P "$2" && unset OLDPWD');
  if (steps.length === 0) return { args: ['-c', cmd], cwd };
  const script = [...steps, `exec ${SHELL} -c "$3"`].join(' && ');
  return { args: ['-c', script, SHELL, cgroup ?? '', cwd, cmd], cwd: entersItself ? '/' : cwd };
}

/** Runs `start` with the user's own `umask`, which applies to the child but not to files of the host. */
export function withUmask<R>(umask: number, start: () => R): R {
  const own = process.umask(umask);
  try {
    return start();
  } finally {
    process.umask(own);
  }
}

/** The environment in the form that `spawn` takes. It has no prototype, so that every key is just a key. */
export function environmentOf(rows: SpawnRequest['env']): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = Object.create(null);
  for (const [key, value] of rows) env[key] = value;
  return env;
}
