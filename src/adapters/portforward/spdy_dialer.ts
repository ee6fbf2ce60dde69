// The request that upgrades a connection to the API server to carry SPDY to a pod.
import { type IncomingMessage, request } from 'node:http';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { ClusterDialer } from '../cluster_dialer.ts';
import {
  dialError,
  errorLine,
  type ForwardError,
  forwardPath,
  type PodName,
  responseError,
} from './transport.ts';

const MAX_ERROR_BODY_BYTES = 16 * 1024;

/**
 * Connects and upgrades, until `signal` aborts. Resolves with what carries SPDY, or with an error: `lost` if
 * the server accepts the connection but does not answer the request. Never rejects.
 */
export type SpdyDialer = (
  dialer: ClusterDialer,
  pod: PodName,
  signal: AbortSignal,
) => Promise<Duplex | ForwardError>;

/** The request to upgrade a new connection. */
export interface UpgradeRequest {
  connection: Socket;
  path: string;
  headers: Record<string, string>;
  /** Aborts when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** A dialer that makes a connection and upgrades it with `sendUpgrade`. */
export const spdyDialerWith =
  (sendUpgrade: (request: UpgradeRequest) => Promise<Duplex | ForwardError>): SpdyDialer =>
  async (dialer, pod, signal) => {
    try {
      const headers = { ...dialer.headers(), host: dialer.host };
      const connection = await dialer.connect(signal);
      const answer = await sendUpgrade({ connection, path: forwardPath(dialer, pod), headers, signal });
      if (answer instanceof Duplex) return answer;
      connection.destroy();
      return { ...answer, text: dialer.redact(answer.text) };
    } catch (error) {
      return dialError(error);
    }
  };

/** Why the server refused the upgrade, whatever its status. The caller closes the connection. */
export function upgradeError(response: IncomingMessage): Promise<ForwardError> {
  return new Promise((resolve) => {
    let body = '';
    response.setEncoding('utf8');
    const done = (): void => resolve(responseError(response.statusCode ?? 0, body));
    response.on('data', (part: string) => {
      body += part;
      if (body.length > MAX_ERROR_BODY_BYTES) done();
    });
    response.on('close', done);
  });
}

/** SPDY directly on the connection, which every API server supports. */
export const dialSpdy = spdyDialerWith(
  ({ connection, path, headers, signal }) =>
    new Promise((resolve) => {
      const asked = request({
        createConnection: () => connection,
        method: 'POST',
        path,
        headers: {
          ...headers,
          connection: 'Upgrade',
          upgrade: 'SPDY/3.1',
          'x-stream-protocol-version': 'portforward.k8s.io',
          'content-length': '0',
        },
      });
      // Not the request's `signal` option, which would still close the connection after the upgrade.
      const stop = (): void => {
        asked.destroy(new Error('the API server does not answer'));
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop);
      asked.on('upgrade', (response, upgraded, head) => {
        signal.removeEventListener('abort', stop);
        // Bytes that arrived after the upgrade are read first by the next listener.
        if (head.length > 0) upgraded.unshift(head);
        if (response.headers.upgrade?.toLowerCase() === 'spdy/3.1') resolve(connection);
        else resolve({ code: 'unsupported', text: errorLine(`upgraded to ${response.headers.upgrade}`) });
      });
      asked.on('response', (response) => void upgradeError(response).then(resolve));
      asked.on('error', (error) => resolve({ code: 'lost', text: errorLine(error.message) }));
      asked.end();
    }),
);
