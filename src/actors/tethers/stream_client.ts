// The client of a session that came over a relay.
import type { MuxStream } from '../../adapters/relay/mux_stream.ts';
import type { SessionClient, SessionClientEvents } from './session_client.ts';

/** A connection to a port of another machine, as a stream of the relay. */
export class StreamClient implements SessionClient {
  private readonly stream: MuxStream;

  constructor(stream: MuxStream) {
    this.stream = stream;
  }

  get isPaused(): boolean {
    return this.stream.isPaused;
  }

  get bufferedBytes(): number {
    return this.stream.bufferedBytes;
  }

  listen(events: SessionClientEvents): void {
    this.stream.listen({
      onData: (bytes) => events.onClientData(bytes),
      onEnd: () => events.onClientEnd(),
      onDrained: () => events.onClientDrained(),
      onClosed: () => events.onClientClosed(),
      onReset: () => events.onClientClosed(),
    });
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  write(bytes: Buffer): void {
    this.stream.write(bytes);
  }

  end(flushed: () => void): void {
    this.stream.end(flushed);
  }

  reset(reason: string | null, isUnseen: boolean): void {
    // Whoever waited when the relay ended may wait for the next one. An error has been tried again here.
    this.stream.reset(isUnseen && reason === null ? 'unseen' : 'failed', reason ?? 'the relay ends');
  }

  destroy(): void {
    this.stream.reset('closed', '');
  }

  /** The other side of the relay sees to its client, and resets the stream. */
  isGone = (): boolean => false;
}
