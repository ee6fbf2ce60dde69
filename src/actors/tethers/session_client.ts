// The client's side of a session: a connection to a local port, or a stream of a relay.
import type { Socket } from 'node:net';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';

/** What a session hears of its client. */
export interface SessionClientEvents {
  onClientData(bytes: Buffer): void;
  /** The client sends no more. It may still read. */
  onClientEnd(): void;
  /** Everything that was written is on its way. */
  onClientDrained(): void;
  /** The client has gone, or its connection has broken. May come twice. */
  onClientClosed(): void;
}

/** One client of a session. */
export interface SessionClient {
  readonly isPaused: boolean;
  /** Bytes that were written and that it has not taken. */
  readonly bufferedBytes: number;
  /** Starts the events; called once, first. */
  listen(events: SessionClientEvents): void;
  /** Stops and starts `onClientData`. */
  pause(): void;
  resume(): void;
  /** `bytes` are the client's to keep. */
  write(bytes: Buffer): void;
  /** Nothing more will be written; `flushed` is called when it has everything. */
  end(flushed: () => void): void;
  /**
   * Ends the connection so that the client does not take what it has for a whole reply. `reason`: why, for
   * people; null: not for an error. `isUnseen`: no pod has seen anything of it.
   */
  reset(reason: string | null, isUnseen: boolean): void;
  destroy(): void;
  /** Whether a client that has half-closed has gone for good; null where nobody knows. */
  isGone(): boolean | null;
}

/** The client at the other end of a connection to a port of this machine. */
export class SocketClient implements SessionClient {
  private readonly socket: Socket;
  private readonly peers: LoopbackPeers;

  constructor(socket: Socket, peers: LoopbackPeers) {
    this.socket = socket;
    this.peers = peers;
  }

  get isPaused(): boolean {
    return this.socket.isPaused();
  }

  get bufferedBytes(): number {
    return this.socket.writableLength;
  }

  listen(events: SessionClientEvents): void {
    this.socket.on('data', (bytes: Buffer) => events.onClientData(bytes));
    this.socket.on('end', () => events.onClientEnd());
    this.socket.on('drain', () => events.onClientDrained());
    this.socket.on('error', () => events.onClientClosed());
    this.socket.on('close', () => events.onClientClosed());
  }

  pause(): void {
    this.socket.pause();
  }

  resume(): void {
    this.socket.resume();
  }

  write(bytes: Buffer): void {
    const { socket } = this;
    if (socket.writableCorked === 0) {
      // What comes in one turn of the loop goes out in one call.
      socket.cork();
      setImmediate(() => socket.uncork());
    }
    socket.write(bytes);
  }

  end(flushed: () => void): void {
    this.socket.end(flushed);
  }

  reset(): void {
    this.socket.on('error', () => undefined).resetAndDestroy();
  }

  destroy(): void {
    this.socket.destroy();
  }

  isGone(): boolean | null {
    return this.peers.isPeerGone(this.socket);
  }
}
