// Chooses the server, and the addresses to listen on.
import { setTimeout as pause } from 'node:timers/promises';
import { type AddressRefusal, listenOnBind } from '../../adapters/loopback_listener.ts';
import { hostInUrl } from '../../adapters/url_host.ts';
import { fail } from '../../protocol/errors.ts';
import type { Failure } from '../../runtime/actor.ts';
import { HTTP } from '../../settings/limits.ts';
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

export interface ListenOptions {
  /** The address; see `listenOnBind`. */
  bind: string;
  /** 0: any free port. */
  port: number;
  /** Describes the program that holds a port. */
  describePortHolder?: (port: number) => Promise<string>;
}

/** The failure for `port` on an address that was refused: port_in_use naming the holder, or internal. */
export async function listenFailure(
  { address, refused }: AddressRefusal,
  { port, describePortHolder }: Omit<ListenOptions, 'bind'>,
): Promise<Failure> {
  const shown = `${hostInUrl(address)}:${port}`;
  if (refused !== 'EADDRINUSE') return fail('internal', `cannot listen on ${shown}: ${refused}`);
  const holder = (await describePortHolder?.(port)) ?? 'another program';
  return fail('port_in_use', `port ${port} is taken: ${holder} listens on ${shown}`);
}

/**
 * Listens on all addresses. Resolves with the port, or rejects with port_in_use naming the holder, which gets
 * a moment to leave.
 */
export async function listenOnAll(server: HttpServer, options: ListenOptions): Promise<number> {
  const { bind, port } = options;
  const listen = server.listen.bind(server);
  const latest = performance.now() + HTTP.portReleaseMs;
  for (;;) {
    const result = await listenOnBind(bind, port, listen, () => server.stopListening());
    if (!('refused' in result)) return result.port;
    if (result.refused !== 'EADDRINUSE' || performance.now() >= latest)
      throw await listenFailure(result, options);
    await pause(HTTP.portPollMs);
  }
}
