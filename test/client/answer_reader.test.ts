// An answer is the same however its bytes are cut.
import { expect, it } from 'vitest';
import { AnswerReader } from '../../src/client/answer_reader.ts';

const BODY = 'größe 🙂 '.repeat(3_000);
const bytes = Buffer.from(BODY);
const HEAD = 'HTTP/1.1 200 OK\r\nX-A: b\r\n';

const inChunks = (size: number): Buffer => {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size);
    parts.push(Buffer.from(`${chunk.length.toString(16)};x=y\r\n`), chunk, Buffer.from('\r\n'));
  }
  return Buffer.concat([Buffer.from(`${HEAD}Transfer-Encoding: chunked\r\n\r\n`), ...parts]);
};

const FORMS: readonly [how: string, answer: Buffer][] = [
  ['with a length', Buffer.concat([Buffer.from(`${HEAD}Content-Length: ${bytes.length}\r\n\r\n`), bytes])],
  ['in chunks of 1,000', Buffer.concat([inChunks(1_000), Buffer.from('0\r\nX-Trailer: 1\r\n\r\n')])],
  ['in chunks of 7', Buffer.concat([inChunks(7), Buffer.from('0\r\n\r\n')])],
];

it.each(FORMS)('a response %s is complete once its last byte has arrived', (_how, answer) => {
  for (const size of [1, 2, 3, 17, 1_460, 65_536]) {
    const reader = new AnswerReader();
    let found: ReturnType<typeof reader.push> = null;
    for (let at = 0; at < answer.length && found === null; at += size)
      found = reader.push(answer.subarray(at, at + size));
    expect(found).toMatchObject({ status: 200, body: BODY });
    // It was complete with the last piece, not earlier.
    expect(reader.size).toBe(answer.length);
  }
});

it('a truncated response, or one that is not HTTP, throws an error', () => {
  const reader = new AnswerReader();
  expect(reader.push(Buffer.from(`${HEAD}Content-Length: 5\r\n\r\nhell`))).toBeNull();
  expect(() => reader.end()).toThrow('closed before the answer');
  expect(() => new AnswerReader().push(Buffer.from('SSH-2.0-x\r\n\r\n'))).toThrow('no HTTP');
  const chunked = new AnswerReader();
  expect(() => chunked.push(Buffer.from(`${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`))).toThrow(
    'no HTTP',
  );
});
