// Common parts of both ways to start a process: with FIFOs (spawn_piped.ts) and in a terminal (pty.ts).
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { unansweredReason } from '../adapters/answering_path.ts';
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
  const unanswered = await unansweredReason(cwd);
  if (unanswered !== null) throw startFailed(name, `its working directory ${unanswered}`);
  let place: Stats;
  try {
    place = statSync(cwd);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    // Besides those, a part of the path is too long, a loop of links, or closed to this user.
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
    const what = isMissing ? 'does not exist' : `cannot be reached: ${code}`;
    throw startFailed(name, `its working directory ${cwd} ${what}`);
  }
  if (!place.isDirectory()) throw startFailed(name, `its working directory ${cwd} is no directory`);
  for (const [path, what] of [
    [cwd, `its working directory ${cwd} cannot be entered`],
    [SHELL, `the shell ${SHELL} cannot be run`],
  ] as const) {
    try {
      accessSync(path, constants.X_OK);
    } catch {
      throw startFailed(name, what);
    }
  }
}

/**
 * The shell arguments for a command. For a cgroup, a first shell moves itself there and becomes the second
 * one, so that no part of the command runs outside.
 */
export const shellArguments = (cmd: string, cgroup: string | null): string[] =>
  cgroup === null
    ? ['-c', cmd]
    : ['-c', `echo $$ >"$0" && exec ${SHELL} -c "$1"`, `${cgroup}/cgroup.procs`, cmd];

/** What a host adds to a request before it starts the process. */
export interface StartRequest extends SpawnRequest {
  cgroup: string | null;
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
