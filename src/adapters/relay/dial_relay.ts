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
 * ends. Fails remote_unreachable with the reason given by the server or the network.
 */
export async function dialRelay(
  url: string,
  ticket: string,
  clock: Clock,
  onClosed: () => void,
): Promise<RelayConnection> {
  return carryStreams(await dial(url, ticket), clock, null, onClosed);
}

/** What admits a client to a relay. */
export interface RelayAdmission {
  url: string;
  ticket: string;
  /** After this many milliseconds the connection ends unless it presents another ticket; null: never. */
  endsInMs: number | null;
}

/** How long before the end another ticket is requested; for a shorter time, in its last quarter. */
const RENEWAL_MS = 30_000;
const LEAST_PAUSE_MS = 1_000;

/** Keeps `connection` admitted; returns a function that stops doing so. */
function keepAdmitted(
  connection: RelayConnection,
  admit: () => Promise<RelayAdmission>,
  endsInMs: number | null,
  clock: Clock,
): () => void {
  let cancel: () => void = () => undefined;
  const renew = async (endsAt: number): Promise<void> => {
    try {
      const { ticket, endsInMs: next } = await admit();
      if (!connection.mux.isOpen) return;
      connection.mux.showTicket(ticket);
      wait(next);
    } catch {
      // It may still succeed until the end. After that, the server gives the reason.
      wait(endsAt - clock.monotonic());
    }
  };
  const wait = (leftMs: number | null): void => {
    if (leftMs === null || leftMs <= 0 || !connection.mux.isOpen) return;
    const pause = Math.max(leftMs - RENEWAL_MS, (leftMs * 3) / 4, LEAST_PAUSE_MS);
    const endsAt = clock.monotonic() + leftMs;
    cancel = clock.after(pause, () => void renew(endsAt));
  };
  wait(endsInMs);
  return () => cancel();
}

/**
 * Connects to the relay named by `admit`, and requests a new ticket before the last one expires. Fails as
 * `dialRelay` and `admit`.
 */
export async function openRelay(
  admit: () => Promise<RelayAdmission>,
  clock: Clock,
  onClosed: () => void,
): Promise<RelayConnection> {
  const { url, ticket, endsInMs } = await admit();
  let giveUp: () => void = () => undefined;
  const connection = await dialRelay(url, ticket, clock, () => {
    giveUp();
    onClosed();
  });
  giveUp = keepAdmitted(connection, admit, endsInMs, clock);
  return connection;
}
