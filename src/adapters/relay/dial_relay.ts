// The client's side of a relay's connection.
import type { Clock } from '../../runtime/actor.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { dialWebSocket } from '../websocket.ts';
import { RELAY_PROTOCOL } from './frames.ts';
import { carryStreams, MAX_RELAY_MESSAGE_BYTES, type RelayConnection } from './relay_connection.ts';

/**
 * Connects to the relay at `url` (ws: or wss:) with a ticket. `onClosed` is called once, when the connection
 * ends. Rejects with what the server or the network says.
 */
export async function dialRelay(
  url: string,
  ticket: string,
  clock: Clock,
  onClosed: () => void,
): Promise<RelayConnection> {
  const socket = await dialWebSocket({
    url,
    protocol: RELAY_PROTOCOL,
    headers: { authorization: `Bearer ${ticket}` },
    maxMessageBytes: MAX_RELAY_MESSAGE_BYTES,
    timeoutMs: RELAY.dialTimeoutMs,
  });
  return carryStreams(socket, clock, null, onClosed);
}
