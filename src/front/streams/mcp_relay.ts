// Forwards requests for /mcp to the thread that answers them, and returns the parts of streamed answers.
import type { McpCallersProtocol, McpRequest } from '../../protocol/mcp.ts';
import type { Handlers, Node } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { MCP } from '../../settings/mcp_limits.ts';
import type { ResponseStream } from '../server/http_server.ts';

/** A request that is passed on. */
export interface RelayedRequest {
  /** The relevant headers. */
  readonly headers: [name: string, value: string][];
  readonly body: Uint8Array;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** Begins a streamed answer. null: the client has disconnected. */
  open(): ResponseStream | null;
}

/** An answer that is passed on. */
export interface RelayedAnswer {
  readonly status: number;
  /** null: there is no body. */
  readonly contentType: string | null;
  readonly body: Uint8Array;
}

/** Where the API of this daemon is, for the calls of the tools. */
export type OwnAddress = Pick<McpRequest, 'url' | 'cloudUrl'>;

/** A request whose answer is not complete. */
interface OpenCall {
  /** Parts that arrived before the head was sent. */
  early: Uint8Array[];
  hasEnded: boolean;
  stream: ResponseStream | null;
}

const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };

export class McpRelay {
  /** Starts the thread if necessary. Rejects with a Failure. */
  readonly ready: () => Promise<void>;
  /** Null until the daemon listens. */
  address: OwnAddress | null = null;
  readonly handlers: Handlers<McpCallersProtocol> = {
    chunk: ({ id, bytes }) => this.pass(id, bytes),
    end: ({ id }) => this.end(id),
  };
  private readonly node: Node;
  private readonly open = new Map<number, OpenCall>();
  private lastId = 0;

  constructor(node: Node, ready: () => Promise<void>) {
    this.node = node;
    this.ready = ready;
  }

  /** Answers a request; null: with a stream that has already begun. Fails as the thread does. */
  async serve({ headers, body, signal, open }: RelayedRequest): Promise<RelayedAnswer | null> {
    if (!this.address) throw new Error('a request came before the daemon listens');
    this.lastId += 1;
    const id = this.lastId;
    const mcp = this.node.ref('mcp');
    const call: OpenCall = { early: [], hasEnded: false, stream: null };
    this.open.set(id, call);
    const cancel = (): void => mcp.tell('cancel', { id });
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
    try {
      const {
        status,
        contentType,
        body: bytes,
      } = await mcp.ask('serve', { id, ...this.address, headers, body }, DEADLINE);
      if (bytes) return { status, contentType: bytes.length === 0 ? null : contentType, body: bytes };
      this.begin(id, call, open());
      return null;
    } finally {
      signal.removeEventListener('abort', cancel);
      if (!call.stream) this.open.delete(id);
    }
  }

  /** Cuts every stream, because the thread has ended or clients may no longer see the answer. */
  cut(): void {
    for (const { stream } of this.open.values()) stream?.destroy();
  }

  /** Ends every stream. */
  close(): void {
    for (const { stream } of this.open.values()) stream?.end();
  }

  /** Sends the head and the parts that arrived before it. */
  private begin(id: number, call: OpenCall, stream: ResponseStream | null): void {
    const forget = (): void => {
      this.open.delete(id);
      this.node.ref('mcp').tell('cancel', { id });
    };
    if (!stream) {
      forget();
      return;
    }
    call.stream = stream;
    stream.onClose = forget;
    for (const bytes of call.early) this.pass(id, bytes);
    if (call.hasEnded) this.end(id);
  }

  private pass(id: number, bytes: Uint8Array): null {
    const call = this.open.get(id);
    if (!call?.stream) call?.early.push(bytes);
    else {
      call.stream.write(bytes);
      // A client that does not read is cut off.
      if (call.stream.bufferedBytes > MCP.maxUnreadBytes) call.stream.destroy();
    }
    return null;
  }

  private end(id: number): null {
    const call = this.open.get(id);
    if (call?.stream) call.stream.end();
    else if (call) call.hasEnded = true;
    return null;
  }
}
