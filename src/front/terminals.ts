// The viewers of agents' terminals: WebSockets on this side, letters to the service that owns the terminal on the other.
import { AGENT } from '../limits.ts';
import type { TerminalProtocol, ViewersProtocol } from '../protocol/terminal.ts';
import type { Clock, Handlers, Message, Ref } from '../runtime/actor.ts';
import type { Socket, SocketEvents } from './server.ts';

/** Close codes of RFC 6455. */
const CLOSE = { done: 1000, badData: 1007, failed: 1011, restarted: 1012 } as const;

type Control = { resize: [cols: number, rows: number] } | { ack: number };

const isCount = (value: unknown, least: number, most: number): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;

/**
 * What a text frame of a viewer says; undefined when it is nothing it may say: docs/reference.md "Attach".
 */
function readControl(text: string): Control | undefined {
  let said: unknown;
  try {
    said = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof said !== 'object' || said === null || Object.keys(said).length !== 1) return undefined;
  if ('ack' in said && isCount(said.ack, 0, Number.MAX_SAFE_INTEGER)) return { ack: said.ack };
  if (!('resize' in said) || !Array.isArray(said.resize) || said.resize.length !== 2) return undefined;
  const [cols, rows]: unknown[] = said.resize;
  const fits = isCount(cols, 1, AGENT.mostCells) && isCount(rows, 1, AGENT.mostCells);
  return fits ? { resize: [cols, rows] } : undefined;
}

type Size = Message<TerminalProtocol, 'resize'>;

export class Terminals {
  private readonly clock: Clock;
  private readonly sockets = new Map<string, Socket>();
  /** By the address of the service: terminals that were told a size just now, and the last one asked for since. */
  private readonly resized = new Map<string, { next: Size | null; cancel: () => void }>();
  private opened = 0;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** Letters from the services: what their terminals show. */
  readonly handlers: Handlers<ViewersProtocol> = {
    output: ({ viewer, bytes }) => {
      this.send(viewer, bytes);
      return null;
    },
    size: ({ viewer, cols, rows }) => {
      this.send(viewer, JSON.stringify({ size: [cols, rows] }));
      return null;
    },
    gone: ({ viewer }) => {
      this.sockets.get(viewer)?.close(CLOSE.restarted, 'the terminal begins anew');
      return null;
    },
    exit: ({ viewer, exitCode, signal }) => {
      const socket = this.sockets.get(viewer);
      socket?.send(JSON.stringify({ exit: { exitCode, signal } }));
      socket?.close(CLOSE.done);
      return null;
    },
  };

  /** A WebSocket that has just been opened to the terminal of `service`. */
  open(socket: Socket, service: Ref<TerminalProtocol>): SocketEvents {
    this.opened += 1;
    const viewer = String(this.opened);
    this.sockets.set(viewer, socket);
    service.ask('attach', { viewer }).catch(() => socket.close(CLOSE.failed, 'the terminal has gone'));
    return {
      message: (data, isBinary) => {
        if (isBinary) {
          service.tell('input', { data });
          return;
        }
        const control = readControl(Buffer.from(data.buffer, data.byteOffset, data.length).toString());
        if (!control) socket.close(CLOSE.badData, 'neither resize nor ack');
        else if ('ack' in control) service.tell('ack', { viewer, bytes: control.ack });
        else this.resize(service, { cols: control.resize[0], rows: control.resize[1] });
      },
      // Output waits for acknowledgements, not for the socket: of a viewer that reads, what it may owe is under way.
      drain: () => undefined,
      close: () => {
        this.sockets.delete(viewer);
        service.tell('detach', { viewer });
      },
    };
  }

  /** The services are gone for a moment: viewers come back by themselves and get the screen anew. */
  lost(): void {
    for (const { cancel } of this.resized.values()) cancel();
    this.resized.clear();
    for (const socket of this.sockets.values()) socket.close(CLOSE.restarted, 'the services restart');
  }

  private send(viewer: string, data: string | Uint8Array): void {
    const socket = this.sockets.get(viewer);
    // It acknowledges what it has not read, so nothing else would end what waits here.
    if (socket && socket.waiting > AGENT.waitingBytes)
      socket.close(CLOSE.failed, 'what was sent is not read');
    else socket?.send(data);
  }

  /** The first size is told at once. Of those that follow it closely the last one wins: each redraws the whole screen. */
  private resize(service: Ref<TerminalProtocol>, size: Size): void {
    const { address } = service;
    const resized = this.resized.get(address);
    if (resized) {
      resized.next = size;
      return;
    }
    service.tell('resize', size);
    const cancel = this.clock.after(AGENT.resizeMs, () => {
      const next = this.resized.get(address)?.next;
      this.resized.delete(address);
      if (next) this.resize(service, next);
    });
    this.resized.set(address, { next: null, cancel });
  }
}
