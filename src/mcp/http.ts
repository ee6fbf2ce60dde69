// MCP over HTTP: each request is independent, in the 2026-07-28 version or an earlier one.
// docs/reference.md "MCP over HTTP".
import { createMcpHandler, type McpRequestContext, type ServerEventBus } from '../adapters/mcp_sdk.ts';
import type { McpRequest } from '../protocol/mcp.ts';
import { HTTP } from '../settings/limits.ts';
import { MCP } from '../settings/mcp_limits.ts';
import { CallerConnections } from './caller_connections.ts';
import { FollowedResources, listenedUris } from './resources.ts';
import { createMcpServer } from './server.ts';
import type { Workplace } from './tool.ts';

/** The body as JSON; undefined when it is not JSON, which the MCP library answers itself. */
function parsedBody(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}

/** A batch could occupy the thread for as long as the client likes, and current versions have no batches. */
const NO_BATCH = { code: -32_600, message: 'the body must be one message, not a list of them' };

const OPTIONS = { maxRequestBodySize: HTTP.maxBodyBytes, keepAliveMs: MCP.keepAliveMs } as const;

export class McpEndpoint {
  private readonly connections = new CallerConnections();
  private readonly onDefect: (error: unknown) => void;

  constructor(onDefect: (error: unknown) => void) {
    this.onDefect = onDefect;
  }

  /** Answers a request; aborting `signal` ends its work. Never rejects. */
  async answer({ url, cloudUrl, headers, body }: McpRequest, signal: AbortSignal): Promise<Response> {
    const workplace: Workplace = {
      client: this.connections.clientOf(new Map(headers), url, cloudUrl),
      folder: null,
      baseEnv: undefined,
      bringUp: null,
    };
    const message = parsedBody(body);
    if (Array.isArray(message))
      return Response.json({ jsonrpc: '2.0', id: null, error: NO_BATCH }, { status: 400 });
    const head = { method: 'POST', headers, signal };
    const factory = (_context: McpRequestContext) => createMcpServer(workplace, null);
    const uris = listenedUris(message);
    const bus = uris ? { bus: this.busOf(workplace, uris) } : {};
    const { fetch } = createMcpHandler(factory, { ...OPTIONS, ...bus });
    // A request with a body, and reading it, would take longer than the call.
    return message === undefined
      ? fetch(new Request(url, { ...head, body: Buffer.from(body) }))
      : fetch(new Request(url, head), { parsedBody: message });
  }

  close(): void {
    this.connections.close();
  }

  /** Notifies one listener of changes of `uris`, while it listens. */
  private busOf(workplace: Workplace, uris: readonly string[]): ServerEventBus {
    return {
      publish: () => {},
      subscribe: (listener) => {
        const tell = (uri: string): void => listener({ kind: 'resource_updated', uri });
        const followed = new FollowedResources(workplace, tell, this.onDefect);
        for (const uri of uris) followed.add(uri);
        return () => followed.close();
      },
    };
  }
}
