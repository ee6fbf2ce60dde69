// The numbers of the Model Context Protocol.
import { MIB } from './limits.ts';

/** The Model Context Protocol: docs/reference.md "MCP". */
export const MCP = {
  /** The most open requests; further ones get 503. */
  maxRequests: 1_024,
  /** Resources that one subscription follows. */
  maxSubscriptions: 64,
  /** The most idle connections to the API kept for the next read. */
  maxIdleConnections: 64,
  /** The most callers whose client is kept for their next request. */
  maxKeptCallers: 64,
  /** The longest address of a request made by a tool. */
  maxUrlLength: 8_192,
  /** Interval of comments on a silent stream. */
  keepAliveMs: 15_000,
  /** Unread bytes of a streamed answer at which the client is cut off. */
  maxUnreadBytes: 4 * MIB,
} as const;
