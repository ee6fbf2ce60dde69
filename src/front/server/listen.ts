// Which server answers, and on which addresses.
import { networkInterfaces } from 'node:os';
import { hostInUrl } from '../../adapters/url_host.ts';
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import type { CreateServer, HttpServer } from './http_server.ts';

export type ServerKind = 'uWebSockets.js' | 'node:http';

/** uWebSockets.js where its binary loads, else node:http, which is said to `log`. `only` asks for one of them. */
export async function chooseServer(log: (line: string) => void, only?: ServerKind): Promise<CreateServer> {
  if (only !== 'node:http') {
    try {
      return (await import('./uws_server.ts')).createUwsServer;
    } catch (error) {
      if (only) throw error;
      const [reason] = String(error instanceof Error ? error.message : error)
        .split('\n')
        .slice(-1);
      log(`uWebSockets.js does not load here, so node:http serves: ${reason}`);
    }
  }
  return (await import('./node_server.ts')).createNodeServer;
}

const hasIpv6Loopback = (): boolean =>
  Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

/** How often a port is looked for that is free on both addresses. */
const MAX_ATTEMPTS = 20;

export interface ListenOptions {
  /** An address; 127.0.0.1 brings ::1 along where the machine has it, or another user could take `localhost` there. */
  bind: string;
  /** 0: any free one. */
  port: number;
  /** Says who holds a port that is taken. */
  describePortHolder?: (port: number) => Promise<string>;
}

async function listenFailure(
  options: ListenOptions,
  address: string,
  port: number,
  code: string,
): Promise<Failure> {
  const shown = `${hostInUrl(address)}:${port}`;
  if (code !== 'EADDRINUSE') return fail('internal', `cannot listen on ${shown}: ${code}`);
  const holder = (await options.describePortHolder?.(port)) ?? 'another program';
  return fail('port_in_use', `port ${port} is taken: ${holder} listens on ${shown}`);
}

/** Listens on all addresses; gives the port. Rejects with port_in_use naming the holder. */
export async function listenOnAll(server: HttpServer, options: ListenOptions): Promise<number> {
  const { bind } = options;
  const second = bind === '127.0.0.1' && hasIpv6Loopback() ? '::1' : null;
  for (let attempt = 1; ; attempt += 1) {
    const first = await server.listen(bind, options.port);
    if ('refused' in first) throw await listenFailure(options, bind, options.port, first.refused);
    const other = second ? await server.listen(second, first.port) : first;
    if (!('refused' in other)) return first.port;
    server.stopListening();
    if (options.port !== 0 || other.refused !== 'EADDRINUSE' || attempt === MAX_ATTEMPTS)
      throw await listenFailure(options, second ?? bind, first.port, other.refused);
  }
}
