// State: the unanswered requests, and the open streams. Rebuilt from: nothing; clients repeat requests.
import { fail } from '../protocol/errors.ts';
import type { McpProtocol, McpRequest } from '../protocol/mcp.ts';
import { actor, type Context } from '../runtime/actor.ts';
import { MCP } from '../settings/mcp_limits.ts';
import { McpEndpoint } from './http.ts';

export interface McpConfig {
  /** Called with exceptions of tools that are not errors of the API. */
  onDefect: (error: unknown) => void;
}

class McpRequests {
  private readonly context: Context;
  private readonly endpoint: McpEndpoint;
  private readonly open = new Map<number, AbortController>();

  constructor(context: Context, { onDefect }: McpConfig) {
    this.context = context;
    this.endpoint = new McpEndpoint(onDefect);
    context.scope.defer(() => {
      for (const ending of this.open.values()) ending.abort();
      this.endpoint.close();
    });
  }

  /** Fails daemon_busy when the limit of open requests is reached. */
  async serve(request: McpRequest) {
    if (this.open.size >= MCP.maxRequests)
      throw fail(
        'daemon_busy',
        `${MCP.maxRequests} requests to /mcp are open, which is as many as there may be`,
      );
    const ending = new AbortController();
    this.open.set(request.id, ending);
    const { status, headers, body } = await this.endpoint.answer(request, ending.signal);
    const contentType = headers.get('content-type');
    if (body && contentType?.startsWith('text/event-stream')) {
      this.pass(request.id, body, ending.signal).catch((error: unknown) => this.context.crash(error));
      return { status, contentType, body: null };
    }
    this.open.delete(request.id);
    const bytes = body ? await new Response(body).bytes() : new Uint8Array();
    return { status, contentType, body: bytes };
  }

  cancel(id: number): null {
    this.open.get(id)?.abort();
    return null;
  }

  /** Forwards a streamed response, until it or the client has ended. */
  private async pass(id: number, body: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<void> {
    const callers = this.context.ref('mcpcallers');
    const reader = body.getReader();
    signal.addEventListener('abort', () => void reader.cancel());
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      callers.tell('chunk', { id, bytes: value });
    }
    this.open.delete(id);
    callers.tell('end', { id });
  }
}

/** At `mcp`. Many requests are open at once. */
export const mcpActor = actor<McpProtocol, McpConfig>(
  'mcp',
  (context, config) => {
    const requests = new McpRequests(context, config);
    return {
      serve: (request) => context.replyLater(requests.serve(request)),
      cancel: ({ id }) => requests.cancel(id),
    };
  },
  { mailbox: MCP.maxRequests },
);
