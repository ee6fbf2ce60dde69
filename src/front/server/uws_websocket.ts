// WebSockets on uWebSockets.js.
import type { WebSocket, WebSocketBehavior } from 'uWebSockets.js';
import type { ServerWebSocket, WebSocketHandlers } from './http_server.ts';
import type { TurnBudget } from './turn_budget.ts';

/** The RFC 6455 close code for an internal error. */
const INTERNAL_ERROR = 1011;
/** The most messages of one WebSocket accepted in a turn over its time. */
const MESSAGES_AT_ONCE = 256;
/** Seconds without a message or a pong after which a connection is closed. */
const IDLE_SECONDS = 120;

/**
 * What uWebSockets.js carries through the handshake. It copies the fields into its own object, so a single
 * field avoids name clashes.
 */
export interface UpgradeData {
  upgraded: UwsWebSocket;
}

type SocketState =
  | { phase: 'handshake'; open: (socket: ServerWebSocket) => WebSocketHandlers }
  /** `handlers` is null until `open` has returned, and stays so when it throws. */
  | { phase: 'open'; ws: WebSocket<UpgradeData>; handlers: WebSocketHandlers | null }
  /** A closed WebSocket of uWebSockets.js throws on any use. */
  | { phase: 'closed' };

export class UwsWebSocket implements ServerWebSocket {
  private state: SocketState;
  /** The last turn in which a message arrived, and their number in it. */
  private turnNumber = 0;
  private messagesInTurn = 0;

  /** `open` is called when the handshake is complete. */
  constructor(open: (socket: ServerWebSocket) => WebSocketHandlers) {
    this.state = { phase: 'handshake', open };
  }

  get bufferedBytes(): number {
    return this.state.phase === 'open' ? this.state.ws.getBufferedAmount() : 0;
  }

  /** null: the socket is not open. */
  get handlers(): WebSocketHandlers | null {
    return this.state.phase === 'open' ? this.state.handlers : null;
  }

  send(data: string | Uint8Array): void {
    if (this.state.phase !== 'open') return;
    const { ws } = this.state;
    ws.cork(() => ws.send(data, typeof data !== 'string'));
  }

  close(code: number, reason = ''): void {
    if (this.state.phase === 'open') this.state.ws.end(code, reason);
  }

  /** Throws what `open` throws. */
  markOpen(ws: WebSocket<UpgradeData>): void {
    if (this.state.phase !== 'handshake') return;
    const { open } = this.state;
    const state: SocketState = { phase: 'open', ws, handlers: null };
    this.state = state;
    state.handlers = open(this);
  }

  markClosed(): void {
    this.state = { phase: 'closed' };
  }

  /** Whether to handle a message: false for one of very many in a turn over its time. */
  takeMessage(turn: TurnBudget): boolean {
    const isSpent = turn.count();
    if (this.turnNumber !== turn.number) {
      this.turnNumber = turn.number;
      this.messagesInTurn = 0;
    }
    this.messagesInTurn += 1;
    return !isSpent || this.messagesInTurn <= MESSAGES_AT_ONCE;
  }
}

/** The behaviour of the WebSockets of one path. Exceptions of handlers go to `onDefect`. */
export function webSocketBehavior(
  maxMessageBytes: number,
  turn: TurnBudget,
  onDefect: (error: unknown) => void,
): WebSocketBehavior<UpgradeData> {
  const endAfterDefect = (ws: WebSocket<UpgradeData>, work: (socket: UwsWebSocket) => void): void => {
    try {
      work(ws.getUserData().upgraded);
    } catch (error) {
      onDefect(error);
      ws.end(INTERNAL_ERROR);
    }
  };
  return {
    maxPayloadLength: maxMessageBytes,
    // With its default, messages to a slow reader are dropped silently. Callers watch `bufferedBytes`.
    maxBackpressure: 0,
    idleTimeout: IDLE_SECONDS,
    sendPingsAutomatically: true,
    open: (ws) => endAfterDefect(ws, (socket) => socket.markOpen(ws)),
    message: (ws, message, isBinary) =>
      endAfterDefect(ws, (socket) => {
        if (socket.takeMessage(turn)) socket.handlers?.message(new Uint8Array(message.slice(0)), isBinary);
        else ws.close();
      }),
    // uWebSockets.js has already answered the ping. This is the only place where a flood of pings can be
    // seen.
    ping: (ws) =>
      endAfterDefect(ws, (socket) => {
        if (!socket.takeMessage(turn)) ws.close();
      }),
    drain: (ws) => endAfterDefect(ws, ({ handlers }) => handlers?.drain()),
    close: (ws, code) => {
      const { upgraded } = ws.getUserData();
      const { handlers } = upgraded;
      upgraded.markClosed();
      try {
        handlers?.close(code);
      } catch (error) {
        onDefect(error);
      }
    },
  };
}
