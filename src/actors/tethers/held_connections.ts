// The places and bytes that the waiting connections of a thread may take, shared by all of its listeners.

export interface HeldLimits {
  maxConnections: number;
  maxBytes: number;
}

/** Counts the waiting connections and the bytes held for all of them. */
export class HeldConnections {
  private readonly limits: HeldLimits;
  private places = 0;
  private bytes = 0;

  constructor(limits: HeldLimits) {
    this.limits = limits;
  }

  /** The number of waiting connections. */
  get count(): number {
    return this.places;
  }

  /** The number of bytes held for them. */
  get keptBytes(): number {
    return this.bytes;
  }

  /** Whether the most connections allowed are waiting. */
  get isCrowded(): boolean {
    return this.places >= this.limits.maxConnections;
  }

  /** Whether to stop reading from clients. Bytes already on their way are kept beyond the limit. */
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

/** What a client has sent and nobody has answered yet, so that it can be sent again. */
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

  /** Whether the client should stop sending until it is connected. */
  get isFull(): boolean {
    return this.size >= this.maxBytes || this.held.isFull;
  }

  /** Whether `bytes` more can be kept. */
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
