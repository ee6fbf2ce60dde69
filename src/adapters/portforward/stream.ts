// One stream of a SPDY line: a SPDY stream for data and one on which the node says what went wrong.
import { TETHER } from '../../limits.ts';
import { podSetback, type Setback, type Stream, type StreamEvents } from './way.ts';

const ERROR_BYTES = 4 * 1024;

/** What a stream asks of its line. */
export interface StreamLine {
  /** False: enough for now. */
  write(stream: SpdyStream, bytes: Buffer): boolean;
  /** Says that nothing more is written on the stream. */
  finish(stream: SpdyStream): void;
  pause(stream: SpdyStream): void;
  resume(stream: SpdyStream): void;
  /** The user has gone; the node may still be closing the stream. */
  left(stream: SpdyStream): void;
  /** The node is through with the stream; `failed` with an error, so that the line is not to be used again. */
  done(stream: SpdyStream, failed: boolean): void;
  /** The node has not closed the stream in time; whether it gets as much time again. */
  waits(stream: SpdyStream): boolean;
  /** The line takes no more streams, and is closed unless another one of them goes on. */
  giveUp(stream: SpdyStream, setback: Setback): void;
}

export class SpdyStream implements Stream {
  readonly dataId: number;
  readonly errorId: number;
  private readonly line: StreamLine;
  /** null: nobody listens any more. */
  private events: StreamEvents | null;
  /** The node knows of it. */
  private isKnown = false;
  /** Its user has been told that it may write. */
  private opened = false;
  /** The pod has sent something. */
  private seen = false;
  private endedHere = false;
  private endedThere = false;
  private errorEnded = false;
  private error = '';
  private timer: NodeJS.Timeout;

  constructor(line: StreamLine, errorId: number, dataId: number, events: StreamEvents) {
    this.line = line;
    this.errorId = errorId;
    this.dataId = dataId;
    this.events = events;
    this.timer = setTimeout(
      () => line.giveUp(this, { code: 'lost', text: 'the node does not answer' }),
      TETHER.openMs,
    );
  }

  write(bytes: Buffer): boolean {
    return this.endedHere || this.line.write(this, bytes);
  }

  end(): void {
    if (this.endedHere) return;
    this.endedHere = true;
    this.line.finish(this);
  }

  pause(): void {
    this.line.pause(this);
  }

  resume(): void {
    this.line.resume(this);
  }

  leave(): void {
    if (!this.events) return;
    this.events = null;
    this.end();
    // Until the node has answered for the stream the line is not clear; it is given up if no answer comes.
    if (this.isKnown) this.left();
  }

  private left(): void {
    this.await();
    this.line.left(this);
  }

  private await(): void {
    this.after(TETHER.endingMs, () => {
      if (this.line.waits(this)) this.await();
      else this.line.giveUp(this, { code: 'lost', text: 'a stream was not closed' });
    });
  }

  /** The line takes bytes again. */
  drained(): void {
    if (this.opened) this.events?.drained();
  }

  /** Lets the user write. */
  open(): void {
    if (this.opened) return;
    this.opened = true;
    this.events?.opened();
  }

  replied(id: number): void {
    if (id !== this.dataId || this.isKnown) return;
    this.isKnown = true;
    clearTimeout(this.timer);
    if (this.events) this.open();
    else this.left();
  }

  /** False: nobody takes them. */
  data(id: number, bytes: Buffer): boolean {
    if (id === this.errorId) {
      if (this.error.length < ERROR_BYTES) this.error += bytes.toString();
      return true;
    }
    if (!this.events) return false;
    this.open();
    this.seen = true;
    this.events.data(bytes);
    return true;
  }

  /** A FIN or a reset. The text on the error stream may follow that of the data stream, so both ends are awaited. */
  ended(id: number): void {
    if (id === this.errorId) this.errorEnded = true;
    else this.endedThere = true;
    if (this.errorEnded && (this.endedThere || this.error !== '')) this.done();
    else if (this.endedThere) this.after(TETHER.errorMs, () => this.done());
  }

  /** The line has ended. */
  lost(setback: Setback): void {
    clearTimeout(this.timer);
    const events = this.events;
    this.events = null;
    if (this.endedThere) events?.ended();
    else events?.failed(setback);
  }

  private done(): void {
    clearTimeout(this.timer);
    this.end();
    const events = this.events;
    this.events = null;
    const said = this.error === '' ? null : podSetback(this.error, this.seen);
    const refused: Setback = { code: 'broken', text: 'the node refused the stream' };
    const setback = said ?? (this.isKnown ? null : refused);
    this.line.done(this, setback !== null);
    if (setback) events?.failed(setback);
    else events?.ended();
  }

  private after(ms: number, then: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(then, ms);
  }
}
