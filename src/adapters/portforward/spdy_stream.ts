// One stream of a SPDY line: a SPDY stream for data and one on which the node says what went wrong.
import { TETHER } from '../../settings/limits.ts';
import { type ForwardError, type ForwardStream, type ForwardStreamEvents, podError } from './transport.ts';

const MAX_ERROR_BYTES = 4 * 1024;

/** What a stream asks of its line. */
export interface StreamConnection {
  /** False: enough for now. */
  write(stream: SpdyStream, bytes: Buffer): boolean;
  /** Says that nothing more is written on the stream. */
  sendFin(stream: SpdyStream): void;
  pause(stream: SpdyStream): void;
  resume(stream: SpdyStream): void;
  /** The user has gone; the node may still be closing the stream. */
  onStreamDestroyed(stream: SpdyStream): void;
  /** The node is through with the stream; `failed` with an error, so that the line is not to be used again. */
  onStreamClosed(stream: SpdyStream, failed: boolean): void;
  /** The node has not closed the stream in time; whether it gets as much time again. */
  mayLinger(stream: SpdyStream): boolean;
  /** The line takes no more streams, and is closed unless another one of them goes on. */
  abandon(stream: SpdyStream, error: ForwardError): void;
}

export class SpdyStream implements ForwardStream {
  readonly dataId: number;
  readonly errorId: number;
  private readonly connection: StreamConnection;
  /** null: nobody listens any more. */
  private events: ForwardStreamEvents | null;
  /** The node knows of it. */
  private isReplied = false;
  /** Its user has been told that it may write. */
  private isOpened = false;
  /** The pod has sent something. */
  private hasReceivedData = false;
  private isLocalFinSent = false;
  private isRemoteFinReceived = false;
  private isErrorStreamEnded = false;
  private errorText = '';
  private timer: NodeJS.Timeout;

  constructor(line: StreamConnection, errorId: number, dataId: number, events: ForwardStreamEvents) {
    this.connection = line;
    this.errorId = errorId;
    this.dataId = dataId;
    this.events = events;
    this.timer = setTimeout(
      () => line.abandon(this, { code: 'lost', text: 'the node does not answer' }),
      TETHER.streamOpenTimeoutMs,
    );
  }

  write(bytes: Buffer): boolean {
    return this.isLocalFinSent || this.connection.write(this, bytes);
  }

  end(): void {
    if (this.isLocalFinSent) return;
    this.isLocalFinSent = true;
    this.connection.sendFin(this);
  }

  pause(): void {
    this.connection.pause(this);
  }

  resume(): void {
    this.connection.resume(this);
  }

  destroy(): void {
    if (!this.events) return;
    this.events = null;
    this.end();
    // Until the node has answered for the stream the line is not clear; it is given up if no answer comes.
    if (this.isReplied) this.lingerAfterDestroy();
  }

  private lingerAfterDestroy(): void {
    this.awaitClose();
    this.connection.onStreamDestroyed(this);
  }

  private awaitClose(): void {
    this.restartTimer(TETHER.streamCloseTimeoutMs, () => {
      if (this.connection.mayLinger(this)) this.awaitClose();
      else this.connection.abandon(this, { code: 'lost', text: 'a stream was not closed' });
    });
  }

  /** The line takes bytes again. */
  onDrained(): void {
    if (this.isOpened) this.events?.onDrained();
  }

  /** Lets the user write. */
  markOpened(): void {
    if (this.isOpened) return;
    this.isOpened = true;
    this.events?.onOpened();
  }

  onReply(id: number): void {
    if (id !== this.dataId || this.isReplied) return;
    this.isReplied = true;
    clearTimeout(this.timer);
    if (this.events) this.markOpened();
    else this.lingerAfterDestroy();
  }

  /** False: nobody takes them. */
  onData(id: number, bytes: Buffer): boolean {
    if (id === this.errorId) {
      if (this.errorText.length < MAX_ERROR_BYTES) this.errorText += bytes.toString();
      return true;
    }
    if (!this.events) return false;
    this.markOpened();
    this.hasReceivedData = true;
    this.events.onData(bytes);
    return true;
  }

  /** A FIN or a reset. The text on the error stream may follow that of the data stream, so both ends are awaited. */
  onFin(id: number): void {
    if (id === this.errorId) this.isErrorStreamEnded = true;
    else this.isRemoteFinReceived = true;
    if (this.isErrorStreamEnded && (this.isRemoteFinReceived || this.errorText !== '')) this.close();
    else if (this.isRemoteFinReceived) this.restartTimer(TETHER.errorStreamTimeoutMs, () => this.close());
  }

  /** The line has ended. */
  onConnectionLost(error: ForwardError): void {
    clearTimeout(this.timer);
    const events = this.events;
    this.events = null;
    if (this.isRemoteFinReceived) events?.onEnded();
    else events?.onFailed(error);
  }

  private close(): void {
    clearTimeout(this.timer);
    this.end();
    const events = this.events;
    this.events = null;
    const said = this.errorText === '' ? null : podError(this.errorText, this.hasReceivedData);
    const refused: ForwardError = { code: 'broken', text: 'the node refused the stream' };
    const setback = said ?? (this.isReplied ? null : refused);
    this.connection.onStreamClosed(this, setback !== null);
    if (setback) events?.onFailed(setback);
    else events?.onEnded();
  }

  private restartTimer(ms: number, then: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(then, ms);
  }
}
