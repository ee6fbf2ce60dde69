// One viewer of a terminal: the input it may send, and the output it has really read.
// docs/reference.md "Attach".
import type { TerminalProtocol, ViewerMode } from '../../protocol/terminal.ts';
import type { Ref } from '../../runtime/actor.ts';
import { AGENT } from '../../settings/agent_limits.ts';
import { KIB } from '../../settings/limits.ts';
import type { ServerWebSocket } from '../server/http_server.ts';

/** Acknowledgements are passed on in steps of this many bytes, and when everything is acknowledged. */
const ACK_STEP_BYTES = 32 * KIB;

/** How a viewer attaches. */
export interface Viewing {
  readonly mode: ViewerMode;
  /** For a writer: whether it takes over from the present one. */
  readonly takesOver: boolean;
  /** The id of the share it came by; null: none. */
  readonly share: string | null;
}

export class TerminalViewer {
  readonly socket: ServerWebSocket;
  readonly viewing: Viewing;
  readonly service: Ref<TerminalProtocol>;
  private readonly name: string;
  /** Bytes of output given to the socket, acknowledged by the client, and passed on to the service. */
  private sent = 0;
  private acknowledged = 0;
  private passedOn = 0;
  /** Input that waits until the service has passed on the input before it. */
  private typed: Uint8Array[] = [];
  private typedBytes = 0;
  /** The sizes of the messages with input that the service has not passed on yet. */
  private underWay: number[] = [];
  /** Input that the terminal has taken, and the client has not been told of. */
  private taken = 0;

  constructor(name: string, socket: ServerWebSocket, service: Ref<TerminalProtocol>, viewing: Viewing) {
    this.name = name;
    this.viewing = viewing;
    this.socket = socket;
    this.service = service;
  }

  output(bytes: Uint8Array): void {
    this.sent += bytes.length;
    this.socket.send(bytes);
  }

  acknowledge(bytes: number): void {
    this.acknowledged = Math.min(this.sent, this.acknowledged + bytes);
    this.passAcknowledgements();
  }

  /**
   * Passes on what is both acknowledged and no longer in the socket's buffer. So a viewer that acknowledges
   * without reading gets no more than one that acknowledges nothing.
   */
  private passAcknowledgements(): void {
    const read = Math.min(this.acknowledged, this.sent - this.socket.bufferedBytes);
    const bytes = read - this.passedOn;
    if (bytes <= 0 || (bytes < ACK_STEP_BYTES && read < this.sent)) return;
    this.passedOn = read;
    this.service.tell('ack', { viewer: this.name, bytes });
  }

  /** The client has read some of what was sent. */
  onDrain(): void {
    this.passAcknowledgements();
    this.acknowledgeInput();
  }

  /** Sends input on, or keeps it until its turn. Returns false when more than `maxBytes` would wait. */
  type(data: Uint8Array, maxBytes: number): boolean {
    const sentEarly = this.underWay.slice(1).reduce((sum, bytes) => sum + bytes, 0);
    if (sentEarly + this.typedBytes + data.length > maxBytes) return false;
    this.typed.push(data);
    this.typedBytes += data.length;
    if (this.underWay.length === 0) this.sendTyped();
    return true;
  }

  /** The terminal has taken the first input that was under way. */
  onInputTaken(): void {
    this.taken += this.underWay.shift() ?? 0;
    this.acknowledgeInput();
    if (this.underWay.length === 0) this.sendTyped();
  }

  /** Tells the client that it acknowledges input. */
  beginInput(): void {
    this.socket.send(JSON.stringify({ ack: 0 }));
  }

  /** Tells the client how much of its input has been taken. One that does not read is told later. */
  private acknowledgeInput(): void {
    if (this.taken === 0 || this.socket.bufferedBytes > AGENT.maxUnacknowledgedBytes) return;
    this.socket.send(JSON.stringify({ ack: this.taken }));
    this.taken = 0;
  }

  /** Drops the input that waits. */
  dropTyped(): void {
    this.typed = [];
    this.typedBytes = 0;
  }

  /** Sends the remaining input, and detaches from the terminal. */
  leave(): void {
    this.sendTyped();
    this.service.tell('detach', { viewer: this.name });
  }

  /** Sends the input that waits, so that it precedes what is sent to the service afterwards. */
  sendTyped(): void {
    if (this.typedBytes === 0) return;
    this.underWay.push(this.typedBytes);
    this.service.tell('input', { viewer: this.name, data: Buffer.concat(this.typed) });
    this.dropTyped();
  }
}
