// Connections to the ports of agents. A port may be held by a program that is none of the agent: of another
// user, while the agent starts or beside it on the other address family.
import net from 'node:net';
import { openListenerLookup, type SocketOwner } from '../../adapters/process/listener_lookup.ts';
import { mayServe } from '../../adapters/process/listeners.ts';
import { userName } from '../../adapters/process/users.ts';
import type { GatewayRoute } from '../../protocol/gateway.ts';

/** An agent that runs. */
export type RunningRoute = GatewayRoute & { pid: number };

export const isRunningRoute = (route: GatewayRoute): route is RunningRoute => route.pid !== null;

/** One buffer for all reads from agents: bytes are passed on or copied before the next read. */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);
/** 127.0.0.1, then ::1 for programs that listen only there. */
const ADDRESSES = ['127.0.0.1', '::1'] as const;
/** Dials of an address whose listener changes meanwhile. */
const MAX_DIALS = 3;

function connect(port: number, host: string, onData?: (bytes: Buffer) => void): Promise<net.Socket> {
  const callback = (length: number): boolean => {
    onData?.(readBuffer.subarray(0, length));
    return true;
  };
  const onread = onData && { onread: { buffer: readBuffer, callback } };
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host, ...onread });
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'ECONNREFUSED' ? new Error('nothing listens there') : error);
    socket.once('error', failed);
    socket.once('connect', () => {
      socket.off('error', failed);
      resolve(socket);
    });
  });
}

export class AgentDialer {
  private readonly lookup = openListenerLookup();
  /** The listener on each port that was last found to be its agent's: to search a tree takes long. */
  private readonly accepted = new Map<number, number>();

  /**
   * Connects to the agent; rejects with the error of the first address. With `onData`, bytes are given to it,
   * valid until it returns, and not to readers of the socket.
   */
  async dial(agent: RunningRoute, onData?: (bytes: Buffer) => void): Promise<net.Socket> {
    const [first, second] = ADDRESSES;
    try {
      return await this.dialAddress(agent, first, onData);
    } catch (error) {
      try {
        return await this.dialAddress(agent, second, onData);
      } catch {
        throw error;
      }
    }
  }

  close(): void {
    void this.lookup.then((lookup) => lookup.close());
  }

  /** A connection was accepted by the listener that is there both before and after it. */
  private async dialAddress(
    agent: RunningRoute,
    address: string,
    onData?: (bytes: Buffer) => void,
  ): Promise<net.Socket> {
    const { find } = await this.lookup;
    for (let left = MAX_DIALS; left > 0; left -= 1) {
      const before = find(address, agent.port);
      if (before && !this.accepts(before, agent))
        throw new Error(`user ${userName(before.uid)} listens there, on ${address}`);
      const socket = await connect(agent.port, address, onData);
      if (find(address, agent.port)?.inode === before?.inode) return socket;
      socket.destroy();
    }
    throw new Error(`what listens there, on ${address}, changes all the time`);
  }

  private accepts(listener: SocketOwner, { port, pid }: RunningRoute): boolean {
    if (this.accepted.get(port) === listener.inode) return true;
    if (!mayServe(listener, pid)) return false;
    this.accepted.set(port, listener.inode);
    return true;
  }
}
