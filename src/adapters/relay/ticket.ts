// What a client shows to a relay in place of a token: docs/reference.md "Relay".
import { createHmac, timingSafeEqual } from 'node:crypto';
import { RELAY } from '../../settings/cloud_limits.ts';

const TICKET = /^(\d{1,15})\.([A-Za-z0-9_-]{43})$/;

const sign = (cloudToken: string, until: number): Buffer =>
  createHmac('sha256', cloudToken).update(`berth.relay.v1 ${until}`).digest();

/** A ticket, and until when (epoch milliseconds) it is valid: RELAY.ticketMs from `now`. */
export function newTicket(cloudToken: string, now: number): { ticket: string; until: number } {
  const until = now + RELAY.ticketMs;
  return { ticket: `${until}.${sign(cloudToken, until).toString('base64url')}`, until };
}

/** Whether the ticket was made with this token and is valid at `now` (epoch milliseconds). */
export function isTicketValid(cloudToken: string, ticket: string, now: number): boolean {
  const [, until = '', signature = ''] = TICKET.exec(ticket) ?? [];
  if (signature === '' || Number(until) < now || Number(until) > now + 2 * RELAY.ticketMs) return false;
  return timingSafeEqual(Buffer.from(signature, 'base64url'), sign(cloudToken, Number(until)));
}
