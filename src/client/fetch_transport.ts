// The transport for browsers: fetch and WebSocket.
import { BerthError } from './errors.ts';
import type { HttpAnswer, HttpRequest, Transport } from './transport.ts';

async function* decoded(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
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
    await reader.cancel();
  }
}

async function request({ method, url, headers, body, signal }: HttpRequest): Promise<HttpAnswer> {
  let response: Response;
  try {
    response = await fetch(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      cache: 'no-store',
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new BerthError('unreachable', `no daemon answers at ${new URL(url).host}`, {}, { cause: error });
  }
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    text: () => response.text(),
    chunks: () => decoded(response.body),
  };
}

/** Requests by fetch, WebSockets by the browser's own. */
export const fetchTransport: Transport = {
  request,
  openWebSocket: async (url, protocols, listener) => {
    const socket = new WebSocket(url, protocols);
    socket.binaryType = 'arraybuffer';
    let opened = false;
    socket.onopen = () => {
      opened = true;
      listener.opened();
    };
    socket.onmessage = ({ data }: MessageEvent<string | ArrayBuffer>) =>
      typeof data === 'string' ? listener.text(data) : listener.bytes(new Uint8Array(data));
    socket.onclose = ({ code, reason }) => (opened ? listener.closed(code, reason) : listener.refused(0, ''));
    return {
      send: (message) => socket.send(typeof message === 'string' ? message : new Uint8Array(message)),
      close: () => socket.close(1000),
    };
  },
};
