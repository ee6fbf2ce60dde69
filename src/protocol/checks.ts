// Ready- and live-checks, as registered and as carried out: docs/reference.md "Checks".
import { CHECK } from '../settings/limits.ts';
import { localhostUrl } from './names.ts';

/** How often a check probes, and the timeout of a probe, in milliseconds. */
export interface CheckTimes {
  interval?: number | undefined;
  timeout?: number | undefined;
}

export interface HttpCheck {
  /** A URL, or a path on the service's own port. */
  http: string;
  /** The lowest and the highest status that passes. */
  status?: [least: number, greatest: number] | undefined;
  header?: Record<string, string> | undefined;
  /** A regular expression that the body must match. */
  body?: string | undefined;
}

/** What a check probes. */
export type CheckQuestion =
  | HttpCheck
  /** `host:port`, a port, or true for the service's own port. */
  | { tcp: string | number | true }
  /** A shell command. */
  | { exec: string }
  /** A regular expression that a line of the run's log must match. */
  | { log: string }
  | { notify: true };

/** A check in a registration. A string is a URL. */
export type ReadyField = string | (CheckQuestion & CheckTimes);
export type LiveField = string | (CheckQuestion & CheckTimes & { failures?: number | undefined });

/** What an HTTP response must fulfil. */
export interface HttpExpectation {
  status: readonly [least: number, greatest: number];
  header: readonly (readonly [name: string, value: string])[];
  /** A regular expression; null: any body passes. */
  body: string | null;
}

/** What a check probes, with all defaults filled in. */
export type Probing =
  | { kind: 'url'; url: string; expected: HttpExpectation }
  | { kind: 'exec'; cmd: string }
  | { kind: 'log'; pattern: string }
  | { kind: 'notify' };

/** A check ready to be carried out. */
export interface CheckPlan {
  probing: Probing;
  /** The check in words, for `explain` and events. */
  text: string;
  /** null: the default back-off. */
  intervalMs: number | null;
  timeoutMs: number;
}

export interface LiveCheckPlan extends CheckPlan {
  intervalMs: number;
  /** The number of consecutive failed probes that ends the process. */
  failures: number;
}

const ANY_ANSWER: HttpExpectation = { status: [200, 399], header: [], body: null };

const urlProbing = (url: string, expected: HttpExpectation = ANY_ANSWER): Probing => ({
  kind: 'url',
  url,
  expected,
});

/** `host:port` of a target that may be written as a URL. */
export const bareTarget = (tcp: string): string => tcp.replace(/^tcp:\/\//, '');

function tcpUrl(tcp: string | number | true, port: number | null): string {
  if (typeof tcp === 'string') return `tcp://${bareTarget(tcp)}`;
  return `tcp://localhost:${tcp === true ? (port ?? 0) : tcp}`;
}

/**
 * Fills in the defaults of `field`. `port` is the service's own; it may be null only if the check does not
 * use it.
 */
function probingOf(field: ReadyField, port: number | null): Probing {
  if (typeof field === 'string') return urlProbing(field);
  if ('tcp' in field) return urlProbing(tcpUrl(field.tcp, port));
  if ('exec' in field) return { kind: 'exec', cmd: field.exec };
  if ('log' in field) return { kind: 'log', pattern: field.log };
  if ('notify' in field) return { kind: 'notify' };
  const { http, status = ANY_ANSWER.status, header = {}, body = null } = field;
  const url = http.startsWith('/') ? `${localhostUrl(port ?? 0)}${http}` : http;
  return urlProbing(url, { status, header: Object.entries(header), body });
}

const TEXTS: { readonly [K in Probing['kind']]: (probing: Extract<Probing, { kind: K }>) => string } = {
  url: ({ url }) => url,
  exec: ({ cmd }) => `exec ${cmd}`,
  log: ({ pattern }) => `log ${pattern}`,
  notify: () => 'notify',
};

function textOf<K extends Probing['kind']>(probing: Extract<Probing, { kind: K }>): string {
  const text: (probing: Extract<Probing, { kind: K }>) => string = TEXTS[probing.kind as K];
  return text(probing);
}

function checkOf(field: ReadyField, port: number | null): CheckPlan {
  const { interval = null, timeout = CHECK.timeoutMs } = typeof field === 'string' ? {} : field;
  const probing = probingOf(field, port);
  return { probing, text: textOf(probing), intervalMs: interval, timeoutMs: timeout };
}

/** The ready-check of a service on `port`; null if it has none. */
export const readyCheckOf = (field: ReadyField | null, port: number | null): CheckPlan | null =>
  field === null ? null : checkOf(field, port);

/** The live-check of a service on `port`; null if it has none. */
export function liveCheckOf(field: LiveField | null, port: number | null): LiveCheckPlan | null {
  if (field === null) return null;
  const check = checkOf(field, port);
  const { failures = CHECK.failures } = typeof field === 'string' ? {} : field;
  return { ...check, intervalMs: check.intervalMs ?? CHECK.liveIntervalMs, failures };
}

/** Whether the check runs a command. */
export const hasCommand = (field: ReadyField | LiveField | null): boolean =>
  field !== null && typeof field === 'object' && 'exec' in field;

/** Whether the process needs a socket for notifications. */
export const isNotified = (field: ReadyField | LiveField | null): boolean =>
  field !== null && typeof field === 'object' && 'notify' in field;
