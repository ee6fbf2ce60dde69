// The client's side of a relay's connection.
import { fail } from '../../protocol/errors.ts';
import type { Clock } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { errorLine } from '../portforward/transport.ts';
import { dialWebSocket, type WebSocket } from '../websocket.ts';
import { RELAY_PROTOCOL } from './frames.ts';
import { carryStreams, MAX_RELAY_MESSAGE_BYTES, type RelayConnection } from './relay_connection.ts';

async function dial(url: string, ticket: string): Promise<WebSocket> {
  try {
    return await dialWebSocket({
      url,
      protocol: RELAY_PROTOCOL,
      headers: { authorization: `Bearer ${ticket}` },
      maxMessageBytes: MAX_RELAY_MESSAGE_BYTES,
      timeoutMs: RELAY.dialTimeoutMs,
    });
  } catch (error) {
    const text = errorLine((error as Error).message);
    throw fail('remote_unreachable', `the relay at ${new URL(url).host} does not answer: ${text}`);
  }
}

/**
 * Connects to the relay at `url` (ws: or wss:) with a ticket. `onClosed` is called once, when the connection
 * ends. Fails remote_unreachable with what the server or the network says.
 */
export async function dialRelay(
  url: string,
  ticket: string,
  clock: Clock,
  onClosed: () => void,
): Promise<RelayConnection> {
  return carryStreams(await dial(url, ticket), clock, null, onClosed);
}
