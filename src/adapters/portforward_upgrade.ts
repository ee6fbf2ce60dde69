// The request that turns a connection to the API server into a SPDY connection to a pod.
import { request } from 'node:http';
import type { Socket } from 'node:net';
import { TETHER } from '../limits.ts';
import type { Door } from './dial.ts';
import { answerSetback, errorSetback, forwardPath, type PodName, type Setback, said } from './portforward.ts';

const ANSWER_BYTES = 16 * 1024;

/**
 * Connects and upgrades. Resolves with the connection, or with why there is none: `lost` when the server takes the
 * connection and the request stays without an answer. It rejects never.
 */
export async function upgradeToSpdy(door: Door, pod: PodName, stop: AbortSignal): Promise<Socket | Setback> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TETHER.dialMs)]);
  try {
    const headers = { ...door.headers(), host: door.host };
    const socket = await door.connect(signal);
    const answer = await ask(socket, forwardPath(door, pod), headers, signal);
    if (answer !== socket) socket.destroy();
    return answer;
  } catch (error) {
    return errorSetback(error);
  }
}

function ask(
  socket: Socket,
  path: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Socket | Setback> {
  return new Promise((resolve) => {
    const asked = request({
      createConnection: () => socket,
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
    // Not the request's own option: that would go on to end the connection after the upgrade.
    const stop = (): void => {
      asked.destroy(new Error('the API server does not answer'));
    };
    signal.addEventListener('abort', stop);
    asked.on('upgrade', (response, upgraded, head) => {
      signal.removeEventListener('abort', stop);
      // What came behind the upgrade is read first, by whoever listens next.
      if (head.length > 0) upgraded.unshift(head);
      if (response.headers.upgrade?.toLowerCase() === 'spdy/3.1') resolve(socket);
      else resolve({ code: 'unsupported', text: said(`upgraded to ${response.headers.upgrade}`) });
    });
    asked.on('response', (response) => {
      let body = '';
      response.setEncoding('utf8');
      const done = (): void => {
        // An answer that upgrades nothing is no way to a pod, whatever its status.
        resolve(answerSetback(response.statusCode ?? 0, body));
        asked.destroy();
      };
      response.on('data', (part: string) => {
        body += part;
        if (body.length > ANSWER_BYTES) done();
      });
      response.on('close', done);
    });
    asked.on('error', (error) => resolve({ code: 'lost', text: said(error.message) }));
    asked.end();
  });
}
