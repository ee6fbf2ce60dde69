// The lines to one pod: kept for the next connection, dialled ahead, closed when nobody needs them. Where the cluster offers
// no way to make one, every stream gets a WebSocket of its own.
import { Duplex } from 'node:stream';
import { TETHER } from '../../limits.ts';
import { SpdyLine } from './spdy.ts';
import type { PodName, Setback, Stream, StreamEvents } from './way.ts';
import type { ForwardCluster, Way } from './ways.ts';
import { openOverWebSocket } from './websocket.ts';

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

/** The lines to one pod, for as long as a tether uses it: a stream gets a line that is free, or a new one is dialled. */
export class PodLines {
  private readonly cluster: ForwardCluster;
  private readonly pod: PodName;
  private readonly lines = new Set<SpdyLine>();
  private waiting: Request[] = [];
  private dials = 0;
  private retired = false;
  private readonly stop = new AbortController();
  private readonly timer: NodeJS.Timeout;

  constructor(cluster: ForwardCluster, pod: PodName) {
    this.cluster = cluster;
    this.pod = pod;
    this.timer = setInterval(() => this.tidy(), TETHER.pingMs);
  }

  /** Whether a stream could be opened without a dial. */
  get isWarm(): boolean {
    return this.free() !== undefined;
  }

  /** Whether no line is left and none is being dialled. */
  get isEmpty(): boolean {
    return this.lines.size === 0 && this.dials === 0;
  }

  /** Opens a stream to `port`. Nothing is told before this has returned. */
  open(port: number, events: StreamEvents): Stream {
    const wanted = new Request(port, events);
    this.waiting.push(wanted);
    queueMicrotask(() => {
      this.serve();
      // One more than is needed now: the next connection finds it open.
      const { way } = this.cluster;
      if (way && this.dials === 0 && !this.free()) void this.dial(way);
    });
    return wanted;
  }

  /** Takes no more streams; those that are open go on. */
  retire(): void {
    this.retired = true;
    clearInterval(this.timer);
    for (const line of this.lines) line.retire(CLOSED);
    this.refuse({ code: 'absent', text: 'the pod is gone' });
  }

  /** Ends everything. */
  close(): void {
    this.retire();
    this.stop.abort();
    for (const line of this.lines) line.close(CLOSED);
  }

  private free(): SpdyLine | undefined {
    for (const line of this.lines) if (line.isFree) return line;
    return undefined;
  }

  private serve(): void {
    this.waiting = this.waiting.filter(({ isGone }) => !isGone);
    const { way } = this.cluster;
    if (!way) {
      for (const wanted of this.waiting.splice(0)) {
        wanted.stream = openOverWebSocket(this.cluster.warm, this.pod, wanted.port, wanted.events);
      }
      return;
    }
    for (const line of this.lines) {
      const wanted = line.isFree ? this.waiting.shift() : undefined;
      if (wanted) wanted.stream = line.open(wanted.port, wanted.events);
    }
    while (this.dials < Math.min(this.waiting.length, TETHER.dials)) void this.dial(way);
  }

  private async dial(way: Way): Promise<void> {
    const begunAt = performance.now();
    this.dials += 1;
    const answer = await way.upgrade(this.cluster.door, this.pod, this.stop.signal);
    this.dials -= 1;
    if (!this.stop.signal.aborted) way.learn(answer, begunAt);
    if (answer instanceof Duplex) this.add(answer);
    // Else those who wait are served in the next best way.
    else if (way.isOffered) this.refuse(answer);
    this.serve();
  }

  private add(socket: Duplex): void {
    const line = new SpdyLine(socket, {
      freed: () => {
        if (this.retired) line.retire(CLOSED);
        else this.serve();
      },
      mayLinger: () => [...this.lines].filter(({ isLingering }) => isLingering).length < TETHER.stuckLines,
      closed: () => this.lines.delete(line),
    });
    this.lines.add(line);
    if (this.retired) line.close(CLOSED);
  }

  private refuse(setback: Setback): void {
    for (const wanted of this.waiting.splice(0)) if (!wanted.isGone) wanted.events.failed(setback);
  }

  private tidy(): void {
    const now = performance.now();
    for (const line of this.lines) {
      const idleMs = this.lines.size === 1 ? TETHER.lastIdleMs : TETHER.idleMs;
      if (!line.isBusy && (line.isSpent || now - line.idleSince > idleMs)) line.retire(CLOSED);
      else line.probe();
    }
  }
}

const CLOSED: Setback = { code: 'lost', text: 'the forward was closed' };
