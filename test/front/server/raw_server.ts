// Serves a handler on one of the two servers, and sends requests as raw bytes.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BodyBudget } from '../../../src/front/server/body_budget.ts';
import {
  type HttpExchange,
  type HttpServer,
  ResponseHeaders,
  type ServerOptions,
} from '../../../src/front/server/http_server.ts';
import { chooseServer, listenOnAll, type ServerKind } from '../../../src/front/server/listen.ts';
import { HTTP } from '../../../src/settings/limits.ts';
import { afterThisTest, tempDir } from '../../kit/actors.ts';
import { certificate } from '../../kit/certificates.ts';

export const HEAD = new ResponseHeaders(['Content-Type', 'text/plain', 'X-One', '1']);
export const FILLER = Buffer.from(':\n\n');

export interface Served {
  server: HttpServer;
  port: number;
  defects: unknown[];
}

export async function serve(
  kind: ServerKind,
  handle: (exchange: HttpExchange) => void,
  more: Partial<ServerOptions> = {},
  bind = '127.0.0.1',
): Promise<Served> {
  const defects: unknown[] = [];
  const create = await chooseServer(() => {}, kind);
  const server = create({
    handle,
    webSocketPaths: ['/ws/:name/attach'],
    maxMessageBytes: 64 * 1024,
    bodies: new BodyBudget(HTTP.maxBodyBytesInFlight),
    onDefect: (error) => defects.push(error),
    ...more,
  });
  afterThisTest(() => server.close());
  const port = await listenOnAll(server, { bind, port: 0 });
  return { server, port, defects };
}

export const later = (work: () => void): void => {
  setImmediate(work);
};
export const text = (exchange: HttpExchange, body: string, status = 200) => exchange.send(status, HEAD, body);
export const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
export const post = (path: string, head: string, body = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\n${head}\r\n${body}`;

/** The data of chunks. */
export function dechunk(body: string): string {
  let data = '';
  for (let at = 0; ; ) {
    const end = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.slice(at, end), 16);
    if (!size) return data;
    data += body.slice(end + 2, end + 2 + size);
    at = end + 2 + size + 2;
  }
}

/** The files of a certificate of `localhost`. */
export function tlsFiles(): { cert: string; key: string } {
  const folder = tempDir();
  const made = certificate({ commonName: 'localhost', names: ['localhost'] });
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, made.cert);
  writeFileSync(files.key, made.key);
  return files;
}
