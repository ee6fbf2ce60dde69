// One request to a port of this machine on a connection of its own.
import http from 'node:http';

export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  text: string;
  /** The body, parsed when it is JSON. */
  body: any;
}

const isBytes = (value: unknown): value is string | Buffer =>
  typeof value === 'string' || Buffer.isBuffer(value);

/**
 * Sends text and bytes as they are and any other `body` as JSON, from the address `from`; resolves with the
 * whole response.
 */
export function send(
  port: number,
  method: string,
  path: string,
  { headers = {}, body, from }: { headers?: Record<string, string>; body?: unknown; from?: string } = {},
): Promise<Answer> {
  const payload = body === undefined ? undefined : isBytes(body) ? body : JSON.stringify(body);
  const framing =
    payload === undefined
      ? {}
      : { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(payload) };
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        ...{ host: '127.0.0.1', port, method, path, agent: false },
        ...(from !== undefined && { localAddress: from }),
        headers: { ...framing, ...headers },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const text = Buffer.concat(parts).toString();
          const isJson = String(response.headers['content-type']).startsWith('application/json');
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            body: isJson && text ? JSON.parse(text) : undefined,
          });
        });
      },
    );
    request.on('error', reject);
    request.end(payload);
  });
}
