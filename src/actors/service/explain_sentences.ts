// The sentences about a service from which explanations and the hints of failed starts are made. Pure.
import { urlPort } from '../../adapters/ready_probe.ts';
import { type Probing, type ReadyField, readyCheckOf } from '../../protocol/checks.ts';
import type { EndCause, LastCheck, LastEnd, ServiceSpec } from '../../protocol/service.ts';
import type { WatchState } from '../../protocol/watcher.ts';
import { SERVICE } from '../../settings/limits.ts';
import type { LiveRun } from './run.ts';
import type { FailedWake } from './service_door_options.ts';

type EndSummary = Pick<LastEnd, 'exitCode' | 'signal' | 'exitUnknown' | 'cause'>;

const NOT_FOUND = 127;

/** The usual meaning of some exit codes of shells. */
const SHELL_EXIT_MEANINGS = new Map([
  [126, 'the command was found but cannot be executed'],
  [NOT_FOUND, 'the shell did not find the command'],
]);

/** `340 ms`, `3.4 s` or `2 min 5 s`. */
export function humanDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.floor((ms % 60_000) / 1_000)} s`;
}

/** The sentences with a blank between them; those that do not apply are left out. */
export const joinSentences = (...parts: (string | null | false)[]): string => parts.filter(Boolean).join(' ');

const CAUSES: { readonly [C in EndCause]: string } = {
  memory: 'was ended because it used more memory than its limit',
  unhealthy: 'was ended because its live-check failed',
};

/** A phrase such as `ended with exit code 3` or `was ended by SIGKILL`, or that the end was not observed. */
export function describeEnd({ cause, exitCode, signal, exitUnknown }: EndSummary): string {
  if (cause) return CAUSES[cause];
  if (signal !== null) return `was ended by ${signal}`;
  if (exitCode === null) return exitUnknown ? 'ended while nothing watched it' : 'ended with the machine';
  const meaning = SHELL_EXIT_MEANINGS.get(exitCode);
  return `ended with exit code ${exitCode}${meaning ? ` (${meaning})` : ''}`;
}

/** What may explain the end of a process further; null: nothing. */
export function aboutEnd(end: EndSummary, path: string | null): string | null {
  if (end.exitCode === NOT_FOUND)
    return path === null ? 'It has no PATH to look in.' : `It was looked up in PATH=${path}.`;
  if (end.signal === 'SIGKILL' && !end.cause)
    return 'If nobody killed it, the system was short of memory: its log says more.';
  return null;
}

/** Describes the last probe of a check; null: there was none. */
export function aboutCheck(check: LastCheck | null, now: number): string | null {
  if (!check) return null;
  const result = check.error ?? 'passed';
  return `The last check of ${check.url}, ${humanDuration(now - check.at)} ago: ${result}.`;
}

/** Whether `env` overrides the PORT of a run with `port`. The values of placeholders are not known here. */
const isPortOverridden = (env: ServiceSpec['env'], port: number): boolean =>
  env.some(([key, value]) => key === 'PORT' && /^\d+$/.test(value) && value !== String(port));

/** Explains who listens on the port of a run with `env` when the check does not pass. */
export function aboutPort(
  { ready, port }: LiveRun['metadata'],
  env: ServiceSpec['env'],
  holder: string | null,
): string | null {
  const probing = readyCheckOf(ready, port)?.probing;
  if (port === null || (probing && probing.kind !== 'url')) return null;
  const asked = probing ? urlPort(new URL(probing.url)) : port;
  if (asked !== port) return `The ready URL asks port ${asked}, while the service was given port ${port}.`;
  if (holder === null && isPortOverridden(env, port))
    return `Nothing listens on port ${port}: its env sets $PORT to another port.`;
  if (holder === null) return `Nothing listens on port ${port}: does the program take its port from $PORT?`;
  return `On port ${port} listens ${holder}.`;
}

/** Says that another program has the port of a run. */
export function aboutForeignHolder({ metadata: { port } }: LiveRun, holder: string | null): string | null {
  if (holder === null) return null;
  return `On its port ${port}, ${holder} listens too: what is sent to localhost:${port} may end there.`;
}

/** Says that another program has the port of the door of a run. */
export function aboutDoor({ metadata: { doorPort } }: LiveRun, holder: string | null): string | null {
  if (holder === null || doorPort === undefined) return null;
  return `On its port ${doorPort} listens ${holder} instead of Berth, so clients do not reach it there.`;
}

/** Says that the service could not be woken for the last client that waited for it. */
export const aboutFailedWake = (failed: FailedWake | null, now: number): string | null =>
  failed && `It could not be woken for a connection ${humanDuration(now - failed.at)} ago: ${failed.reason}.`;

/** Says how much of the output was lost. */
export function aboutDroppedOutput(bytes: number): string | null {
  if (bytes === 0) return null;
  return `Of its output ${bytes.toLocaleString('en')} bytes are lost: the disk was full.`;
}

/** Says why changes of watched files may go unnoticed. */
export const aboutWatch = (watch: WatchState | null): string | null =>
  watch?.trouble ? `Changes of its files may go unnoticed: ${watch.trouble}.` : null;

/** The last lines of a log, introduced. */
export const logText = (lines: string[]): string =>
  lines.length > 0 ? `Its last lines:\n${lines.join('\n')}` : 'Its log is empty.';

const AWAITED: { readonly [K in Probing['kind']]: (probing: Extract<Probing, { kind: K }>) => string } = {
  url({ url, expected: { body, status } }) {
    if (url.startsWith('tcp:')) return `a connection to ${url} to be taken`;
    const [least, greatest] = status;
    const answer =
      least === 200 && greatest === 399 ? 'a 2xx or 3xx answer' : `an answer of ${least} to ${greatest}`;
    return `${answer} from ${url}${body === null ? '' : ` with a body that matches ${body}`}`;
  },
  exec: ({ cmd }) => `the command ${cmd} to end with 0`,
  log: ({ pattern }) => `a line of its output that matches ${pattern}`,
  notify: () => 'READY=1 on its $NOTIFY_SOCKET',
};

function awaitedBy<K extends Probing['kind']>(probing: Extract<Probing, { kind: K }>): string {
  return AWAITED[probing.kind as K](probing);
}

/** What a process waits for until it is ready, as a phrase. */
export function awaitedCheck(ready: ReadyField | null, port: number | null): string {
  const check = readyCheckOf(ready, port);
  return check ? awaitedBy(check.probing) : `its process to be up for ${SERVICE.minUptimeMs} ms`;
}
