// Which server answers, and on which addresses.
import { networkInterfaces } from 'node:os';
import { hostInUrl } from '../adapters/url_host.ts';
import { fail } from '../protocol/errors.ts';
import type { Failure } from '../runtime/actor.ts';
import type { CreateServer, HttpServer } from './server.ts';

export type ServerKind = 'uWebSockets.js' | 'node:http';

/** uWebSockets.js where its binary loads, else node:http, which is said to `log`. `only` asks for one of them. */
export async function chooseServer(log: (line: string) => void, only?: ServerKind): Promise<CreateServer> {
  if (only !== 'node:http') {
    try {
      return (await import('./uws.ts')).createUwsServer;
    } catch (error) {
      if (only) throw error;
      const [reason] = String(error instanceof Error ? error.message : error)
        .split('\n')
        .slice(-1);
      log(`uWebSockets.js does not load here, so node:http serves: ${reason}`);
    }
  }
  return (await import('./node.ts')).createNodeServer;
}

const hasIpv6Loopback = (): boolean =>
  Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

/** How often a port is looked for that is free on both addresses. */
const ATTEMPTS = 20;

export interface Opening {
  /** An address; 127.0.0.1 brings ::1 along where the machine has it, or another user could take `localhost` there. */
  bind: string;
  /** 0: any free one. */
  port: number;
  /** Says who holds a port that is taken. */
  holder?: (port: number) => Promise<string>;
}

async function refusal(opening: Opening, address: string, port: number, code: string): Promise<Failure> {
  const shown = `${hostInUrl(address)}:${port}`;
  if (code !== 'EADDRINUSE') return fail('internal', `cannot listen on ${shown}: ${code}`);
  const holder = (await opening.holder?.(port)) ?? 'another program';
  return fail('port_in_use', `port ${port} is taken: ${holder} listens on ${shown}`);
}

/** Listens on all addresses; gives the port. Rejects with port_in_use naming the holder. */
export async function openServer(server: HttpServer, opening: Opening): Promise<number> {
  const { bind } = opening;
  const second = bind === '127.0.0.1' && hasIpv6Loopback() ? '::1' : null;
  for (let attempt = 1; ; attempt += 1) {
    const first = await server.listen(bind, opening.port);
    if ('refused' in first) throw await refusal(opening, bind, opening.port, first.refused);
    const other = second ? await server.listen(second, first.port) : first;
    if (!('refused' in other)) return first.port;
    server.unlisten();
    if (opening.port !== 0 || other.refused !== 'EADDRINUSE' || attempt === ATTEMPTS)
      throw await refusal(opening, second ?? bind, first.port, other.refused);
  }
}
