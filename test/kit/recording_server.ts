// A small server that speaks the daemon's protocol: it records requests and answers as the test says.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';
import { type KnownTokens, proofFor } from './server_proof.ts';

export interface Asked {
  method: string;
  /** Path with query. */
  path: string;
  headers: http.IncomingHttpHeaders;
  body: string;
}

export interface Fake {
  url: string;
  port: number;
  asked: Asked[];
  server: http.Server;
}

type Answer = (asked: Asked, response: http.ServerResponse, count: number) => void;

const servers: http.Server[] = [];

/** With `tokens`, requests for a proof are answered and not recorded. */
export async function serve(answer: Answer, tokens: KnownTokens = {}): Promise<Fake> {
  const asked: Asked[] = [];
  const server = http.createServer(async (request, response) => {
    let body = '';
    for await (const part of request.setEncoding('utf8')) body += part;
    const one = { method: request.method ?? '', path: request.url ?? '', headers: request.headers, body };
    const proof = proofFor(one.path, one.headers.host ?? '', tokens);
    if (proof) return json(response, 200, proof);
    asked.push(one);
    answer(one, response, asked.length);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, asked, server };
}

export const json = (
  response: http.ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void => {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(body));
};

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
