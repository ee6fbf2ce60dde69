// The client of a session that came over a relay.
import type { MuxStream } from '../../adapters/relay/mux_stream.ts';
import type { SessionClient, SessionClientEvents } from './session_client.ts';

/** A connection to a port of another machine, as a stream of the relay. */
export class StreamClient implements SessionClient {
  private readonly stream: MuxStream;
  private hasGone = false;
  private onClosed = (): void => undefined;

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
    this.onClosed = () => events.onClientClosed();
    this.stream.listen({
      onData: (bytes) => events.onClientData(bytes),
      onEnd: () => events.onClientEnd(),
      onDrained: () => events.onClientDrained(),
      onClosed: () => events.onClientClosed(),
      onReset: (code) => {
        this.hasGone = true;
        // As with a local port, a client that has closed cleanly has sent everything.
        if (code === 'closed') events.onClientEnd();
        else events.onClientClosed();
      },
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
    if (this.hasGone) flushed();
    else this.stream.end(flushed);
  }

  reset(reason: string | null, isUnseen: boolean): void {
    // A client that was still waiting when the relay ended may wait for the next one. Errors have already
    // been retried here.
    this.stream.reset(isUnseen && reason === null ? 'unseen' : 'failed', reason ?? 'the relay ends');
  }

  destroy(): void {
    this.stream.reset('closed', '');
    // Called later, as a socket does.
    queueMicrotask(this.onClosed);
  }

  /** The other side of the relay watches its client, and resets the stream. */
  isGone(): boolean {
    return this.hasGone || this.stream.isLeft;
  }
}
