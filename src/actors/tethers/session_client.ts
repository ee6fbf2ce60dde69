// The client's side of a session: a connection to a local port, or a relay stream.
import type { Socket } from 'node:net';
import type { LoopbackPeers } from '../../adapters/process/loopback_peers.ts';

/** The events that a session receives from its client. */
export interface SessionClientEvents {
  onClientData(bytes: Buffer): void;
  /** The client sends no more, but may still read. */
  onClientEnd(): void;
  /** Everything written has been sent. */
  onClientDrained(): void;
  /** The client has disconnected, or its connection has broken. May be called twice. */
  onClientClosed(): void;
}

/** One client of a session. */
export interface SessionClient {
  readonly isPaused: boolean;
  /** Bytes written that it has not taken yet. */
  readonly bufferedBytes: number;
  /** Starts the events. Called once, before everything else. */
  listen(events: SessionClientEvents): void;
  /** Stops and starts `onClientData`. */
  pause(): void;
  resume(): void;
  /** Takes ownership of `bytes`. */
  write(bytes: Buffer): void;
  /** Nothing more will be written. `flushed` is called when the client has everything. */
  end(flushed: () => void): void;
  /**
   * Ends the connection in such a way that the client does not mistake a partial reply for the whole.
   * `reason`: why, for people; null: not because of an error. `isUnseen`: no pod has seen anything of it.
   */
  reset(reason: string | null, isUnseen: boolean): void;
  destroy(): void;
  /** Whether a client that has half-closed is gone for good; null if unknown. */
  isGone(): boolean | null;
}

/** The client of a connection to a port of this machine. */
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
      // Bytes that arrive in one turn of the loop go out in one call.
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
