// WebSockets on uWebSockets.js.
import type { WebSocket, WebSocketBehavior } from 'uWebSockets.js';
import type { ServerWebSocket, WebSocketHandlers } from './http_server.ts';
import type { TurnBudget } from './turn_budget.ts';

/** The close code of a defect of ours, of RFC 6455. */
const INTERNAL_ERROR = 1011;
/** Messages of a WebSocket that are taken in a turn that has lasted too long. */
const MESSAGES_AT_ONCE = 256;
/** Seconds without a message or a pong after which a connection is closed. */
const IDLE_SECONDS = 120;

/**
 * What uWebSockets.js carries through the handshake. It copies the fields, so there is one that clashes with
 * none.
 */
export interface UpgradeData {
  upgraded: UwsWebSocket;
}

type SocketState =
  | { phase: 'handshake'; open: (socket: ServerWebSocket) => WebSocketHandlers }
  /** `handlers` is null until `open` has returned, and stays so when it throws. */
  | { phase: 'open'; ws: WebSocket<UpgradeData>; handlers: WebSocketHandlers | null }
  /** A closed WebSocket of uWebSockets.js throws when it is used. */
  | { phase: 'closed' };

export class UwsWebSocket implements ServerWebSocket {
  private state: SocketState;
  /** The last turn in which a message has come, and how many. */
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

  /** Whether a message may be handled: not one of very many in a turn that has lasted too long. */
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

/** What uWebSockets.js does with the WebSockets of one path. Whatever a handler throws goes to `onDefect`. */
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
    // It is answered before this. Only here can a flood of pings be seen.
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
