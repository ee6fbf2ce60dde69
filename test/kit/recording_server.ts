// A small server that speaks the daemon's protocol: it records requests and answers as the test says.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';
import { ALL_OPERATIONS } from '../../src/api/operations.ts';
import { REQUIRED_FIELDS } from '../../src/api/required_fields.ts';
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

/** The least answer that a client takes for one of `asked`'s operation: each required field is an empty list. */
export function leastAnswer({ method, path }: Asked): unknown {
  const target = path.split('?')[0] ?? '';
  const matches = ALL_OPERATIONS.filter((one) => one.method === method).filter((one) =>
    new RegExp(`^${one.path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}$`).test(target),
  );
  // A fixed path comes before the pattern that also matches it.
  const [operation] = matches.sort((a, b) => a.path.split('{').length - b.path.split('{').length);
  const fields = REQUIRED_FIELDS[operation?.answer ?? ''];
  if (!fields) throw new Error(`${method} ${path} has no answer`);
  return fields === 'list' ? [] : Object.fromEntries(fields.map((field) => [field, []]));
}

afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
