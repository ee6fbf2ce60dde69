// The open streams and terminals opened with an agent's token. They end with it, and when what they show
// leaves its stack: docs/reference.md "Agent tokens".
import type { Reach } from '../api/reach.ts';
import type { ResponseStream, ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';

const ENDED = { code: 1008, reason: 'the token gives no access any more' };

interface AgentConnection {
  readonly reach: Reach;
  isOpen(): boolean;
  cut(): void;
}

export class AgentConnections {
  private readonly connections = new Set<AgentConnection>();

  /** Cuts `stream` when `reach` ends. */
  addStream(reach: Reach, stream: ResponseStream): void {
    this.add({ reach, isOpen: () => stream.isOpen, cut: () => stream.destroy() });
  }

  /** Wraps `open` for a socket that is closed when `reach` ends; nothing passes from then on. */
  guardSocket(
    reach: Reach,
    open: (socket: ServerWebSocket) => WebSocketHandlers,
  ): (socket: ServerWebSocket) => WebSocketHandlers {
    return (socket) => {
      const handlers = open(socket);
      let isOpen = true;
      const cut = (): void => {
        isOpen = false;
        socket.close(ENDED.code, ENDED.reason);
      };
      this.add({ reach, isOpen: () => isOpen, cut });
      return {
        message: (data, isBinary) => {
          if (isOpen) handlers.message(data, isBinary);
        },
        drain: () => handlers.drain(),
        close: (code) => {
          isOpen = false;
          handlers.close(code);
        },
      };
    };
  }

  /** Cuts connections whose reach has ended. Called after each change of a service. */
  check(): void {
    for (const connection of this.connections) {
      if (connection.isOpen() && connection.reach.isCurrent) continue;
      this.connections.delete(connection);
      if (connection.isOpen()) connection.cut();
    }
  }

  private add(connection: AgentConnection): void {
    this.check();
    this.connections.add(connection);
    // The reach may have ended during the request. The socket's owner gets its handlers only after this turn.
    queueMicrotask(() => this.check());
  }
}
