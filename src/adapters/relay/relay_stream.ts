// A stream of a relay as a tether sees its connection to a pod.
import type { Clock } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import {
  type Destroyable,
  errorLine,
  type ForwardErrorCode,
  type ForwardStream,
  type ForwardStreamEvents,
} from '../portforward/transport.ts';
import type { ResetCode } from './frames.ts';
import type { Mux } from './mux.ts';
import type { MuxStream } from './mux_stream.ts';

/**
 * What an end of the stream means for who may try again. `absent`: no pod has seen anything of it.
 * docs/reference.md "Remote tethers".
 */
const ERRORS: Readonly<Record<ResetCode, ForwardErrorCode>> = {
  failed: 'broken',
  unseen: 'absent',
  refused: 'absent',
  closed: 'broken',
};

class RelayStream implements ForwardStream {
  private readonly stream: MuxStream;
  private readonly events: ForwardStreamEvents;
  private readonly clock: Clock;
  private hasWritten = false;
  private isOver = false;

  constructor(stream: MuxStream, clock: Clock, events: ForwardStreamEvents) {
    this.stream = stream;
    this.clock = clock;
    this.events = events;
    // Its user does not know it before this call has returned.
    queueMicrotask(() => this.begin());
  }

  write(bytes: Buffer): boolean {
    this.hasWritten ||= bytes.length > 0;
    return this.stream.write(bytes);
  }

  end(): void {
    this.stream.end();
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  destroy(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.leave();
  }

  private leave(): void {
    const { stream } = this;
    // A pod that takes nothing more must not keep it for ever.
    if (stream.bufferedBytes > 0) this.clock.after(TETHER.stuckTimeoutMs, () => stream.reset('closed', ''));
    stream.leave();
  }

  private begin(): void {
    const { stream, events } = this;
    if (this.isOver) return;
    events.onOpened(this);
    if (this.isOver) return;
    stream.listen({
      onData: (bytes) => events.onData(bytes),
      onDrained: () => events.onDrained(),
      onEnd: () => {
        this.isOver = true;
        events.onEnded();
        // What its user has not sent has nowhere to go.
        this.leave();
      },
      onClosed: () => undefined,
      onReset: (code, text) => {
        this.isOver = true;
        events.onFailed({
          code: this.errorOf(code),
          text: errorLine(text) || 'the relay has closed the connection',
        });
      },
    });
  }

  /** With a connection that is lost nobody knows what has been delivered of what was sent. */
  private errorOf(code: ResetCode | 'lost'): ForwardErrorCode {
    if (code !== 'lost') return ERRORS[code];
    return this.hasWritten ? 'lost' : 'absent';
  }
}

/** Opens a stream to what `request` names. There must be room: `mux.isFree`. */
export const openRelayStream = (
  mux: Mux,
  request: Buffer,
  clock: Clock,
  events: ForwardStreamEvents,
): Destroyable => new RelayStream(mux.open(request), clock, events);
