// The lines to one pod: kept for the next connection, dialled ahead, closed when nobody needs them. Where the cluster offers
// no SPDY, every stream gets a WebSocket of its own.
import { Socket } from 'node:net';
import { TETHER } from '../limits.ts';
import type { Door } from './dial.ts';
import type { PodName, Setback, Stream, StreamEvents } from './portforward.ts';
import { SpdyLine } from './portforward_spdy.ts';
import { upgradeToSpdy } from './portforward_upgrade.ts';
import { WarmDoor } from './portforward_warm.ts';
import { openOverWebSocket } from './portforward_websocket.ts';

/** A cluster as the lines to its pods share it. */
export class ForwardCluster {
  readonly door: Door;
  /** For WebSockets. */
  readonly warm: WarmDoor;
  /** Monotonic milliseconds until which it is not asked for SPDY. */
  noSpdyUntil = 0;
  /** When the last upgrade was cut off without an answer; null when the server has been heard of, or was away, since. */
  #cutAt: number | null = null;

  constructor(door: Door) {
    this.door = door;
    this.warm = new WarmDoor(door);
  }

  get hasSpdy(): boolean {
    return performance.now() >= this.noSpdyUntil;
  }

  /** Learns from what became of an upgrade that was begun at `begunAt`. */
  learn(answer: Socket | Setback, begunAt: number): void {
    const now = performance.now();
    const code = answer instanceof Socket ? null : answer.code;
    const isCut = code === 'lost';
    // A server that goes away cuts off those under way. When the next one ends so, too, something in between bars SPDY.
    const isBarred = isCut && this.#cutAt !== null && begunAt >= this.#cutAt;
    // A right to create forwards may be missing where the right to get them, which is that of WebSockets, is there.
    if (isBarred || code === 'unsupported' || code === 'denied') this.noSpdyUntil = now + TETHER.spdyAgainMs;
    this.#cutAt = isCut ? (this.#cutAt ?? now) : null;
  }

  close(): void {
    this.warm.close();
  }
}

/** A stream that has been asked for; it goes to the first line that is free. */
class Request implements Stream {
  readonly port: number;
  readonly events: StreamEvents;
  stream: Stream | null = null;
  isGone = false;

  constructor(port: number, events: StreamEvents) {
    this.port = port;
    this.events = events;
  }

  write(bytes: Buffer): boolean {
    return this.stream?.write(bytes) ?? true;
  }

  end(): void {
    this.stream?.end();
  }

  pause(): void {
    this.stream?.pause();
  }

  resume(): void {
    this.stream?.resume();
  }

  leave(): void {
    this.isGone = true;
    this.stream?.leave();
  }
}

export class PodLines {
  readonly #cluster: ForwardCluster;
  readonly #pod: PodName;
  readonly #lines = new Set<SpdyLine>();
  #waiting: Request[] = [];
  #dials = 0;
  #retired = false;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(cluster: ForwardCluster, pod: PodName) {
    this.#cluster = cluster;
    this.#pod = pod;
    this.#timer = setInterval(() => this.#tidy(), TETHER.pingMs);
  }

  /** Whether a stream could be opened without a dial. */
  get isWarm(): boolean {
    return this.#free() !== undefined;
  }

  /** Whether no line is left and none is being dialled. */
  get isEmpty(): boolean {
    return this.#lines.size === 0 && this.#dials === 0;
  }

  /** Opens a stream to `port`. Nothing is told before this has returned. */
  open(port: number, events: StreamEvents): Stream {
    const wanted = new Request(port, events);
    this.#waiting.push(wanted);
    queueMicrotask(() => {
      this.#serve();
      // One more than is needed now: the next connection finds it open.
      if (this.#cluster.hasSpdy && this.#dials === 0 && !this.#free()) void this.#dial();
    });
    return wanted;
  }

  /** Takes no more streams; those that are open go on. */
  retire(): void {
    this.#retired = true;
    clearInterval(this.#timer);
    for (const line of this.#lines) line.retire(CLOSED);
    this.#refuse({ code: 'absent', text: 'the pod is gone' });
  }

  /** Ends everything. */
  close(): void {
    this.retire();
    this.#stop.abort();
    for (const line of this.#lines) line.close(CLOSED);
  }

  #free(): SpdyLine | undefined {
    for (const line of this.#lines) if (line.isFree) return line;
    return undefined;
  }

  #serve(): void {
    this.#waiting = this.#waiting.filter(({ isGone }) => !isGone);
    if (!this.#cluster.hasSpdy) {
      for (const wanted of this.#waiting.splice(0)) {
        wanted.stream = openOverWebSocket(this.#cluster.warm, this.#pod, wanted.port, wanted.events);
      }
      return;
    }
    for (const line of this.#lines) {
      const wanted = line.isFree ? this.#waiting.shift() : undefined;
      if (wanted) wanted.stream = line.open(wanted.port, wanted.events);
    }
    while (this.#dials < Math.min(this.#waiting.length, TETHER.dials)) void this.#dial();
  }

  async #dial(): Promise<void> {
    const begunAt = performance.now();
    this.#dials += 1;
    const answer = await upgradeToSpdy(this.#cluster.door, this.#pod, this.#stop.signal);
    this.#dials -= 1;
    if (!this.#stop.signal.aborted) this.#cluster.learn(answer, begunAt);
    if (answer instanceof Socket) this.#add(answer);
    else if (this.#cluster.hasSpdy) this.#refuse(answer);
    this.#serve();
  }

  #add(socket: Socket): void {
    const line = new SpdyLine(socket, {
      freed: () => {
        if (this.#retired) line.retire(CLOSED);
        else this.#serve();
      },
      closed: () => this.#lines.delete(line),
    });
    this.#lines.add(line);
    if (this.#retired) line.close(CLOSED);
  }

  #refuse(setback: Setback): void {
    for (const wanted of this.#waiting.splice(0)) if (!wanted.isGone) wanted.events.failed(setback);
  }

  #tidy(): void {
    const now = performance.now();
    for (const line of this.#lines) {
      const idleMs = this.#lines.size === 1 ? TETHER.lastIdleMs : TETHER.idleMs;
      if (!line.isBusy && (line.isSpent || now - line.idleSince > idleMs)) line.retire(CLOSED);
      else line.probe();
    }
  }
}

const CLOSED: Setback = { code: 'lost', text: 'the forward was closed' };
