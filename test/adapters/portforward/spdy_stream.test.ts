// The state table of a stream, without a socket, on a clock that the test drives.
import { describe, expect, it } from 'vitest';
import { SpdyStream, type StreamConnection } from '../../../src/adapters/portforward/spdy_stream.ts';
import type { ForwardStreamEvents } from '../../../src/adapters/portforward/transport.ts';
import { TETHER } from '../../../src/settings/cloud_limits.ts';
import { virtualClock } from '../../kit/actors.ts';

const ERROR_ID = 1;
const DATA_ID = 5;

/** A requested stream, and everything that it reports to its user and its connection. */
function requested(mayLinger = false) {
  const clock = virtualClock();
  const log: string[] = [];
  const note =
    (name: string) =>
    (...details: unknown[]): void =>
      void log.push([name, ...details].join(' '));
  const connection: StreamConnection = {
    clock,
    write: () => true,
    sendFin: () => note('fin')(),
    pause: () => undefined,
    resume: () => undefined,
    onStreamDestroyed: () => note('destroyed')(),
    onStreamClosed: (_, failed) => note('closed')(failed ? 'failed' : 'well'),
    mayLinger: () => mayLinger,
    abandon: (_, error) => note('abandon')(error.text),
  };
  const user: ForwardStreamEvents = {
    onOpened: () => note('opened')(),
    onData: (bytes) => note('data')(bytes.toString()),
    onDrained: () => note('drained')(),
    onEnded: () => note('ended')(),
    onFailed: ({ code }) => note(code)(),
  };
  const stream = new SpdyStream(connection, ERROR_ID, DATA_ID, user);
  return { clock, log, stream, said: () => log.splice(0) };
}

describe('a SPDY stream', () => {
  it('reports once to its user that it is open, whether that is assumed or confirmed first', () => {
    const { stream, said } = requested();
    stream.onReply(ERROR_ID);
    expect(said()).toEqual([]);
    stream.assumeOpen();
    stream.onReply(DATA_ID);
    stream.onReply(DATA_ID);
    expect(said()).toEqual(['opened']);
  });

  it('is given up when the node does not answer in time, with and without a user', async () => {
    for (const isDestroyed of [false, true]) {
      const { clock, stream, said } = requested();
      if (isDestroyed) stream.destroy();
      await clock.advance(TETHER.streamOpenTimeoutMs);
      expect(said()).toEqual([...(isDestroyed ? ['fin'] : []), 'abandon the node does not answer']);
    }
  });

  it('ends when both of its streams have ended, in either order', () => {
    for (const order of [
      [DATA_ID, ERROR_ID],
      [ERROR_ID, DATA_ID],
    ] as const) {
      const { stream, said } = requested();
      stream.onReply(DATA_ID);
      stream.onData(DATA_ID, Buffer.from('all'));
      for (const id of order) stream.onFin(id);
      expect(said()).toEqual(['opened', 'data all', 'fin', 'closed well', 'ended']);
    }
  });

  it('ends after some time without the end of the error stream', async () => {
    const { clock, stream, said } = requested();
    stream.onReply(DATA_ID);
    stream.onFin(DATA_ID);
    await clock.advance(TETHER.errorStreamTimeoutMs);
    expect(said()).toEqual(['opened', 'fin', 'closed well', 'ended']);
  });

  it("fails with the node's message, and when the node refuses it", async () => {
    const broken = requested();
    broken.stream.onReply(DATA_ID);
    broken.stream.onData(ERROR_ID, Buffer.from('connection refused'));
    broken.stream.onFin(ERROR_ID);
    expect(broken.said()).toEqual(['opened', 'fin', 'closed failed', 'refused']);
    const refused = requested();
    refused.stream.onFin(DATA_ID);
    await refused.clock.advance(TETHER.errorStreamTimeoutMs);
    expect(refused.said()).toEqual(['fin', 'closed failed', 'broken']);
  });

  it('drops data after its user has left, and reports nothing more to the user', () => {
    const { stream, said } = requested();
    stream.onReply(DATA_ID);
    stream.destroy();
    stream.destroy();
    expect(stream.onData(DATA_ID, Buffer.from('late'))).toBe(false);
    stream.onDrained();
    stream.onFin(DATA_ID);
    stream.onFin(ERROR_ID);
    expect(said()).toEqual(['opened', 'fin', 'destroyed', 'closed well']);
  });

  it('lingers only once the node has answered, and then for a limited time', async () => {
    const { clock, stream, said } = requested(true);
    stream.destroy();
    expect(said()).toEqual(['fin']);
    stream.onReply(DATA_ID);
    expect(said()).toEqual(['destroyed']);
    await clock.advance(3 * TETHER.streamCloseTimeoutMs);
    expect(said()).toEqual([]);
    const impatient = requested();
    impatient.stream.onReply(DATA_ID);
    impatient.stream.destroy();
    await impatient.clock.advance(TETHER.streamCloseTimeoutMs);
    expect(impatient.said().at(-1)).toBe('abandon a stream was not closed');
  });

  it('has ended well if the pod had closed before the connection was lost', () => {
    const lost = { code: 'lost', text: 'cut' } as const;
    const open = requested();
    open.stream.onReply(DATA_ID);
    open.stream.onConnectionLost(lost);
    open.stream.onConnectionLost(lost);
    expect(open.said()).toEqual(['opened', 'lost']);
    const ending = requested();
    ending.stream.onReply(DATA_ID);
    ending.stream.onFin(DATA_ID);
    ending.stream.onConnectionLost(lost);
    expect(ending.said()).toEqual(['opened', 'ended']);
  });
});
