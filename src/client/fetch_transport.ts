// The transport for browsers: fetch and WebSocket.
import { base64url } from './base64url.ts';
import { BerthError } from './errors.ts';
import { type Access, authorization, type ProofCrypto, proveServer } from './prove_server.ts';
import type { HttpAnswer, HttpRequest, Transport } from './transport.ts';

async function* decoded(body: ReadableStream<Uint8Array> | null, onEnd: () => void): AsyncGenerator<string> {
  if (!body) return;
  const reader = body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    onEnd();
    await reader.cancel();
  }
}

/** How long a proof is valid, because fetch does not say on which connection a request is sent. */
const PROOF_MS = 2_000;
const PROOF_DEADLINE_MS = 10_000;

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Browsers offer cryptography only in secure contexts: https:, and http: on loopback. */
function assertSecure(): void {
  if (globalThis.isSecureContext === false)
    throw new BerthError('unproven', 'this page is not on a loopback address');
}

const webCrypto: ProofCrypto = {
  nonce: () => base64url(crypto.getRandomValues(new Uint8Array(16))),
  sha256: async (text) => {
    assertSecure();
    return base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', bytesOf(text))));
  },
  hmac: async (secret, text) => {
    assertSecure();
    const algorithm = { name: 'HMAC', hash: 'SHA-256' };
    const key = await crypto.subtle.importKey('raw', bytesOf(secret), algorithm, false, ['sign']);
    return base64url(new Uint8Array(await crypto.subtle.sign('HMAC', key, bytesOf(text))));
  },
};

/**
 * The error of a request without an answer. A browser does not tell a page whether nobody listens or the page
 * may not read the answer.
 */
function unreachable(url: string, cause: unknown): BerthError {
  const { host, origin } = new URL(url);
  const page = typeof location === 'undefined' ? origin : location.origin;
  if (page === origin) return new BerthError('unreachable', `no daemon answers at ${host}`, {}, { cause });
  const message = `no daemon answers at ${host}, or it does not let pages of ${page} call`;
  const hint = `Is it running? Its setting allowed_origins must have "${page}", and auth.token must be set.`;
  return new BerthError('unreachable', message, { hint }, { cause });
}

async function fetchAnswer({ method, url, headers, body, signal }: HttpRequest): Promise<Response> {
  try {
    return await fetch(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      cache: 'no-store',
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw unreachable(url, error);
  }
}

/**
 * Makes servers prove themselves, and remembers that for a moment. After a failed connection another program
 * may have the port, so it invalidates every proof.
 */
class ProvenServers {
  private readonly proofs = new Map<string, { bearer: Promise<string | null>; at: number }>();
  private readonly onBearer: (bearer: string) => void;

  constructor(onBearer: (bearer: string) => void) {
    this.onBearer = onBearer;
  }

  /** The bearer for the server of `url`; null: none. */
  bearer({ url, access }: Pick<HttpRequest, 'url' | 'access'>): Promise<string | null> {
    if (!access) return Promise.resolve(null);
    const { origin, protocol } = new URL(url);
    // The certificate is the proof.
    if (protocol === 'https:') return Promise.resolve(access.key.secret);
    const which = JSON.stringify([origin, access.proofPath, access.key]);
    const known = this.proofs.get(which);
    if (known && performance.now() - known.at < PROOF_MS) return known.bearer;
    const bearer = this.prove(origin, access);
    this.proofs.set(which, { bearer, at: performance.now() });
    bearer.catch(() => this.forget());
    return bearer;
  }

  forget(): void {
    this.proofs.clear();
  }

  private async prove(origin: string, access: Access): Promise<string | null> {
    // Several requests share this proof, so none of their signals may abort it.
    const signal = AbortSignal.timeout(PROOF_DEADLINE_MS);
    const bearer = await proveServer(origin, access, webCrypto, async (path) => {
      const answer = await fetchAnswer({
        method: 'GET',
        url: origin + path,
        headers: [],
        access: null,
        signal,
      });
      return { status: answer.status, body: await answer.text() };
    }).catch((error: unknown) => {
      throw signal.aborted ? new BerthError('unreachable', `no proof comes from ${origin}`) : error;
    });
    if (bearer !== null) this.onBearer(bearer);
    return bearer;
  }
}

async function request(sent: HttpRequest, servers: ProvenServers): Promise<HttpAnswer> {
  const bearer = await servers.bearer(sent);
  const headers = [...sent.headers, ...authorization(bearer)];
  const response = await fetchAnswer({ ...sent, headers }).catch((error: unknown) => {
    servers.forget();
    throw error;
  });
  if (response.status === 401) servers.forget();
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    text: () => response.text(),
    chunks: () => decoded(response.body, () => servers.forget()),
  };
}

/**
 * Requests by fetch, WebSockets by the browser's own. `onBearer` gets the bearer of every server that has
 * proven itself.
 */
export function createFetchTransport(onBearer: (bearer: string) => void = () => {}): Transport {
  const servers = new ProvenServers(onBearer);
  return {
    request: (sent) => request(sent, servers),
    openWebSocket: async ({ url, protocols, access }, listener) => {
      const bearer = await servers.bearer({ url, access });
      const socket = new WebSocket(url.replace(/^http/, 'ws'), protocols(bearer));
      socket.binaryType = 'arraybuffer';
      let opened = false;
      socket.onopen = () => {
        opened = true;
        listener.opened();
      };
      socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
        typeof data === 'string' ? listener.text(data) : listener.bytes(new Uint8Array(data));
      socket.onclose = ({ code, reason }) => {
        servers.forget();
        if (opened) listener.closed(code, reason);
        else listener.refused(0, '');
      };
      return {
        send: (message) => {
          // Browsers print an error for what is sent after the close.
          if (socket.readyState !== WebSocket.OPEN) return;
          socket.send(typeof message === 'string' ? message : new Uint8Array(message));
        },
        close: () => socket.close(1000),
      };
    },
  };
}
