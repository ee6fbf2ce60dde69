// What a client presents to a relay instead of a token: docs/reference.md "Relay".
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { RelayHolder } from '../../protocol/relay.ts';
import { RELAY } from '../../settings/cloud_limits.ts';

const TICKET = /^(\d{1,15})\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]{43})$/;

/** The holder of a ticket; null: an unrestricted user. */
export type TicketHolder = RelayHolder | null;

const sign = (cloudToken: string, claims: string): Buffer =>
  createHmac('sha256', cloudToken).update(`berth.relay.v1 ${claims}`).digest();

/** A ticket, and until when (epoch milliseconds) it is valid: RELAY.ticketMs from `now`. */
export function newTicket(
  cloudToken: string,
  now: number,
  holder: TicketHolder,
): { ticket: string; until: number } {
  const until = now + RELAY.ticketMs;
  const claims = `${until}.${holder ? Buffer.from(JSON.stringify(holder)).toString('base64url') : ''}`;
  return { ticket: `${claims}.${sign(cloudToken, claims).toString('base64url')}`, until };
}

/** The holder of a ticket, and when it was made (epoch milliseconds). */
export interface ReadTicket {
  holder: TicketHolder;
  madeAt: number;
}

/** What the ticket says, if it was made with this token and is valid at `now` (epoch milliseconds). */
export function readTicket(cloudToken: string, ticket: string, now: number): ReadTicket | null {
  const [, until = '', holder = '', signature = ''] = TICKET.exec(ticket) ?? [];
  if (signature === '' || Number(until) < now || Number(until) > now + 2 * RELAY.ticketMs) return null;
  const isOurs = timingSafeEqual(Buffer.from(signature, 'base64url'), sign(cloudToken, `${until}.${holder}`));
  if (!isOurs) return null;
  return {
    holder: holder === '' ? null : JSON.parse(Buffer.from(holder, 'base64url').toString()),
    madeAt: Number(until) - RELAY.ticketMs,
  };
}
