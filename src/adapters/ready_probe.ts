// Ready-checks over real sockets, docs/reference.md "Ready-check": one probe of a ready URL, and a limit on
// how many run at once. Requests are written by hand, because 200 starting services make 10,000 probes a
// second. A refused probe costs 45 µs of processor time here and 73 with node:http; an answered one 103
// instead of 190.
import { request as httpRequest } from 'node:http';
import { connect, isIP, type Socket } from 'node:net';
import { unescape as percentDecoded } from 'node:querystring'; // unlike decodeURIComponent it never throws
import type { Clock } from '../runtime/actor.ts';
import { CHECK, READY_CHECK } from '../settings/limits.ts';
import type { LinearRegex } from './linear_regex.ts';
import { isSelfConnection } from './self_connection.ts';
import { unbracketedHost } from './url_host.ts';

/** The result of one probe, which has passed when `error` is null. */
export interface ProbeResult {
  /** The HTTP status; null without one. */
  status: number | null;
  error: string | null;
  /** The probe was not made, or its result was lost: it says nothing about the service. */
  isUnknown?: true;
}

/**
 * Probes `question` once, for at most `limitMs`, and then calls `onDone` once. Returns a function that aborts
 * the probe, after which `onDone` is not called.
 */
export type AskProbe<Q> = (question: Q, limitMs: number, onDone: (result: ProbeResult) => void) => () => void;

/** What a socket probe asks: an http, https or tcp URL, and for HTTP the expected answer. */
export interface UrlQuestion {
  url: string;
  /** The lowest and the highest status that passes; by default 200 and 399. */
  status?: readonly [least: number, greatest: number];
  header?: readonly (readonly [name: string, value: string])[];
  /** An expression that the beginning of the body must match. */
  body?: LinearRegex;
}

export type Probe = AskProbe<UrlQuestion>;

interface ProbeTarget {
  host: string;
  port: number;
  isSecure: boolean;
  /** Addresses to try in this order. */
  addresses: readonly string[];
  isLoopback: boolean;
  /** The HTTP request; null: a connection is enough. */
  request: { path: string; headers: Record<string, string> } | null;
  isExpected: (status: number) => boolean;
  /** The expected answer, as shown to people. */
  expected: string;
  body: LinearRegex | null;
}

const DEFAULT_STATUS = [200, 399] as const;

const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: [^\r\n]*)?\r?\n/;
/** Interim answers and the status line must fit in this many bytes; otherwise the answer is not HTTP. */
const MAX_HEAD_BYTES = 16 * 1024;
const LOCALHOST = /^(?:localhost|.+\.localhost)\.?$/;
const LOOPBACK_ADDRESS = /^(?:127\..+|::1)$/;

/** The port of a URL, including the default of its protocol. */
export const urlPort = ({ port, protocol }: URL): number =>
  Number(port) || (protocol === 'https:' ? 443 : 80);

function probeTargetOf(question: UrlQuestion): ProbeTarget {
  const { status: [least, greatest] = DEFAULT_STATUS, header = [], body = null } = question;
  const url = new URL(question.url);
  const host = unbracketedHost(url).toLowerCase();
  const isLocalhost = LOCALHOST.test(host);
  const login = `${percentDecoded(url.username)}:${percentDecoded(url.password)}`;
  // Keyed by lower-case names, so that registered headers replace ours.
  const headers = new Map([
    ['host', url.host],
    ['user-agent', 'berth'],
    ['accept', '*/*'],
    ...(login === ':' ? [] : [['authorization', `Basic ${Buffer.from(login).toString('base64')}`] as const]),
    ...header.map(([name, value]) => [name.toLowerCase(), value] as const),
    ['connection', 'close'],
  ]);
  return {
    host,
    port: urlPort(url),
    isSecure: url.protocol === 'https:',
    // The resolver may not know names below localhost, and a service may listen on one family only.
    addresses: isLocalhost ? ['127.0.0.1', '::1'] : [host],
    isLoopback: isLocalhost || (isIP(host) !== 0 && LOOPBACK_ADDRESS.test(host)),
    request:
      url.protocol === 'tcp:'
        ? null
        : { path: `${url.pathname}${url.search}`, headers: Object.fromEntries(headers) },
    isExpected: (status) => status >= least && status <= greatest,
    expected:
      least === DEFAULT_STATUS[0] && greatest === DEFAULT_STATUS[1]
        ? '2xx or 3xx'
        : `${least} to ${greatest}`,
    body,
  };
}

/** The status in the bytes of an answer so far; undefined: more bytes are needed; null: it is not HTTP. */
export function responseStatus(head: string): number | null | undefined {
  const incomplete = head.length < MAX_HEAD_BYTES ? undefined : null;
  let rest = head;
  for (;;) {
    const match = STATUS_LINE.exec(rest);
    if (!match) return !rest.includes('\n') && 'HTTP/1.'.startsWith(rest.slice(0, 7)) ? incomplete : null;
    const status = Number(match[1]);
    if (status >= 200 || status === 101) return status;
    // An interim answer (100, 103): the final one follows its blank line.
    const end = /\r?\n\r?\n/.exec(rest);
    if (!end) return incomplete;
    rest = rest.slice(end.index + end[0].length);
  }
}

const NOT_LISTENING = 'connection refused: nothing listens there';
const CONNECT_ERRORS = new Map([
  ['ECONNREFUSED', NOT_LISTENING],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the host name does not resolve'],
  ['EAI_AGAIN', 'the host name does not resolve at the moment'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['EADDRNOTAVAIL', 'the address does not exist on this machine'],
]);

function connectErrorText(error: NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }): string {
  // The error for a name with several addresses holds those of all addresses.
  const first = error.errors?.[0] ?? error;
  return CONNECT_ERRORS.get(first.code ?? '') ?? first.message;
}

const statusError = ({ isExpected, expected }: ProbeTarget, status: number): string | null =>
  isExpected(status) ? null : `it answered ${status}; ${expected} is needed`;

/** The head of a request, as bytes. */
const requestText = ({ path, headers }: NonNullable<ProbeTarget['request']>): string =>
  [
    `GET ${path} HTTP/1.1`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n');

/** A connection, and the TCP socket below it. */
interface Dialed {
  socket: Socket;
  tcp: Socket;
}

type ProbeDial = (target: ProbeTarget, address: string) => Dialed;

const dialPlain: ProbeDial = (target, address) => {
  const tcp = connect({ host: address, port: target.port });
  return { socket: tcp, tcp };
};

async function dialSecure(): Promise<ProbeDial> {
  const tls = await import('node:tls');
  return (target, address) => {
    const { tcp } = dialPlain(target, address);
    const socket = tls.connect({
      socket: tcp,
      servername: isIP(target.host) === 0 ? target.host : '',
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: !target.isLoopback,
    });
    return { socket, tcp };
  };
}

/**
 * Probes one address with one connection and calls `onDone` once; `isConnected` tells whether the connection
 * was established. Returns a function that aborts the probe.
 */
type ProbeAddress = (
  target: ProbeTarget,
  address: string,
  dial: ProbeDial,
  onDone: (result: ProbeResult, isConnected: boolean) => void,
) => () => void;

/** The one result of a connection. */
function onlyResult({ socket, tcp }: Dialed, onDone: Parameters<ProbeAddress>[3]) {
  let isConnected = false;
  let isOver = false;
  const giveUp = (): void => {
    isOver = true;
    socket.destroy();
  };
  tcp.on('connect', () => {
    isConnected = !isSelfConnection(tcp);
    if (isConnected) return;
    // A close without a reset would keep the port from the service for a minute.
    tcp.resetAndDestroy();
    finish(null, NOT_LISTENING);
  });
  const finish = (status: number | null, error: string | null): void => {
    if (isOver) return;
    giveUp();
    onDone({ status, error }, isConnected);
  };
  return { giveUp, finish, isOver: () => isOver };
}

const probeHead: ProbeAddress = (target, address, dial, onDone) => {
  const { isSecure, request } = target;
  const dialed = dial(target, address);
  const { socket } = dialed;
  const { finish, giveUp, isOver } = onlyResult(dialed, onDone);
  let head = '';
  socket.on('error', (error) => finish(null, connectErrorText(error)));
  socket.on('close', () => finish(null, 'the connection was closed without an answer'));
  socket.on('connect', () => {
    if (request === null) finish(null, null);
  });
  socket.on(isSecure ? 'secureConnect' : 'connect', () => {
    if (!isOver() && request !== null) socket.write(requestText(request));
  });
  socket.on('data', (bytes: Buffer) => {
    head += bytes.toString('latin1');
    const status = responseStatus(head);
    if (status === null) finish(null, 'what it answers is not HTTP/1');
    else if (status !== undefined) finish(status, statusError(target, status));
  });
  return giveUp;
};

/** For probes that check the body: Node's own HTTP decodes it, at twice the cost. */
const probeBody: ProbeAddress = (target, address, dial, onDone) => {
  const dialed = dial(target, address);
  const { socket } = dialed;
  const { finish, giveUp } = onlyResult(dialed, onDone);
  const request = httpRequest({ ...target.request, createConnection: () => socket, setHost: false });
  request.on('error', (error) => finish(null, connectErrorText(error)));
  request.on('response', (response) => {
    const status = response.statusCode ?? 0;
    const wrongStatus = statusError(target, status);
    let body = Buffer.alloc(0);
    const judge = (): void => {
      const { body: regex } = target;
      const isExpected = regex?.test(body.toString('utf8').slice(0, regex.reach)) ?? true;
      finish(status, wrongStatus ?? (isExpected ? null : `it answered ${status} with another body`));
    };
    response.on('data', (bytes: Buffer) => {
      body = Buffer.concat([body, bytes.subarray(0, CHECK.maxBodyBytes - body.length)]);
      if (wrongStatus !== null || body.length === CHECK.maxBodyBytes) judge();
    });
    response.on('end', judge);
    response.on('error', (error) => finish(status, connectErrorText(error)));
  });
  request.end();
  return giveUp;
};

/**
 * Probes over real sockets, without a limit on concurrency. `localhost` is tried in both address families.
 */
export function socketProbe(clock: Clock): Probe {
  return (question, limitMs, onDone) => {
    const target = probeTargetOf(question);
    const probeAddress = target.body && target.request ? probeBody : probeHead;
    let leaveAddress = (): void => {};
    let isOver = false;
    const giveUp = (): void => {
      isOver = true;
      cancelLimit();
      leaveAddress();
    };
    const finish = (result: ProbeResult): void => {
      giveUp();
      onDone(result);
    };
    const cancelLimit = clock.after(limitMs, () =>
      finish({ status: null, error: `no answer within ${Math.round(limitMs)} ms` }),
    );
    // When no address accepts a connection, the result of the first one counts.
    const tryAddresses = (
      dial: ProbeDial,
      [address, ...others]: readonly string[],
      first: ProbeResult | null,
    ): void => {
      if (isOver || address === undefined) return;
      leaveAddress = probeAddress(target, address, dial, (result, isConnected) => {
        if (isConnected) finish(result);
        else if (others.length > 0) tryAddresses(dial, others, first ?? result);
        else finish(first ?? result);
      });
    };
    if (target.isSecure) void dialSecure().then((dial) => tryAddresses(dial, target.addresses, null));
    else tryAddresses(dialPlain, target.addresses, null);
    return giveUp;
  };
}

/**
 * `probe` with at most `maxConcurrent` under way. The others wait in order of arrival. One that takes longer
 * than `READY_CHECK.slowMs` no longer counts, so that services that do not answer delay no others.
 */
export function limitProbes<Q>(
  probe: AskProbe<Q>,
  clock: Clock,
  maxConcurrent: number = READY_CHECK.maxConcurrent,
): AskProbe<Q> {
  const queue = new Set<() => void>();
  let running = 0;
  const enter = (): (() => void) => {
    running += 1;
    let isCounted = true;
    const leave = (): void => {
      cancelSlow();
      if (!isCounted) return;
      isCounted = false;
      running -= 1;
      const [next] = queue;
      if (!next) return;
      queue.delete(next);
      next();
    };
    const cancelSlow = clock.after(READY_CHECK.slowMs, leave);
    return leave;
  };
  return (question, limitMs, onDone) => {
    let cancel: (() => void) | null = null;
    let isOver = false;
    const start = (): void => {
      const leave = enter();
      const cancelProbe = probe(question, limitMs, (result) => {
        isOver = true;
        leave();
        onDone(result);
      });
      cancel = () => {
        cancelProbe();
        leave();
      };
    };
    if (running < maxConcurrent) start();
    else queue.add(start);
    return () => {
      if (isOver) return;
      isOver = true;
      queue.delete(start);
      cancel?.();
    };
  };
}
