// Forwards requests to another Berth unchanged, and its answers back: docs/reference.md "Shared database".
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { PASSED_ON } from '../../protocol/cloud_views.ts';
import { ERRORS, fail, isErrorCode } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import { FORWARDING } from '../../settings/cloud_limits.ts';

/** Where the other Berth listens. */
export interface ForwardTarget {
  host: string;
  port: number;
}

/** Headers of a single connection; the next one sets its own. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', 'expect']);

/** Without a length, Node would send an empty body in chunks. */
const WITHOUT_BODY: readonly string[] = ['Content-Length', '0'];

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;

/** Header names and values in turn, as Node reads and writes them, without those in `without`. */
function passedHeaders(raw: readonly string[], without: ReadonlySet<string> = OF_CONNECTION): string[] {
  const passed: string[] = [];
  for (let at = 0; at < raw.length; at += 2) {
    const [name = '', value = ''] = raw.slice(at, at + 2);
    if (!without.has(name.toLowerCase())) passed.push(name, value);
  }
  return passed;
}

const ANSWER_WITHOUT: ReadonlySet<string> = new Set([...OF_CONNECTION, 'transfer-encoding']);

/** What is known of paths. */
export interface ForwardedPaths {
  /** Whether requests for it are passed on. */
  passes(path: string): boolean;
  /** Whether it is served without a token. */
  isPublic(path: string): boolean;
  /** The headers to add to a request; null: it is answered here. */
  addedHeaders(path: string, query: string, host: string): readonly string[] | null;
  /** The value of the header PASSED_ON of a request by the client at `address`. */
  passedOn(address: string): string;
}

export class Forwarder {
  private readonly target: () => ForwardTarget | null;
  private readonly paths: ForwardedPaths;
  private readonly agent = new http.Agent({
    keepAlive: true,
    maxSockets: FORWARDING.maxConnections,
    maxFreeSockets: FORWARDING.maxIdle,
    timeout: FORWARDING.idleMs,
  });

  /** Requests whose answer is not complete yet. */
  private readonly open = new Set<http.ClientRequest>();

  /** `target`: null while requests are answered here. */
  constructor(target: () => ForwardTarget | null, paths: ForwardedPaths) {
    this.target = target;
    this.paths = paths;
  }

  /** Forwards a request; false: it must be answered here. `onTrusted`: the other Berth knows its token. */
  forward(req: IncomingMessage, res: ServerResponse, onTrusted: () => void): boolean {
    const target = this.target();
    const [path = '', query = ''] = (req.url ?? '').split('?');
    // Two Berths that each take the other for the holder of the clusters would forward a request forever.
    const isPassedOn = req.headers[PASSED_ON] !== undefined;
    if (target === null || isPassedOn || !this.paths.passes(path)) return false;
    const added = this.paths.addedHeaders(path, query, req.headers.host ?? '');
    if (added === null) return false;
    const upstream = http.request({
      ...target,
      agent: this.agent,
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      headers: [
        ...passedHeaders(req.rawHeaders),
        ...(hasBody(req) ? [] : WITHOUT_BODY),
        ...added,
        ...[PASSED_ON, this.paths.passedOn(req.socket.remoteAddress ?? '')],
      ],
      setHost: false,
    });
    // Only limits connecting, in case the peer is gone; an answer may take long.
    upstream.setTimeout(FORWARDING.connectTimeoutMs, () => {
      if (upstream.socket?.connecting) upstream.destroy(new Error('it does not accept connections'));
    });
    upstream.on('response', (answer) => {
      const { statusCode: status = 502 } = answer;
      // Anyone may get any other answer, an answer on a public path, or one to a preflight.
      const isTrusting = status < 300 && req.method !== 'OPTIONS' && !this.paths.isPublic(path);
      if (isTrusting) onTrusted();
      const headers = passedHeaders(answer.rawHeaders, ANSWER_WITHOUT);
      // The rest of a refused body is not read, so no other request can follow it.
      if (!req.complete) headers.push('Connection', 'close');
      res.writeHead(status, headers);
      // The head of an event stream must be sent before the first event.
      res.flushHeaders();
      answer.on('error', () => res.destroy());
      answer.pipe(res);
    });
    this.open.add(upstream);
    upstream.on('error', () => refuse(res));
    res.on('close', () => {
      this.open.delete(upstream);
      upstream.destroy();
    });
    req.pipe(upstream);
    return true;
  }

  /**
   * Has the other Berth decide whether `token` may read `path`, by a request for it. Rejects with its
   * refusal, or with daemon_busy if it does not decide. null: there is no other Berth.
   */
  authorize(path: string, token: string): Promise<void> | null {
    const target = this.target();
    return target && this.askFor(target, path, token);
  }

  private askFor(target: ForwardTarget, path: string, token: string): Promise<void> {
    const headers = { Authorization: `Bearer ${token}`, [PASSED_ON]: '1' };
    const signal = AbortSignal.timeout(FORWARDING.verdictTimeoutMs);
    const asked = http.get({ ...target, agent: this.agent, path, headers, signal });
    this.open.add(asked);
    asked.on('close', () => this.open.delete(asked));
    return new Promise((resolve, reject) => {
      const giveUp = (): void => reject(fail('daemon_busy', NO_ANSWER));
      asked.on('error', giveUp).on('response', (answer) => {
        const { statusCode = 502 } = answer;
        if (statusCode < 300) {
          answer.resume();
          resolve();
        } else
          text(answer)
            .then((body) => reject(refusalOf(body)))
            .catch(giveUp);
      });
    });
  }

  /** Ends all forwarded requests, because the clusters have changed hands. Clients are told to try again. */
  cut(): void {
    for (const upstream of this.open) upstream.destroy(new Error("the clusters are another Berth's now"));
  }

  /** Cuts everything, and ends the connections. */
  close(): void {
    this.cut();
    this.agent.destroy();
  }
}

const NO_ANSWER = 'the Berth that has the clusters does not answer';

/** The error in the answer of the other Berth. */
function refusalOf(body: string): Failure {
  const { code, message }: { code?: unknown; message?: unknown } = JSON.parse(body);
  const isKnown = typeof code === 'string' && isErrorCode(code);
  return isKnown ? fail(code, String(message)) : fail('daemon_busy', NO_ANSWER);
}

/** The answer when the other Berth ends or does not respond: another one may take over soon. */
function refuse(res: ServerResponse): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { status, hint } = ERRORS.daemon_busy;
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Retry-After': '1' });
  res.end(JSON.stringify({ code: 'daemon_busy', message: NO_ANSWER, hint }));
}
