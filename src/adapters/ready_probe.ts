// Ready-checks over real sockets, docs/reference.md "Ready-check": one probe of a ready URL, and the gate
// that bounds how many run at once. Requests are written by hand: a refused probe costs 45 µs of processor
// here, with node:http 73, an answered one 103 against 190, and 200 starting services make 10,000 of them a
// second.
import { connect, isIP, type Socket } from 'node:net';
import { unescape as percentDecoded } from 'node:querystring'; // unlike decodeURIComponent it never throws
import type { Clock } from '../runtime/actor.ts';
import { READY_CHECK } from '../settings/limits.ts';
import { unbracketedHost } from './url_host.ts';

/** What one probe found; it passed when `error` is null. */
export interface ProbeResult {
  /** The HTTP status; null when there was none. */
  status: number | null;
  error: string | null;
}

/**
 * Probes `url` (http, https or tcp) once, for at most `limitMs`, and then calls `done` once. Returns a function that
 * gives it up: `done` is not called any more.
 */
export type Probe = (url: string, limitMs: number, done: (outcome: ProbeResult) => void) => () => void;

interface ProbeTarget {
  host: string;
  port: number;
  isSecure: boolean;
  /** Addresses to try one after the other. */
  addresses: readonly string[];
  isLoopback: boolean;
  /** null: a connection is all that is asked for. */
  request: string | null;
}

const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: [^\r\n]*)?\r?\n/;
/** Interim answers and one status line fit in this many bytes, or it is no HTTP. */
const MAX_HEAD_BYTES = 16 * 1024;
const LOCALHOST = /^(?:localhost|.+\.localhost)\.?$/;
const LOOPBACK_ADDRESS = /^(?:127\..+|::1)$/;

/** The port that a URL asks, which leaves out the one of its protocol. */
export const urlPort = ({ port, protocol }: URL): number =>
  Number(port) || (protocol === 'https:' ? 443 : 80);

function probeTargetOf(text: string): ProbeTarget {
  const url = new URL(text);
  const host = unbracketedHost(url).toLowerCase();
  const secure = url.protocol === 'https:';
  const local = LOCALHOST.test(host);
  const login = `${percentDecoded(url.username)}:${percentDecoded(url.password)}`;
  const authorization =
    login === ':' ? '' : `Authorization: Basic ${Buffer.from(login).toString('base64')}\r\n`;
  return {
    host,
    port: urlPort(url),
    isSecure: secure,
    // The resolver does not know every name below localhost, and what listens may have taken either family only.
    addresses: local ? ['127.0.0.1', '::1'] : [host],
    isLoopback: local || (isIP(host) !== 0 && LOOPBACK_ADDRESS.test(host)),
    request:
      url.protocol === 'tcp:'
        ? null
        : `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUser-Agent: berth\r\nAccept: */*\r\n${authorization}Connection: close\r\n\r\n`,
  };
}

/** The status of an answer that has arrived so far; undefined: more is needed; null: it is no HTTP. */
export function responseStatus(head: string): number | null | undefined {
  const open = head.length < MAX_HEAD_BYTES ? undefined : null;
  let rest = head;
  for (;;) {
    const match = STATUS_LINE.exec(rest);
    if (!match) return !rest.includes('\n') && 'HTTP/1.'.startsWith(rest.slice(0, 7)) ? open : null;
    const status = Number(match[1]);
    if (status >= 200 || status === 101) return status;
    // An interim answer (100, 103): the real one follows its blank line.
    const end = /\r?\n\r?\n/.exec(rest);
    if (!end) return open;
    rest = rest.slice(end.index + end[0].length);
  }
}

const CONNECT_ERRORS = new Map([
  ['ECONNREFUSED', 'connection refused: nothing listens there'],
  ['ECONNRESET', 'the connection was reset'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the host name does not resolve'],
  ['EAI_AGAIN', 'the host name does not resolve at the moment'],
  ['EHOSTUNREACH', 'the host cannot be reached'],
  ['ENETUNREACH', 'the network cannot be reached'],
  ['EADDRNOTAVAIL', 'the address does not exist on this machine'],
]);

function connectErrorText(error: NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }): string {
  // A name with several addresses fails with all their errors in one.
  const first = error.errors?.[0] ?? error;
  return CONNECT_ERRORS.get(first.code ?? '') ?? first.message;
}

const statusError = (status: number): string | null =>
  status >= 200 && status < 400 ? null : `it answered ${status}; 2xx or 3xx is needed`;

type ProbeDial = (target: ProbeTarget, address: string) => Socket;

const dialPlain: ProbeDial = (target, address) => connect({ host: address, port: target.port });

async function dialSecure(): Promise<ProbeDial> {
  const tls = await import('node:tls');
  return (target, address) =>
    tls.connect({
      host: address,
      port: target.port,
      servername: isIP(target.host) === 0 ? target.host : '',
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: !target.isLoopback,
    });
}

/**
 * One connection to one address; `done` is told once, and whether there was a connection at all. Returns a function
 * that gives it up.
 */
function probeAddress(
  target: ProbeTarget,
  address: string,
  dial: ProbeDial,
  onDone: (outcome: ProbeResult, connected: boolean) => void,
): () => void {
  const socket = dial(target, address);
  let connected = false;
  let over = false;
  let head = '';
  const giveUp = (): void => {
    over = true;
    socket.destroy();
  };
  const finish = (status: number | null, error: string | null): void => {
    if (over) return;
    giveUp();
    onDone({ status, error }, connected);
  };
  socket.on('error', (error) => finish(null, connectErrorText(error)));
  socket.on('close', () => finish(null, 'the connection was closed without an answer'));
  socket.on('connect', () => {
    connected = true;
    if (target.request === null) finish(null, null);
  });
  socket.on(target.isSecure ? 'secureConnect' : 'connect', () => {
    if (!over && target.request !== null) socket.write(target.request);
  });
  socket.on('data', (bytes: Buffer) => {
    head += bytes.toString('latin1');
    const status = responseStatus(head);
    if (status === null) finish(null, 'what it answers is not HTTP/1');
    else if (status !== undefined) finish(status, statusError(status));
  });
  return giveUp;
}

/** Probes over real sockets, without a bound on how many. `localhost` is tried in both families. */
export function socketProbe(clock: Clock): Probe {
  return (url, limitMs, done) => {
    const target = probeTargetOf(url);
    let leave = (): void => {};
    let over = false;
    const giveUp = (): void => {
      over = true;
      cancelLimit();
      leave();
    };
    const finish = (outcome: ProbeResult): void => {
      giveUp();
      done(outcome);
    };
    const cancelLimit = clock.after(limitMs, () =>
      finish({ status: null, error: `no answer within ${Math.round(limitMs)} ms` }),
    );
    // Where no address can be connected to, what the first one said is told.
    const go = (
      dial: ProbeDial,
      [address, ...others]: readonly string[],
      first: ProbeResult | null,
    ): void => {
      if (over || address === undefined) return;
      leave = probeAddress(target, address, dial, (outcome, connected) => {
        if (connected) finish(outcome);
        else if (others.length > 0) go(dial, others, first ?? outcome);
        else finish(first ?? outcome);
      });
    };
    if (target.isSecure) void dialSecure().then((dial) => go(dial, target.addresses, null));
    else go(dialPlain, target.addresses, null);
    return giveUp;
  };
}

/** The same probe with at most `atOnce` under way; the others wait in line, first come first served. */
export function limitProbes(probe: Probe, maxConcurrent: number = READY_CHECK.maxConcurrent): Probe {
  const line = new Set<() => void>();
  let open = 0;
  const leave = (): void => {
    open -= 1;
    const [next] = line;
    if (!next) return;
    line.delete(next);
    next();
  };
  return (url, limitMs, done) => {
    let cancel: (() => void) | null = null;
    let over = false;
    const enter = (): void => {
      open += 1;
      cancel = probe(url, limitMs, (outcome) => {
        over = true;
        leave();
        done(outcome);
      });
    };
    if (open < maxConcurrent) enter();
    else line.add(enter);
    return () => {
      if (over) return;
      over = true;
      line.delete(enter);
      if (!cancel) return;
      cancel();
      leave();
    };
  };
}
