// A stream of a relay, used by a tether as a connection to a pod.
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
 * What the end of a stream means for a retry. `absent`: no pod has seen anything of it.
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
    // A pod that takes nothing more must not keep it forever.
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
        // Data its user has not sent has nowhere to go.
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

  /** If the connection is lost, it is unknown how much of the sent data was delivered. */
  private errorOf(code: ResetCode | 'lost'): ForwardErrorCode {
    if (code !== 'lost') return ERRORS[code];
    return this.hasWritten ? 'lost' : 'absent';
  }
}

/** Opens a stream to the target in `request`. Requires room: `mux.isFree`. */
export const openRelayStream = (
  mux: Mux,
  request: Buffer,
  clock: Clock,
  events: ForwardStreamEvents,
): Destroyable => new RelayStream(mux.open(request), clock, events);
