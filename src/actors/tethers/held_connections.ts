// What the connections of a thread that wait may take: places and bytes. All of the thread's listeners
// share it.

export interface HeldLimits {
  maxConnections: number;
  maxBytes: number;
}

/** Counts the connections that wait, and the bytes that are kept of all of them. */
export class HeldConnections {
  private readonly limits: HeldLimits;
  private places = 0;
  private bytes = 0;

  constructor(limits: HeldLimits) {
    this.limits = limits;
  }

  /** Connections that wait. */
  get count(): number {
    return this.places;
  }

  /** Bytes that are kept of them. */
  get keptBytes(): number {
    return this.bytes;
  }

  /** Whether as many wait as may. */
  get isCrowded(): boolean {
    return this.places >= this.limits.maxConnections;
  }

  /** Whether no more should be read from clients. What is on its way is kept beyond that. */
  get isFull(): boolean {
    return this.bytes >= this.limits.maxBytes;
  }

  add(connections: 1 | -1): void {
    this.places += connections;
  }

  keep(bytes: number): void {
    this.bytes += bytes;
  }

  release(bytes: number): void {
    this.bytes -= bytes;
  }
}

/** What a client has sent and nobody has answered: it can be sent once more. */
export class Replay {
  readonly chunks: Buffer[] = [];
  private readonly held: HeldConnections;
  private readonly maxBytes: number;
  private size = 0;

  constructor(held: HeldConnections, maxBytes: number) {
    this.held = held;
    this.maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Whether the client should send no more before it is carried. */
  get isFull(): boolean {
    return this.size >= this.maxBytes || this.held.isFull;
  }

  /** Whether `bytes` more may be kept. */
  hasRoomFor(bytes: number): boolean {
    return this.size + bytes <= this.maxBytes && !this.held.isFull;
  }

  push(chunk: Buffer): void {
    this.chunks.push(chunk);
    this.size += chunk.length;
    this.held.keep(chunk.length);
  }

  /** Forgets what was sent. */
  clear(): void {
    this.held.release(this.size);
    this.size = 0;
    this.chunks.length = 0;
  }
}
