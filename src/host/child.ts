// What the two ways to start a process have in common: with FIFOs (spawn.ts) and in a terminal (pty.ts).
import { accessSync, constants, statSync } from 'node:fs';
import type { LogStream } from '../logs/format.ts';
import { fail } from '../protocol/errors.ts';
import type { SpawnRequest } from '../protocol/host.ts';
import { type Failure, isFailure } from '../runtime/actor.ts';

export const SHELL = '/bin/sh';

export interface ChildEvents {
  /** `bytes` are only lent. */
  onOutput(stream: LogStream, bytes: Uint8Array): void;
  /** Once, after all its output. `exitCode` is null when a signal ended it. */
  onExit(exitCode: number | null, signal: string | null): void;
}

/** The Failure of a start, with its reason. */
export function startFailed(name: string, reason: string): Failure {
  return fail('start_failed', `${name} could not be started: ${reason}`, {
    hint: 'Correct what the message names and start it again.',
  });
}

export const diskFull = (name: string): Failure =>
  fail('storage_full', `${name} was not started: the disk is full`);

/** The Failure for what was thrown on the way to a start. */
export function spawnFailure(name: string, error: unknown): Failure {
  if (isFailure(error)) return error;
  if (!(error instanceof Error)) return startFailed(name, String(error));
  const full = 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT');
  return full ? diskFull(name) : startFailed(name, error.message);
}

/** Throws start_failed when a process could not even begin: the system would say ENOENT and not of what. */
export function checkStartable({ service, cwd }: Pick<SpawnRequest, 'service' | 'cwd'>): void {
  const place = statSync(cwd, { throwIfNoEntry: false });
  if (!place) throw startFailed(service, `its working directory ${cwd} does not exist`);
  if (!place.isDirectory()) throw startFailed(service, `its working directory ${cwd} is no directory`);
  for (const [path, what] of [
    [cwd, `its working directory ${cwd} cannot be entered`],
    [SHELL, `the shell ${SHELL} cannot be run`],
  ] as const) {
    try {
      accessSync(path, constants.X_OK);
    } catch {
      throw startFailed(service, what);
    }
  }
}

/** Runs `start` with the umask of the user: children get it, files of the host do not. */
export function withUmask<R>(umask: number, start: () => R): R {
  const own = process.umask(umask);
  try {
    return start();
  } finally {
    process.umask(own);
  }
}

/** Rows to what `spawn` takes. Without a prototype: no key of a user means anything else. */
export function environmentOf(rows: SpawnRequest['env']): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = Object.create(null);
  for (const [key, value] of rows) env[key] = value;
  return env;
}
