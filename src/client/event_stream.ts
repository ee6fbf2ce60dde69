// A stream of server-sent events that survives disconnects: it reconnects after the server's delay and sends
// the last id.
import { createParser } from 'eventsource-parser';
import { delay } from './api_call.ts';
import { BerthError, errorFromAnswer, isBerthError, isRetryable } from './errors.ts';
import type { HttpAnswer } from './transport.ts';

export interface SseFrame {
  /** null when the frame has none: the last id seen remains the point to resume from. */
  id: string | null;
  event: string;
  data: string;
}

export interface StreamOptions {
  signal?: AbortSignal;
  /** Called when the stream opens, and when it is lost, with the milliseconds until the next attempt. */
  onState?: (state: { open: true } | { open: false; error: BerthError; retryMs: number }) => void;
  /**
   * false: the first disconnect ends the stream with its error. `always`: retries even if the first
   * connection gets no answer. Default true.
   */
  reconnect?: boolean | 'always';
}

const FIRST_RETRY_MS = 1_000;
/**
 * Limits for the retry delay a server requests. The daemon requests a second; another program on its port may
 * request anything.
 */
const MIN_RETRY_MS = 10;
const MAX_RETRY_MS = 30_000;
/** Silence after which the connection counts as dead: the daemon sends a comment at least every 15 s. */
const IDLE_TIMEOUT_MS = 45_000;
/** The comment with the id from which a stream resumes that has had no frame yet. */
const START_ID = /^id (\S+)$/;
/** A larger frame cannot come from the daemon. */
const MAX_FRAME_CHARS = 4 * 1024 * 1024;

const toStreamError = (error: unknown): BerthError =>
  isBerthError(error) ? error : new BerthError('closed', 'the stream was cut off', {}, { cause: error });

/** Where the next connection resumes, and the pause before it. */
interface StreamPlace {
  id: string | null;
  retryMs: number;
}

/** A parser of one connection, which adds its frames to `ready`. */
const frameParser = (place: StreamPlace, ready: SseFrame[]) =>
  createParser({
    maxBufferSize: MAX_FRAME_CHARS,
    onRetry: (ms) => {
      place.retryMs = Math.min(Math.max(ms, MIN_RETRY_MS), MAX_RETRY_MS);
    },
    onComment: (comment) => {
      place.id ??= START_ID.exec(comment)?.[1] ?? null;
    },
    onEvent: ({ id, event, data }) => ready.push({ id: id ?? null, event: event ?? 'message', data }),
  });

/**
 * The frames of one stream, over any number of connections. `open` makes a connection; `lastId` is the id of
 * the last frame seen, null at first. Ends when `options.signal` aborts. Throws errors that no retry can fix:
 * a 4xx, or no stream as the answer to the very first connection unless `options.reconnect` is `always`.
 */
export async function* sseFrames(
  open: (lastId: string | null, signal: AbortSignal) => Promise<HttpAnswer>,
  lastId: string | null,
  options: StreamOptions = {},
): AsyncGenerator<SseFrame, void, undefined> {
  const outer = options.signal ?? new AbortController().signal;
  let wasOpen = false;
  const place: StreamPlace = { id: lastId, retryMs: FIRST_RETRY_MS };
  while (!outer.aborted) {
    const connection = new AbortController();
    const end = (): void => connection.abort(outer.reason);
    outer.addEventListener('abort', end);
    let silence = setTimeout(end, IDLE_TIMEOUT_MS);
    try {
      const answer = await open(place.id, connection.signal);
      if (answer.status !== 200)
        throw errorFromAnswer(answer.status, answer.header('retry-after'), await answer.text());
      if (!answer.header('content-type')?.startsWith('text/event-stream'))
        throw new BerthError(
          'bad_answer',
          'the answer is no stream of events: is it berth that listens there?',
        );
      wasOpen = true;
      options.onState?.({ open: true });
      const ready: SseFrame[] = [];
      const parser = frameParser(place, ready);
      for await (const chunk of answer.chunks()) {
        // Not while the consumer handles frames: a slow consumer does not mean a dead connection.
        clearTimeout(silence);
        parser.feed(chunk);
        for (const frame of ready.splice(0)) {
          place.id = frame.id ?? place.id;
          yield frame;
        }
        silence = setTimeout(end, IDLE_TIMEOUT_MS);
      }
      throw new BerthError('closed', 'the daemon ended the stream');
    } catch (error) {
      if (outer.aborted) return;
      const why = toStreamError(error);
      const waits = wasOpen || options.reconnect === 'always';
      const isHopeless = !isRetryable(why) || (!waits && why.status === 0);
      if (options.reconnect === false || isHopeless) throw why;
      options.onState?.({ open: false, error: why, retryMs: place.retryMs });
    } finally {
      clearTimeout(silence);
      outer.removeEventListener('abort', end);
      connection.abort();
    }
    await delay(place.retryMs, outer);
  }
}
