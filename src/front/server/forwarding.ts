// Forwards requests to another Berth unchanged, and its answers back: docs/reference.md "Shared database".
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { ERRORS } from '../../protocol/errors.ts';
import { FORWARDING } from '../../settings/cloud_limits.ts';

/** Where the other Berth listens. */
export interface ForwardTarget {
  host: string;
  port: number;
}

/** Marks a request that another Berth has forwarded. */
const PASSED_ON = 'berth-passed-on';

/** Headers of a single connection; the next one sets its own. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', 'expect']);

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

export class Forwarder {
  private readonly target: () => ForwardTarget | null;
  private readonly passes: (path: string) => boolean;
  private readonly agent = new http.Agent({
    keepAlive: true,
    maxSockets: FORWARDING.maxConnections,
    maxFreeSockets: FORWARDING.maxIdle,
    timeout: FORWARDING.idleMs,
  });

  /** Requests whose answer is not complete yet. */
  private readonly open = new Set<http.ClientRequest>();

  /** `target`: null while requests are answered here. `passes`: whether requests for a path are forwarded. */
  constructor(target: () => ForwardTarget | null, passes: (path: string) => boolean) {
    this.target = target;
    this.passes = passes;
  }

  /** Forwards a request; false: it must be answered here. `onTrusted`: the other Berth has accepted it. */
  forward(req: IncomingMessage, res: ServerResponse, onTrusted: () => void): boolean {
    const target = this.target();
    const [path = ''] = (req.url ?? '').split('?');
    // Two Berths that each take the other for the holder of the clusters would forward a request forever.
    const isPassedOn = req.headers[PASSED_ON] !== undefined;
    if (target === null || isPassedOn || !this.passes(path)) return false;
    const upstream = http.request({
      ...target,
      agent: this.agent,
      method: req.method ?? 'GET',
      path: req.url ?? '/',
      headers: [...passedHeaders(req.rawHeaders), PASSED_ON, '1'],
      setHost: false,
    });
    // Only limits connecting, in case the peer is gone; an answer may take long.
    upstream.setTimeout(FORWARDING.connectTimeoutMs, () => {
      if (upstream.socket?.connecting) upstream.destroy(new Error('it does not accept connections'));
    });
    upstream.on('response', (answer) => {
      const { statusCode: status = 502 } = answer;
      if (status !== 401 && status !== 403) onTrusted();
      res.writeHead(status, passedHeaders(answer.rawHeaders, ANSWER_WITHOUT));
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

/** The answer when the other Berth ends or does not respond: another one may take over soon. */
function refuse(res: ServerResponse): void {
  if (res.headersSent) {
    res.destroy();
    return;
  }
  const { status, hint } = ERRORS.daemon_busy;
  const message = 'the Berth that has the clusters does not answer';
  res.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Retry-After': '1' });
  res.end(JSON.stringify({ code: 'daemon_busy', message, hint }));
}
