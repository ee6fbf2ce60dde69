// An issuer of OpenID Connect on loopback: its document, its keys, and tokens of every kind.
import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterThisTest } from './actors.ts';

export interface SigningKey {
  kid: string;
  alg: 'RS256' | 'ES256';
  privateKey: KeyObject;
  publicKey: KeyObject;
}

export function newKey(kid: string, alg: SigningKey['alg'] = 'ES256'): SigningKey {
  const pair =
    alg === 'ES256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { kid, alg, ...pair };
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token with any head, signed by `key` as its algorithm says. */
export function jwt(key: SigningKey, claims: object, head: object = {}): string {
  const text = `${part({ alg: key.alg, kid: key.kid, typ: 'JWT', ...head })}.${part(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

/** A token that is signed with `secret`, as HS256. */
export function hmacJwt(secret: string | Buffer, kid: string, claims: object): string {
  const text = `${part({ alg: 'HS256', kid })}.${part(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** A token that nobody has signed. */
export const unsignedJwt = (kid: string, claims: object): string =>
  `${part({ alg: 'none', kid })}.${part(claims)}.`;

/** An answer of an issuer: JSON, unless it has a type of its own. */
export interface IssuerAnswer {
  status: number;
  body: unknown;
  headers?: Record<string, string>;
}

export interface Issuer {
  url: string;
  /** Those that it shows. */
  keys: SigningKey[];
  /** Paths that were asked for. */
  asked: string[];
  /** It answers nothing but errors. */
  isBroken: boolean;
  /** More fields of its document, or others. */
  document: Record<string, unknown>;
  /** What it answers at more paths, or others, to the form of a request. */
  routes: Map<string, (form: URLSearchParams) => IssuerAnswer | Promise<IssuerAnswer>>;
}

async function answerOf(issuer: Issuer, path: string, form: URLSearchParams): Promise<IssuerAnswer> {
  const route = issuer.routes.get(path);
  if (issuer.isBroken) return { status: 500, body: {} };
  if (route) return route(form);
  if (path === '/.well-known/openid-configuration') {
    const document = { issuer: issuer.url, jwks_uri: `${issuer.url}/keys`, ...issuer.document };
    return { status: 200, body: document };
  }
  if (path !== '/keys') return { status: 500, body: {} };
  const keys = issuer.keys.map(({ kid, alg, publicKey }) => ({
    ...publicKey.export({ format: 'jwk' }),
    ...{ kid, alg, use: 'sig' },
  }));
  return { status: 200, body: { keys } };
}

export async function startIssuer(...keys: SigningKey[]): Promise<Issuer> {
  const issuer: Issuer = { url: '', keys, asked: [], isBroken: false, document: {}, routes: new Map() };
  const server = http.createServer(async (request, response) => {
    const path = request.url ?? '';
    issuer.asked.push(path);
    const form = new URLSearchParams(await text(request));
    const { status, body, headers } = await answerOf(issuer, path, form);
    response.writeHead(status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...headers,
    });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  afterThisTest(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return issuer;
}
