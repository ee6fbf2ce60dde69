// Exit codes, and the errors of the command line.
import { isBerthError } from '../../client/errors.ts';

export const EXIT_CODE = {
  ok: 0,
  failed: 1,
  usage: 2,
  /** `berth status` of a service that is not running. */
  notRunning: 3,
  /** `berth status` of a service that does not exist. */
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
  failed: 'the command failed',
  usage: 'wrong usage, settings or project file',
  notRunning: 'status: the service is not running',
  unknown: 'status: there is no such service',
  noDaemon: 'no daemon is running',
  unauthorized: 'the token is missing or wrong, or does not reach that far',
  notReady: 'a service was not ready, or an agent not in the awaited state, in time',
  conflict: 'a port is in use, a service runs already, or an agent takes no prompt',
  interrupted: 'Ctrl-C',
  terminated: 'SIGTERM',
};

/** The exit codes as the help lists them, one line each. */
export const exitCodesHelp = (): string =>
  Object.entries(EXIT_CODE)
    .map(([name, code]) => `  ${String(code).padEnd(5)}${MEANINGS[name as keyof typeof EXIT_CODE]}`)
    .join('\n');

const EXIT_BY_ERROR_CODE = new Map<string, number>([
  ['invalid_spec', EXIT_CODE.usage],
  ['unreachable', EXIT_CODE.noDaemon],
  ['unauthorized', EXIT_CODE.unauthorized],
  ['unproven', EXIT_CODE.unauthorized],
  ['login_needed', EXIT_CODE.unauthorized],
  ['forbidden_owner', EXIT_CODE.unauthorized],
  ['ready_timeout', EXIT_CODE.notReady],
  ['port_in_use', EXIT_CODE.conflict],
  ['already_running', EXIT_CODE.conflict],
  ['wait_timeout', EXIT_CODE.notReady],
  ['agent_blocked', EXIT_CODE.conflict],
  ['agent_working', EXIT_CODE.conflict],
]);

/** A mistake in how the command was called: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly hint: string;
  constructor(message: string, hint = '') {
    super(message);
    this.hint = hint;
  }
}

/** A command that could not do its work: exit code 1 unless another is given. */
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

/** Compares the name, not the class: each part of the build has its own copy of these classes. */
export const isErrorNamed = (error: unknown, name: string): error is Error =>
  error instanceof Error && error.name === name;

/** The exit code of a command that ended with `error`. */
export function exitCodeOf(error: unknown): number {
  if (isBerthError(error)) return EXIT_BY_ERROR_CODE.get(error.code) ?? EXIT_CODE.failed;
  if (isErrorNamed(error, 'CommandError') && 'exitCode' in error) return Number(error.exitCode);
  // The settings and the project file are part of how the command was called.
  const usage = ['UsageError', 'SettingsError', 'ProjectError', 'KubeconfigError'];
  const isUsage = usage.some((name) => isErrorNamed(error, name));
  return isUsage ? EXIT_CODE.usage : EXIT_CODE.failed;
}
