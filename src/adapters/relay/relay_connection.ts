// The WebSocket below a relay's streams, on either side.
import type { Clock } from '../../runtime/actor.ts';
import { afterRunning } from '../../runtime/clock.ts';
import { RELAY } from '../../settings/cloud_limits.ts';
import { errorLine } from '../portforward/transport.ts';
import { Silence } from '../silence.ts';
import type { WebSocket } from '../websocket.ts';
import { FRAME_HEAD_BYTES } from './frames.ts';
import { Mux, type MuxEvents } from './mux.ts';

/** The longest message of a relay. */
export const MAX_RELAY_MESSAGE_BYTES = RELAY.maxDataBytes + FRAME_HEAD_BYTES;

const GOING_AWAY = 1001;
const PROTOCOL_ERROR = 1002;
/** A close frame has 125 bytes at most, two of them for the code. */
const MAX_CLOSE_BYTES = 123;

export interface RelayConnection {
  readonly mux: Mux;
  /** Ends it and its streams. */
  close(reason: string): void;
  /**
   * For a server that is ending: like `close`, but after a short wait for the client to receive what was
   * sent.
   */
  leave(reason: string): void;
}

/**
 * Calls `giveUp` when the peer says nothing for a while after a stream was opened. Whoever opened it waits,
 * so a peer that has vanished must be noticed sooner than on an idle connection.
 */
function silenceTimer(clock: Clock, giveUp: () => void) {
  let cancel: (() => void) | null = null;
  return {
    begin: (): void => {
      cancel ??= afterRunning(clock, RELAY.probeMs, giveUp);
    },
    /** The peer has said something, or the connection has ended. */
    end: (): void => {
      cancel?.();
      cancel = null;
    },
  };
}

/**
 * Carries streams over an open WebSocket. `events`: for the server side; null for the client side. `onClosed`
 * is called once.
 */
export function carryStreams(
  socket: WebSocket,
  clock: Clock,
  events: MuxEvents | null,
  onClosed: () => void,
): RelayConnection {
  const silence = new Silence(clock);
  let why = 'the connection to the relay was lost';
  const flush = (): void => mux.flush();
  const endSocket = (code: number, reason: string): void => {
    socket.close(code, Buffer.from(reason).subarray(0, MAX_CLOSE_BYTES));
    clock.after(RELAY.closeTimeoutMs, () => socket.terminate());
  };
  const mux = new Mux(
    {
      get bufferedBytes() {
        return socket.bufferedAmount;
      },
      send: (frame) => socket.send(frame, flush),
      opened: () => {
        mux.ping();
        probe.begin();
      },
      close: (reason) => endSocket(PROTOCOL_ERROR, reason),
    },
    events,
  );
  const probe = silenceTimer(clock, () => socket.terminate());
  const isDead = (): boolean => silence.ms >= RELAY.deadPeerMs;
  const cancelPings = clock.every(RELAY.pingIntervalMs, () => {
    if (!silence.judge(isDead, () => socket.terminate())) mux.ping();
  });
  socket.on('message', (message: Buffer, isBinary) => {
    silence.onHeard();
    probe.end();
    mux.receive(isBinary ? message : Buffer.alloc(0));
  });
  // The end follows.
  socket.on('error', (error) => {
    why = errorLine(error.message);
  });
  socket.on('close', (_code, reason: Buffer) => {
    cancelPings();
    probe.end();
    mux.close(reason.length > 0 ? errorLine(reason.toString()) : why);
    onClosed();
  });
  return {
    mux,
    close: (reason) => {
      mux.close(reason);
      socket.terminate();
    },
    leave: (reason) => {
      mux.leave();
      mux.close(reason);
      endSocket(GOING_AWAY, reason);
    },
  };
}
