// Chooses the server, and the addresses to listen on.
import { networkInterfaces } from 'node:os';
import { hostInUrl } from '../../adapters/url_host.ts';
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import type { CreateServer, HttpServer } from './http_server.ts';

export type ServerKind = 'uWebSockets.js' | 'node:http';

/** uWebSockets.js if its binary loads, else node:http, with a line to `log`. `only`: this one or an error. */
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

const IPV4_ADDRESSES_OF_LOCALHOST: readonly string[] = ['127.0.0.1', '0.0.0.0'];

/** Attempts to find a port that is free on both addresses. */
const MAX_ATTEMPTS = 20;

export interface ListenOptions {
  /**
   * With 127.0.0.1 or 0.0.0.0 the server also listens on ::1 if the machine has it, or another user could
   * take `localhost` there. With `::` the kernel has it listen on every address of both families.
   */
  bind: string;
  /** 0: any free port. */
  port: number;
  /** Describes the program that holds a port. */
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

/** Listens on all addresses. Resolves with the port, or rejects with port_in_use naming the holder. */
export async function listenOnAll(server: HttpServer, options: ListenOptions): Promise<number> {
  const { bind } = options;
  const second = IPV4_ADDRESSES_OF_LOCALHOST.includes(bind) && hasIpv6Loopback() ? '::1' : null;
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
