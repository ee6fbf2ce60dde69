// How requests are framed by each of Node's ways: a socket, node:http and node:https.
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, it, vi } from 'vitest';
import { nodeTransport } from '../../src/client/node_transport.ts';
import { afterThisTest } from '../kit/actors.ts';
import { certificate } from '../kit/certificates.ts';

/** A server of `scheme` that records the requests, and answers each with {}. */
async function recording(scheme: string): Promise<{ url: string; asked: IncomingMessage[] }> {
  const asked: IncomingMessage[] = [];
  const answer: RequestListener = (request, response) => {
    asked.push(request);
    request.resume().on('end', () => response.end('{}'));
  };
  const identity = (): https.ServerOptions => certificate({ commonName: 'localhost', names: ['127.0.0.1'] });
  const server = scheme === 'https' ? https.createServer(identity(), answer) : createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  afterThisTest(() => void server.close());
  return { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/x`, asked };
}

it.each([
  ['http', true],
  ['http', false],
  ['https', true],
  ['https', false],
])('a change without a body over %s (buffered: %s) has the length 0', async (scheme, isBuffered) => {
  // The certificate is the test's own.
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  afterThisTest(() => void vi.unstubAllEnvs());
  const { url, asked } = await recording(scheme);
  for (const [method, body] of [['POST'], ['PUT'], ['DELETE'], ['GET'], ['POST', '"ü"']] as const) {
    const sent = { method, url, headers: [], access: null, isBuffered, ...(body && { body }) };
    expect(await (await nodeTransport.request(sent)).text()).toBe('{}');
  }
  expect(asked.map(({ method, headers }) => [method, headers['content-length']])).toEqual([
    ['POST', '0'],
    ['PUT', '0'],
    ['DELETE', '0'],
    ['GET', undefined],
    ['POST', '4'],
  ]);
  expect(asked.flatMap(({ headers }) => headers['transfer-encoding'] ?? [])).toEqual([]);
});
