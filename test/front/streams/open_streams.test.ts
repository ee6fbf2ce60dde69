// The bounds of all streams together: docs/reference.md "Streams".
import { describe, expect, it } from 'vitest';
import { OpenStreams } from '../../../src/front/streams/open_streams.ts';
import { isFailure } from '../../../src/runtime/actor.ts';
import { STREAMS } from '../../../src/settings/limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { expectError, SERVERS, sse, startFront } from '../kit.ts';

const LIMITS = { maxOpen: 3, maxOpenPerHolder: 2, maxUnreadBytes: 100, checkIntervalMs: 10 };

function stream(bufferedBytes: number) {
  return {
    isOpen: true,
    bufferedBytes,
    destroy() {
      this.isOpen = false;
    },
  };
}

/** The streams of `unread` bytes each that are left after a check. */
async function leftOf(unread: readonly number[]): Promise<number[]> {
  const clock = virtualClock();
  const open = new OpenStreams(clock, { ...LIMITS, maxOpen: unread.length });
  const streams = unread.map(stream);
  for (const one of streams) open.add(one, null);
  await clock.advance(LIMITS.checkIntervalMs);
  open.close();
  return streams.filter(({ isOpen }) => isOpen).map(({ bufferedBytes }) => bufferedBytes);
}

describe('streams', () => {
  it('have a limit on their unread data together', async () => {
    expect(await leftOf([50, 0, 50])).toEqual([50, 0, 50]);
  });

  it('lose those that read least, and no more than necessary', async () => {
    expect(await leftOf([30, 60, 30, 0, 40])).toEqual([30, 30, 0, 40]);
    expect(await leftOf([200, 90, 300])).toEqual([90]);
  });

  it('of one agent or user are limited, and leave room for others', () => {
    const open = new OpenStreams(virtualClock(), LIMITS);
    const own = [stream(0), stream(0)];
    for (const one of own) {
      open.assertRoom('agent:bot');
      open.add(one, 'agent:bot');
    }
    expect(() => open.assertRoom('agent:bot')).toThrow(/agent:bot has 2 open streams/);
    open.assertRoom('user:ann');
    open.assertRoom(null);
    own[0]?.destroy();
    open.assertRoom('agent:bot');
    open.close();
  });

  it('are limited in number, and make room when they end', () => {
    const open = new OpenStreams(virtualClock(), LIMITS);
    const streams = [0, 0, 0].map(stream);
    for (const one of streams) {
      open.assertRoom(null);
      open.add(one, null);
    }
    const refused = (() => {
      try {
        return open.assertRoom(null);
      } catch (error) {
        return isFailure(error) && error.code;
      }
    })();
    expect(refused).toBe('daemon_busy');
    streams[1]?.destroy();
    open.assertRoom(null);
    open.close();
  });
});

describe.each(SERVERS)('%s', (server) => {
  it('refuses a stream beyond the limit until another one ends', async () => {
    const front = await startFront({ server, streamLimits: { ...STREAMS, maxOpen: 2 } });
    const first = await sse(front.port, '/v1/events');
    await sse(front.port, '/v1/events');
    expectError(await front.request('GET', '/v1/events'), 'daemon_busy');
    first.close();
    await eventually(async () => (await sse(front.port, '/v1/events')).status === 200);
  });
});
