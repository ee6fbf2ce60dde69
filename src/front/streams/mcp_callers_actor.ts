// State: none of its own; it passes the parts of answers to their clients. Rebuilt from: nothing; clients ask
// again.
import type { McpCallersProtocol } from '../../protocol/mcp.ts';
import { actor } from '../../runtime/actor.ts';
import type { McpRelay } from './mcp_relay.ts';

/** A refused message would be missing from an answer, and forwarding one takes almost no time. */
const LIMITS = { mailbox: 1_000_000 };

/** At `mcpcallers`, on the thread of the front. */
export const mcpCallersActor = actor<McpCallersProtocol, McpRelay>(
  'mcpcallers',
  (_context, { handlers }) => handlers,
  LIMITS,
);
