// The numbers of the Model Context Protocol.
import { MIB } from './limits.ts';

/** The Model Context Protocol: docs/reference.md "MCP". */
export const MCP = {
  /** Requests that are open at once; further ones get 503. */
  maxRequests: 1_024,
  /** Resources that one subscription follows. */
  maxSubscriptions: 64,
  /** Connections to the API that are kept for the next read. */
  maxIdleConnections: 64,
  /** Callers whose client is kept for their next request. */
  maxKeptCallers: 64,
  /** Length of the address of a request that a tool makes. */
  maxUrlLength: 8_192,
  /** Interval of comments on a silent stream. */
  keepAliveMs: 15_000,
  /** Unread bytes of a streamed answer at which the client is cut off. */
  maxUnreadBytes: 4 * MIB,
} as const;
