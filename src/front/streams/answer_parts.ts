// A long answer that is composed and sent in parts. The front answers other requests in between, and a client
// that reads slowly, or not at all, takes the memory of one part.
import type { ResponseStream } from '../server/http_server.ts';

/** An answer of JSON in parts, each ending between two values; an empty part is a pause. */
export class AnswerParts {
  readonly parts: Iterator<string>;

  constructor(parts: Iterable<string>) {
    this.parts = parts[Symbol.iterator]();
  }
}

/** Has no meaning between two JSON values. */
export const BLANK_LINE = Buffer.from('\n');

/**
 * Writes `answer` to `stream` at the client's pace, one part per turn of the event loop. A client that does
 * not read is cut off by the server's own write timeout.
 */
export function sendParts({ parts }: AnswerParts, stream: ResponseStream): void {
  const sendNext = (): void => {
    stream.onDrain = null;
    if (!stream.isOpen) return;
    if (stream.bufferedBytes > 0) {
      stream.onDrain = sendNext;
      return;
    }
    const { done, value } = parts.next();
    if (done) {
      stream.end();
      return;
    }
    if (value !== '') stream.write(Buffer.from(value));
    setImmediate(sendNext);
  };
  sendNext();
}
