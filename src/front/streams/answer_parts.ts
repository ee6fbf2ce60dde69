// A long answer that is composed and sent a part at a time. The front answers other requests in between, and
// a client that reads slowly, or not at all, costs the memory of one part.
import type { ResponseStream } from '../server/http_server.ts';

/** An answer of JSON in parts, each ending between two values; an empty part is a pause. */
export class AnswerParts {
  readonly parts: Iterator<string>;

  constructor(parts: Iterable<string>) {
    this.parts = parts[Symbol.iterator]();
  }
}

/** Between two values of JSON it means nothing. */
export const BLANK_LINE = Buffer.from('\n');

/**
 * Writes `answer` to `stream`, one part per turn of the event loop, as the client reads. A client that reads
 * nothing is cut off by the server's own deadline for writes.
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
