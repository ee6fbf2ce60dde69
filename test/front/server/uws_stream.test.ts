// What a stream gives uWebSockets.js at a time. The response is scripted: when a socket of the system takes no
// more depends on the machine.
import { expect, it } from 'vitest';
import { UwsStream } from '../../../src/front/server/uws_stream.ts';
import { KIB } from '../../../src/settings/limits.ts';

/** A response whose client takes `room` bytes and then nothing, until `room` is raised. */
function scriptedResponse(room: number) {
  const script = { room, writes: [] as Uint8Array[], drained: (): boolean => true };
  const res = {
    onWritable: (onWritable: () => boolean) => {
      script.drained = onWritable;
    },
    cork: (write: () => void) => write(),
    writeStatus: () => undefined,
    write: (bytes: Uint8Array) => {
      script.writes.push(bytes);
      script.room -= bytes.length;
      return script.room >= 0;
    },
  };
  const stream = new UwsStream(res as never, Buffer.from(':\n\n'), true, () => undefined);
  stream.start('200 OK');
  return { script, stream };
}

it('each write is at most 15 KiB, before and after the client stops reading, in order and without a loss', () => {
  const { script, stream } = scriptedResponse(100 * KIB);
  const bytes = Buffer.from(Array.from({ length: 500 * KIB }, (_, index) => index % 251));
  stream.write(bytes);
  stream.write(Buffer.from('end'));
  // All that was not taken counts as unread.
  expect(script.writes.map(({ length }) => length)).toEqual(Array(7).fill(15 * KIB));
  expect(stream.bufferedBytes).toBe(410 * KIB + 3);
  let drains = 0;
  stream.onDrain = () => {
    drains += 1;
  };
  script.room = 130 * KIB;
  expect(script.drained()).toBe(false);
  script.room = 1_000 * KIB;
  expect(script.drained()).toBe(true);
  expect(drains).toBe(1);
  expect(stream.bufferedBytes).toBe(0);
  expect(Math.max(...script.writes.map(({ length }) => length))).toBe(15 * KIB);
  const sent = Buffer.concat(script.writes);
  expect(sent.equals(Buffer.concat([bytes, Buffer.from('end')]))).toBe(true);
});
