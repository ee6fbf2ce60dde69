// Logs as they are written. Each follower continues from its own position once the log has grown and its
// client has taken the bytes sent so far. So a slow client costs nothing and misses nothing.
import { fail } from '../../protocol/errors.ts';
import { isFailure } from '../../runtime/actor.ts';
import type { ResponseStream } from '../server/http_server.ts';
import { FairQueue } from './fair_queue.ts';
import {
  FollowedLog,
  type FollowedLogOptions,
  type LogPosition,
  type LogStep,
  LogStepCache,
  positionAt,
} from './log_steps.ts';
import { streamHead } from './stream_head.ts';

const OFFSET = /^[0-9]{1,15}$/;

/** One client. */
class LogFollower {
  private readonly log: FollowedLog;
  private readonly queue: FairQueue;
  private readonly stream: ResponseStream;
  private readonly onDefect: (error: unknown) => void;
  private position: LogPosition;
  /** `stepping`: a step is under way. */
  private state: 'idle' | 'stepping' | 'closed' = 'idle';

  constructor(
    log: FollowedLog,
    queue: FairQueue,
    stream: ResponseStream,
    offset: number,
    onDefect: (error: unknown) => void,
  ) {
    this.log = log;
    this.queue = queue;
    this.stream = stream;
    this.position = positionAt(offset);
    this.onDefect = onDefect;
    stream.onDrain = () => this.wake();
  }

  cut(): void {
    this.stream.destroy();
  }

  keepAlive(): void {
    this.stream.keepAlive();
  }

  /** Continues if the client has taken the bytes sent so far. */
  wake(): void {
    if (this.state !== 'idle' || this.stream.bufferedBytes > 0) return;
    this.state = 'stepping';
    this.log.stepFrom(this.position).then(
      (step) => this.queue.add(() => this.take(step)),
      (error: unknown) => {
        // Whatever happened to the service, the client can reconnect with its offset.
        this.end();
        if (!isFailure(error)) this.onDefect(error);
      },
    );
  }

  end(): void {
    this.stream.end();
  }

  /** The stream is closed. */
  close(): void {
    this.state = 'closed';
  }

  private take({ frames, next, endAt }: LogStep): void {
    if (this.state === 'closed') return;
    this.state = 'idle';
    this.position = next;
    if (frames.length > 0) this.stream.write(frames);
    // The log may have grown since its end was read.
    if (endAt === null || endAt !== this.log.growths) this.wake();
  }
}

/** A request to follow a log. */
export interface FollowLogRequest extends FollowedLogOptions {
  /** The name of the service. */
  name: string;
  lastEventId: string;
  /** null: the client has disconnected. */
  open: () => ResponseStream | null;
}

/** The followers of one log with the same query. */
interface FollowerGroup {
  key: string;
  name: string;
  log: FollowedLog;
  followers: Set<LogFollower>;
  /** Its service has been removed. */
  isRemoved: boolean;
}

/** All streams of logs. */
export class LogStreams {
  private readonly queue = new FairQueue();
  private readonly steps = new LogStepCache(this.queue);
  private readonly groups = new Map<string, FollowerGroup>();
  private readonly onDefect: (error: unknown) => void;
  /** The number of times all streams were cut. */
  private cuts = 0;

  constructor(onDefect: (error: unknown) => void) {
    this.onDefect = onDefect;
  }

  /**
   * Follows the log of a service: the last `lines`, or the lines after `lastEventId`, then every new line.
   * Rejects with the service's failure; `open` is called after everything that can fail.
   */
  async follow(request: FollowLogRequest): Promise<void> {
    const { service, query, lastEventId, open } = request;
    const { cuts } = this;
    await service.ask('follow', { on: true });
    const leave = (): void => service.tell('follow', { on: false });
    const { lines, stream: output } = query;
    const isResumed = OFFSET.test(lastEventId);
    const offset = isResumed
      ? Number(lastEventId)
      : await this.steps.reads
          .run(() => service.ask('tailStart', { lines, stream: output }))
          .catch((error: unknown) => {
            leave();
            throw error;
          });
    if (cuts !== this.cuts) {
      leave();
      throw fail('unauthorized', 'the token has changed');
    }
    const stream = open();
    if (!stream) return leave();
    const group = this.groupOf(request);
    const follower = new LogFollower(group.log, this.queue, stream, offset, this.onDefect);
    group.followers.add(follower);
    stream.onClose = () => {
      follower.close();
      group.followers.delete(follower);
      if (group.followers.size === 0) this.groups.delete(group.key);
      // A message to a removed service would start its actor again.
      if (!group.isRemoved) leave();
    };
    stream.write(streamHead(isResumed ? null : String(offset)));
    follower.wake();
  }

  /** The log of `name` may have grown, or its process has ended. */
  wake(name: string): void {
    for (const group of this.groups.values()) if (group.name === name) this.wakeGroup(group);
  }

  /** Ends the streams of removed services. */
  endMissing(exists: (name: string) => boolean): void {
    for (const group of this.groups.values()) {
      if (exists(group.name)) continue;
      group.isRemoved = true;
      for (const follower of [...group.followers]) follower.end();
    }
  }

  keepAlive(): void {
    for (const group of this.groups.values()) {
      for (const follower of group.followers) follower.keepAlive();
      // A restarted service has lost its followers, so it will not report growth.
      this.wakeGroup(group);
    }
  }

  /** Cuts every stream, including those being opened: their clients may no longer see the logs. */
  cut(): void {
    this.cuts += 1;
    for (const { followers } of this.groups.values()) for (const follower of [...followers]) follower.cut();
  }

  end(): void {
    for (const { followers } of this.groups.values()) for (const follower of [...followers]) follower.end();
  }

  /** The group of followers of this log with this query. A group ends with its last follower. */
  private groupOf(request: FollowLogRequest): FollowerGroup {
    const { stream, timestamps, raw } = request.query;
    const key = JSON.stringify([request.name, stream, timestamps, raw, request.growth]);
    const found = this.groups.get(key);
    if (found) return found;
    const log = new FollowedLog(this.steps, request);
    const group = { key, name: request.name, log, followers: new Set<LogFollower>(), isRemoved: false };
    this.groups.set(key, group);
    return group;
  }

  private wakeGroup({ log, followers }: FollowerGroup): void {
    log.growths += 1;
    for (const follower of followers) follower.wake();
  }
}
