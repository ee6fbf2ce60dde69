// MCP over stdin and stdout, for the one client that has started this process.
// docs/reference.md "MCP over stdio".
import {
  type JSONRPCMessage,
  type McpTransport,
  StdioServerTransport,
  serveStdio,
} from '../adapters/mcp_sdk.ts';
import { MCP } from '../settings/mcp_limits.ts';
import { FollowedResources, listenedUris } from './resources.ts';
import { createMcpServer } from './server.ts';
import type { Workplace } from './tool.ts';

/** What is wrong with what the client has sent; the package's own text for it is a dump of its schemas. */
const inputFault = (error: Error): Error =>
  'issues' in error ? new Error('ignored a line that is not a message of JSON-RPC 2.0') : error;

/** stdin and stdout; `see` gets every message of the client before it is handled. */
function seenStdio(see: (message: JSONRPCMessage) => void, onClosed: () => void): McpTransport {
  const wire = new StdioServerTransport();
  const seen: McpTransport = {
    start: () => {
      wire.onmessage = (message) => {
        see(message);
        seen.onmessage?.(message);
      };
      wire.onerror = (error) => seen.onerror?.(inputFault(error));
      wire.onclose = () => {
        onClosed();
        seen.onclose?.();
      };
      return wire.start();
    },
    send: (message) => wire.send(message),
    close: () => wire.close(),
  };
  return seen;
}

/** What a client of 2026-07-28 listens to, by the id of its request. */
class ListenedResources {
  private readonly followed: FollowedResources;
  private readonly byRequest = new Map<unknown, readonly string[]>();

  constructor(followed: FollowedResources) {
    this.followed = followed;
  }

  readonly see = (message: JSONRPCMessage): void => {
    if (!('method' in message)) return;
    if (message.method === 'notifications/cancelled') this.forget(message.params?.['requestId']);
    const uris = 'id' in message ? listenedUris(message) : null;
    if (!uris || !('id' in message) || this.byRequest.has(message.id)) return;
    this.byRequest.set(message.id, uris);
    for (const uri of uris) this.followed.add(uri);
  };

  private forget(id: unknown): void {
    for (const uri of this.byRequest.get(id) ?? []) this.followed.remove(uri);
    this.byRequest.delete(id);
  }
}

/**
 * Serves until stdin ends; `onError` gets the errors that no response reports. Resolves with whether all of
 * stdin was read: an over-long line ends the connection before.
 */
export function serveOnStdio(workplace: Workplace, onError: (error: unknown) => void): Promise<boolean> {
  return new Promise((resolve) => {
    let tell = (_uri: string): void => {};
    const followed = new FollowedResources(workplace, (uri) => tell(uri), onError);
    const closed = (): void => {
      followed.close();
      resolve(process.stdin.readableEnded);
    };
    const transport = seenStdio(new ListenedResources(followed).see, closed);
    serveStdio(
      () => {
        const server = createMcpServer(workplace, followed);
        // Fails when the client has disconnected; nothing waits for the result.
        tell = (uri) => void server.sendResourceUpdated({ uri }).catch(onError);
        return server;
      },
      { transport, onerror: onError, maxSubscriptions: MCP.maxSubscriptions },
    );
  });
}
