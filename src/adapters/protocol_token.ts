// The token among the protocols of a WebSocket handshake: docs/reference.md "Attach".
import { TOKEN_PROTOCOL } from '../protocol/access_key.ts';

/**
 * The token or bearer that one protocol carries; null if it carries none. A text that is not base64 counts as
 * the token itself: a token that was sent never counts as absent, which would give its sender a user's
 * rights. For the same reason, plain base64, padding and upper case in the name are accepted.
 */
export function protocolToken(protocol: string): string | null {
  if (!protocol.toLowerCase().startsWith(TOKEN_PROTOCOL)) return null;
  const text = protocol.slice(TOKEN_PROTOCOL.length);
  return /^[\w+/-]*={0,2}$/.test(text) ? Buffer.from(text, 'base64url').toString() : text;
}
