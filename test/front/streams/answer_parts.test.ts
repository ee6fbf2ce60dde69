// A long answer in parts, to a client that does not read.
import { expect, it } from 'vitest';
import type { ResponseStream } from '../../../src/front/server/http_server.ts';
import { AnswerParts, sendParts } from '../../../src/front/streams/answer_parts.ts';
import { eventually } from '../../kit/eventually.ts';

/** A stream whose client takes what was written when `read` is called. */
class Unread implements ResponseStream {
  isOpen = true;
  bufferedBytes = 0;
  text = '';
  ended = false;
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;

  write(bytes: Uint8Array): void {
    this.text += Buffer.from(bytes).toString();
    this.bufferedBytes += bytes.length;
  }

  read(): void {
    this.bufferedBytes = 0;
    this.onDrain?.();
  }

  keepAlive(): void {}

  end(): void {
    this.ended = true;
    this.isOpen = false;
  }

  destroy(): void {
    this.isOpen = false;
  }
}

it('a part of a response is composed once the one before it was sent, and never for a client that has disconnected', async () => {
  let composed = 0;
  function* parts(): Generator<string> {
    for (const part of ['[1', '', ',2', ',3', ']']) {
      composed += 1;
      yield part;
    }
  }
  const stream = new Unread();
  sendParts(new AnswerParts(parts()), stream);
  await eventually(() => stream.onDrain);
  expect([composed, stream.text]).toEqual([1, '[1']);
  stream.read();
  await eventually(() => stream.text === '[1,2');
  await eventually(() => stream.onDrain);
  expect(composed).toBe(3);
  const gone = new Unread();
  sendParts(new AnswerParts(parts()), gone);
  await eventually(() => gone.onDrain);
  gone.destroy();
  gone.read();
  expect(gone.text).toBe('[1');
  while (!stream.ended) {
    stream.read();
    await new Promise(setImmediate);
  }
  expect([stream.text, composed]).toEqual(['[1,2,3]', 6]);
});
