// The answer of the relay: docs/reference.md "Relay".
import { utcTimeShape } from './answer_fields.ts';
import { z } from './validation.ts';

export type RelayTicket = z.infer<typeof RelayTicket>;
export const RelayTicket = z
  .object({
    ticket: z.string().describe('The bearer token of the WebSocket'),
    expires_at: utcTimeShape.describe('Until then it opens connections, which last longer (RFC 3339, UTC)'),
    ends_in: z
      .number()
      .nullable()
      .describe('Seconds after which its connections end, unless they show another ticket; null: never'),
    port: z
      .int()
      .nullable()
      .describe('The port of the relay at the host of this API; null: that of this API'),
  })
  .meta({ id: 'RelayTicket' });
