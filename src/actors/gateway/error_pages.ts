// The gateway's own responses: a small page for people, JSON for programs. docs/reference.md "Gateway".
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayRoute } from '../../protocol/gateway.ts';

/** One response: its status, and the three fields of an error. */
export interface ErrorPage {
  status: number;
  code: string;
  message: string;
  hint: string;
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

function html({ status, message, hint }: ErrorPage): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${status} - berth</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:15vh auto;padding:0 1em;color-scheme:light dark}</style>
<h1>${escapeHtml(message)}</h1><p>${escapeHtml(hint)}</p></html>
`;
}

/** The weight of `type` in an Accept header (RFC 9110 section 12.5.1); 0 if it is not named. */
function weightOf(type: string, accept: string): number {
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (name === type) return Number(/^q=([\d.]+)$/.exec(parameters.at(-1) ?? '')?.[1] ?? 1);
  }
  return 0;
}

/** A page as HTML or JSON, as `accept` requests, with its type. */
function render(page: ErrorPage, accept = ''): { type: string; body: string } {
  if (weightOf('text/html', accept) > weightOf('application/json', accept))
    return { type: 'text/html; charset=utf-8', body: html(page) };
  const { code, message, hint } = page;
  return { type: 'application/json; charset=utf-8', body: JSON.stringify({ code, message, hint }) };
}

const headersOf = (page: ErrorPage, type: string, body: string): Record<string, string | number> => ({
  'Content-Type': type,
  'Content-Length': Buffer.byteLength(body),
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  ...(page.status === 503 ? { 'Retry-After': '1' } : {}),
  // What follows on the connection of an ambiguous request may not be a request, so it is never read as one.
  ...(page.status === 400 ? { Connection: 'close' } : {}),
});

/** Ends `response` with `page`, as the request's Accept requests; without a body for HEAD. */
export function sendErrorPage(request: IncomingMessage, response: ServerResponse, page: ErrorPage): void {
  const { type, body } = render(page, request.headers.accept);
  response.writeHead(page.status, headersOf(page, type, body));
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The bytes of `page` for the bare socket of an upgrade that is refused. */
export function upgradeRefusal(page: ErrorPage, accept: string | undefined): string {
  const { type, body } = render(page, accept);
  const headers = Object.entries({ ...headersOf(page, type, body), Connection: 'close' })
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('');
  return `HTTP/1.1 ${page.status} ${page.code}\r\n${headers}\r\n${body}`;
}

/** The request is ambiguous. */
export const malformedPage = (reason: string): ErrorPage => ({
  status: 400,
  code: 'bad_request',
  message: `${reason}: it could be read in two ways`,
  hint: 'Send one Host, a path, and one Content-Length or Transfer-Encoding: chunked.',
});
/** The words the pages use for services and for agents. */
const WORDS = {
  service: {
    unknown: 'unknown_service',
    list: '`berth ps` lists the services, and GET /v1/services has the `gatewayUrl` of each.',
    start: (name: string) => `\`berth start ${name}\` starts it.`,
    silent: (name: string) =>
      `It may still be starting, or listen elsewhere: \`berth explain ${name}\` says more.`,
  },
  agent: {
    unknown: 'unknown_agent',
    list: 'GET /v1/agents on the daemon lists the agents and their host names.',
    start: () => 'Start it with POST /v1/agents/spinup, or: berth agent spinup.',
    silent: (name: string) =>
      'It may still be starting. An agent without a server has no page: ' +
      `\`berth agent attach ${name}\` opens its terminal, and \`berth logs ${name}\` shows its log.`,
  },
} as const;

const kindOf = ({ isAgent }: Pick<GatewayRoute, 'isAgent'>): keyof typeof WORDS =>
  isAgent ? 'agent' : 'service';

/** No service has this host name. If it ends in `agentDomain`, it would be an agent's. */
export function unknownHostPage(host: string, agentDomain: string): ErrorPage {
  const kind = kindOf({ isAgent: host.endsWith(`.${agentDomain}`) });
  return {
    status: 404,
    code: WORDS[kind].unknown,
    message: `No ${kind} is registered as ${host || 'this host'}`,
    hint: WORDS[kind].list,
  };
}
/** Several services have this host name: those of `routes`. */
export const ambiguousPage = (routes: readonly GatewayRoute[]): ErrorPage => ({
  status: 409,
  code: 'name_in_use',
  message: `${routes[0]?.hostname} is the host name of ${routes.map(({ name }) => name).join(' and ')}`,
  hint: 'Rename one of them, or use their ports: `berth url NAME` tells each.',
});
/** The origin may not call services. */
export const forbiddenPage: ErrorPage = {
  status: 403,
  code: 'forbidden_origin',
  message: 'This page may not call services',
  hint: 'Only pages from this machine and allowed browser extensions may do that.',
};
/** The service is not running. */
export const stoppedPage = (route: GatewayRoute): ErrorPage => ({
  status: 503,
  code: 'not_running',
  message: `The ${kindOf(route)} ${route.name} is not running`,
  hint: WORDS[kindOf(route)].start(route.name),
});
/** The service is running but does not answer. */
export const unreachablePage = (route: GatewayRoute, reason: string): ErrorPage => ({
  status: 502,
  code: 'bad_gateway',
  message: `The ${kindOf(route)} ${route.name} does not answer on port ${route.port}: ${reason}`,
  hint: WORDS[kindOf(route)].silent(route.name),
});
/** The request has already passed through the gateway. */
export const loopPage: ErrorPage = {
  status: 508,
  code: 'loop',
  message: 'The service sends this request back to the gateway',
  hint: 'Its port is the port of the gateway; give it another port.',
};
