// The viewers of agents' terminals: WebSockets on one side, messages to the service that owns the terminal on
// the other.

import { type TerminalProtocol, type TerminalViewersProtocol, viewerShare } from '../../protocol/terminal.ts';
import { type Clock, type Handlers, type MessageOf, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/limits.ts';
import type { ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';
import { TerminalViewer } from './terminal_viewer.ts';

/** Close codes of RFC 6455. */
const CLOSE_CODES = { done: 1000, badData: 1007, refused: 1008, failed: 1011, restarted: 1012 } as const;

/** `text` as far as a close frame has room for it: 123 bytes. */
const closeReason = (text: string): string =>
  Buffer.from(text)
    .subarray(0, 120)
    .toString()
    .replace(/\ufffd+$/, '');

type ViewerControl = { resize: [cols: number, rows: number] } | { ack: number };

const isIntegerBetween = (value: unknown, least: number, most: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;

/** Parses a text frame of a viewer; undefined for an invalid one. docs/reference.md "Attach". */
function parseControl(text: string): ViewerControl | undefined {
  let control: unknown;
  try {
    control = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof control !== 'object' || control === null || Object.keys(control).length !== 1) return undefined;
  if ('ack' in control && isIntegerBetween(control.ack, 0, Number.MAX_SAFE_INTEGER))
    return { ack: control.ack };
  if (!('resize' in control) || !Array.isArray(control.resize) || control.resize.length !== 2)
    return undefined;
  const [cols, rows]: unknown[] = control.resize;
  const fits =
    isIntegerBetween(cols, 1, AGENT.maxColsOrRows) && isIntegerBetween(rows, 1, AGENT.maxColsOrRows);
  return fits ? { resize: [cols, rows] } : undefined;
}

type TerminalSize = MessageOf<TerminalProtocol, 'resize'>;

/** A terminal that was resized within the last `AGENT.resizeIntervalMs`. */
interface RecentResize {
  /** The last size requested since. */
  next: TerminalSize | null;
  /** Cancels the resize to `next`. */
  cancel: () => void;
}

/** All viewers. */
export class TerminalSockets {
  private readonly clock: Clock;
  private readonly viewers = new Map<string, TerminalViewer>();
  /** By the address of the service. */
  private readonly recentResizes = new Map<string, RecentResize>();
  private lastViewer = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Messages from the services, for the viewers of their terminals. */
  readonly handlers: Handlers<TerminalViewersProtocol> = {
    output: ({ viewer, bytes }) => {
      this.viewers.get(viewer)?.output(bytes);
      return null;
    },
    inputTaken: ({ viewer }) => {
      this.viewers.get(viewer)?.onInputTaken();
      return null;
    },
    size: ({ viewer, cols, rows }) => {
      this.viewers.get(viewer)?.socket.send(JSON.stringify({ size: [cols, rows] }));
      return null;
    },
    detached: ({ viewer }) => {
      this.viewers.get(viewer)?.socket.close(CLOSE_CODES.restarted, 'the terminal begins anew');
      return null;
    },
    exit: ({ viewer, exitCode, signal }) => {
      const socket = this.viewers.get(viewer)?.socket;
      socket?.send(JSON.stringify({ exit: { exitCode, signal } }));
      socket?.close(CLOSE_CODES.done);
      return null;
    },
  };

  /** Attaches a new WebSocket to the terminal of `service`. */
  open(socket: ServerWebSocket, service: Ref<TerminalProtocol>): WebSocketHandlers {
    this.lastViewer += 1;
    const name = String(this.lastViewer);
    const viewer = new TerminalViewer(name, socket, service);
    this.viewers.set(name, viewer);
    const attached = service.ask('attach', { viewer: name });
    void tolerateFailure(attached, ({ code, message }) =>
      socket.close(
        CLOSE_CODES.failed,
        code === 'start_failed' ? closeReason(message) : 'the terminal has gone',
      ),
    );
    return {
      message: (data, isBinary) => {
        if (!this.viewers.has(name)) return;
        if (isBinary) {
          if (!viewer.type(data, viewerShare(this.viewers.size)))
            socket.close(CLOSE_CODES.refused, 'the program does not read what was sent');
          return;
        }
        const control = parseControl(Buffer.from(data.buffer, data.byteOffset, data.length).toString());
        if (!control) socket.close(CLOSE_CODES.badData, 'neither resize nor ack');
        else if ('ack' in control) viewer.acknowledge(control.ack);
        else this.resize(service, { cols: control.resize[0], rows: control.resize[1] });
      },
      drain: () => viewer.passAcknowledgements(),
      close: () => {
        this.viewers.delete(name);
        viewer.leave();
      },
    };
  }

  /** The services thread has ended. Viewers reconnect by themselves and get the whole screen. */
  onServicesLost(): void {
    for (const { cancel } of this.recentResizes.values()) cancel();
    this.recentResizes.clear();
    for (const { socket } of this.viewers.values())
      socket.close(CLOSE_CODES.restarted, 'the services restart');
  }

  /** Ends every session: nothing more passes, whenever the other side closes its socket. */
  cut(): void {
    for (const { socket } of this.viewers.values())
      socket.close(CLOSE_CODES.refused, 'the token has changed');
    this.viewers.clear();
  }

  /**
   * Sends the first size at once, and only the last of those that follow closely: each redraws the whole
   * screen.
   */
  private resize(service: Ref<TerminalProtocol>, size: TerminalSize): void {
    const { address } = service;
    const resized = this.recentResizes.get(address);
    if (resized) {
      resized.next = size;
      return;
    }
    service.tell('resize', size);
    const cancel = this.clock.after(AGENT.resizeIntervalMs, () => {
      const next = this.recentResizes.get(address)?.next;
      this.recentResizes.delete(address);
      if (next) this.resize(service, next);
    });
    this.recentResizes.set(address, { next: null, cancel });
  }
}
