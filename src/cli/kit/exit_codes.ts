// Exit codes: what a script can tell apart.
import { isBerthError } from '../../client/errors.ts';

export const EXIT_CODE = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** `status` was asked and the service does not run. */
  notRunning: 3,
  /** `status` was asked and there is no such service. */
  unknown: 4,
  noDaemon: 5,
  unauthorized: 6,
  notReady: 7,
  conflict: 8,
  interrupted: 130,
  terminated: 143,
} as const;

const MEANINGS: Record<keyof typeof EXIT_CODE, string> = {
  ok: 'done',
  failed: 'failed',
  usage: 'wrong call, settings or project file',
  notRunning: 'status: it does not run',
  unknown: 'status: there is no such service',
  noDaemon: 'no daemon is running',
  unauthorized: 'the token is missing or wrong',
  notReady: 'not ready in time',
  conflict: 'its port is in use, or it runs already',
  interrupted: 'Ctrl-C',
  terminated: 'SIGTERM',
};

/** The table for people, a line each. */
export const exitCodesHelp = (): string =>
  Object.entries(EXIT_CODE)
    .map(([name, code]) => `  ${String(code).padEnd(5)}${MEANINGS[name as keyof typeof EXIT_CODE]}`)
    .join('\n');

const EXIT_BY_ERROR_CODE = new Map<string, number>([
  ['unreachable', EXIT_CODE.noDaemon],
  ['unauthorized', EXIT_CODE.unauthorized],
  ['ready_timeout', EXIT_CODE.notReady],
  ['port_in_use', EXIT_CODE.conflict],
  ['already_running', EXIT_CODE.conflict],
]);

/** A mistake in how the command was called: exit 2, and the message says how to call it. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string;
  constructor(message: string, hint = '') {
    super(message);
    this.hint = hint;
  }
}

/** Something that does not work out, said in words: exit 1 unless another code is given. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly hint: string;
  readonly exitCode: number;
  constructor(message: string, hint = '', exitCode: number = EXIT_CODE.failed) {
    super(message);
    this.hint = hint;
    this.exitCode = exitCode;
  }
}

/** By name, not by class: each part of the build has a copy of these classes. */
export const isErrorNamed = (error: unknown, name: string): error is Error =>
  error instanceof Error && error.name === name;

/** The exit code of a command that ended with `error`. */
export function exitCodeOf(error: unknown): number {
  if (isBerthError(error)) return EXIT_BY_ERROR_CODE.get(error.code) ?? EXIT_CODE.failed;
  if (isErrorNamed(error, 'CommandError') && 'exitCode' in error) return Number(error.exitCode);
  // The settings and the project file are part of how the command was called.
  const isUsage = ['UsageError', 'SettingsError', 'ProjectError'].some((name) => isErrorNamed(error, name));
  return isUsage ? EXIT_CODE.usage : EXIT_CODE.failed;
}
