// Passes requests on to another Berth as they are, and its answers back: docs/reference.md "Shared database".
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { ERRORS } from '../../protocol/errors.ts';
import { FORWARDING } from '../../settings/cloud_limits.ts';

/** Where the other Berth listens. */
export interface ForwardTarget {
  host: string;
  port: number;
}

/** Marks what another Berth has passed on. */
const PASSED_ON = 'berth-passed-on';

/** Headers of one connection, which the next one has its own of. */
const OF_CONNECTION = new Set(['connection', 'keep-alive', 'proxy-connection', 'expect']);

/** Names and values in turn, as Node reads and writes them, without those of the connection. */
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

  /** Those that have no whole answer yet. */
  private readonly open = new Set<http.ClientRequest>();

  /** `target`: null while requests are answered here. `passes`: whether requests for a path are passed on. */
  constructor(target: () => ForwardTarget | null, passes: (path: string) => boolean) {
    this.target = target;
    this.passes = passes;
  }

  /** Passes a request on; false: it is to be answered here. `onTrusted`: the other Berth has accepted it. */
  forward(req: IncomingMessage, res: ServerResponse, onTrusted: () => void): boolean {
    const target = this.target();
    const [path = ''] = (req.url ?? '').split('?');
    // Two that take each other for the one that has the clusters would pass a request on for ever.
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
    // Of a peer that has gone without a word; an answer may take long.
    upstream.setTimeout(FORWARDING.connectTimeoutMs, () => {
      if (upstream.socket?.connecting) upstream.destroy(new Error('it does not accept connections'));
    });
    upstream.on('response', (answer) => {
      const { statusCode: status = 502 } = answer;
      if (status !== 401 && status !== 403) onTrusted();
      res.writeHead(status, passedHeaders(answer.rawHeaders, ANSWER_WITHOUT));
      // Heads of event streams are due before the first event.
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

  /** Ends everything that was passed on: the clusters are another's now. The client is told to try again. */
  cut(): void {
    for (const upstream of this.open) upstream.destroy(new Error("the clusters are another Berth's now"));
  }

  /** Cuts everything, and ends the connections. */
  close(): void {
    this.cut();
    this.agent.destroy();
  }
}

/** The answer where the other Berth ends or does not answer: another one may have its place soon. */
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
