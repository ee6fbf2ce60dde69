// The viewers of agents' terminals: WebSockets on one side, messages to the service that owns the terminal on
// the other.

import { fail } from '../../protocol/errors.ts';
import {
  TAKEN_OVER_CODE,
  type TerminalProtocol,
  type TerminalViewersProtocol,
  TOKEN_CHANGED,
  viewerShare,
} from '../../protocol/terminal.ts';
import { type Clock, type Handlers, type MessageOf, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT, SHARE } from '../../settings/agent_limits.ts';
import type { ServerWebSocket, WebSocketHandlers } from '../server/http_server.ts';
import { TerminalViewer, type Viewing } from './terminal_viewer.ts';

/** Close codes of RFC 6455. */
const CLOSE_CODES = { done: 1000, badData: 1007, refused: 1008, failed: 1011, restarted: 1012 } as const;

/** `text` cut to the 123 bytes that fit into a close frame. */
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

/** For a viewer that has not said how it wants to attach. */
const SHARED_VIEWING: Viewing = { mode: 'shared', takesOver: false, share: null };

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
  /** Keyed by the address of the service. */
  private readonly recentResizes = new Map<string, RecentResize>();
  /** The viewer with mode `write`, by the address of the service. */
  private readonly writers = new Map<string, string>();
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

  /**
   * Checks before the upgrade whether there is room. Throws writer_attached when another viewer has the right
   * to write, and daemon_busy when its share has all the viewers allowed.
   */
  assertRoom({ address }: Ref<TerminalProtocol>, viewing: Viewing): void {
    if (viewing.mode === 'write' && !viewing.takesOver && this.writers.has(address))
      throw fail('writer_attached', 'another viewer writes in this terminal');
    if (viewing.share !== null && this.viewersBy(viewing.share) >= SHARE.maxViewers)
      throw fail('daemon_busy', `${SHARE.maxViewers} viewers are using this share`);
  }

  /** Attaches a new WebSocket to the terminal of `service`. */
  open(
    socket: ServerWebSocket,
    service: Ref<TerminalProtocol>,
    viewing: Viewing = SHARED_VIEWING,
  ): WebSocketHandlers {
    this.lastViewer += 1;
    const name = String(this.lastViewer);
    const viewer = new TerminalViewer(name, socket, service, viewing);
    this.viewers.set(name, viewer);
    const observes = viewing.mode === 'observe';
    // First of all, so that the client knows that its input is acknowledged.
    if (!observes) viewer.beginInput();
    if (viewing.mode === 'write') this.makeWriter(name, service);
    const attached = service.ask('attach', observes ? { viewer: name, observes } : { viewer: name });
    void tolerateFailure(attached, ({ code, message }) =>
      socket.close(
        CLOSE_CODES.failed,
        code === 'start_failed' ? closeReason(message) : 'the terminal has gone',
      ),
    );
    return {
      message: (data, isBinary) => {
        if (this.viewers.has(name)) this.take(name, viewer, { data, isBinary });
      },
      drain: () => viewer.onDrain(),
      close: () => {
        this.viewers.delete(name);
        if (this.writers.get(service.address) === name) this.writers.delete(service.address);
        viewer.leave();
      },
    };
  }

  /** Sends what the viewers of the terminal have typed, so that it precedes what is typed afterwards. */
  sendTyped({ address }: Ref<TerminalProtocol>): void {
    for (const viewer of this.viewers.values()) if (viewer.service.address === address) viewer.sendTyped();
  }

  /** The number of viewers who came by the share `id`. */
  viewersBy(id: string): number {
    return [...this.viewers.values()].filter(({ viewing }) => viewing.share === id).length;
  }

  /** The share has ended: its viewers get nothing more. */
  endShare(id: string): void {
    for (const [name, { viewing, service }] of this.viewers) {
      if (viewing.share !== id) continue;
      // The client may keep its socket open for as long as it likes.
      service.tell('detach', { viewer: name });
      this.drop(name, CLOSE_CODES.refused, 'the share has ended');
    }
  }

  /** The services thread has ended. Viewers reconnect by themselves and get the whole screen. */
  onServicesLost(): void {
    for (const { cancel } of this.recentResizes.values()) cancel();
    this.recentResizes.clear();
    for (const { socket } of this.viewers.values())
      socket.close(CLOSE_CODES.restarted, 'the services restart');
  }

  /** Ends every session. Nothing more passes, whenever clients close their sockets. */
  cut(): void {
    for (const { socket } of this.viewers.values()) socket.close(TOKEN_CHANGED.code, TOKEN_CHANGED.reason);
    this.viewers.clear();
  }

  /** A frame of a viewer. docs/reference.md "Attach". */
  private take(name: string, viewer: TerminalViewer, frame: { data: Uint8Array; isBinary: boolean }): void {
    const { data, isBinary } = frame;
    const { service, socket, viewing } = viewer;
    const control = isBinary
      ? null
      : parseControl(Buffer.from(data.buffer, data.byteOffset, data.length).toString());
    if (control === undefined) socket.close(CLOSE_CODES.badData, 'neither resize nor ack');
    else if (control && 'ack' in control) viewer.acknowledge(control.ack);
    else if (viewing.mode === 'observe')
      this.drop(name, CLOSE_CODES.refused, 'an observer neither types nor resizes');
    else if (control) this.resize(service, { cols: control.resize[0], rows: control.resize[1] });
    else if (!viewer.type(data, viewerShare(this.viewers.size)))
      socket.close(CLOSE_CODES.refused, 'the program does not read what was sent');
  }

  /** Makes `name` the only writer of the terminal. The previous one is told, and closed. */
  private makeWriter(name: string, { address }: Ref<TerminalProtocol>): void {
    const before = this.writers.get(address);
    this.writers.set(address, name);
    if (before === undefined) return;
    const loser = this.viewers.get(before);
    loser?.dropTyped();
    loser?.socket.send('{"takenOver":true}');
    this.drop(before, TAKEN_OVER_CODE, 'another viewer has taken over');
  }

  /** Closes a viewer. Nothing more is taken from it, whenever it closes its socket. */
  private drop(name: string, code: number, reason: string): void {
    const viewer = this.viewers.get(name);
    this.viewers.delete(name);
    viewer?.socket.close(code, reason);
  }

  /**
   * Sends the first size at once, but only the last of those that follow closely, because each redraws the
   * whole screen.
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
