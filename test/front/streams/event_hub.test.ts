import { beforeEach, describe, expect, it } from 'vitest';
import type { ResponseStream } from '../../../src/front/server/http_server.ts';
import { type EventSelection, eventFilter } from '../../../src/front/streams/event_filter.ts';
import { EventHub } from '../../../src/front/streams/event_hub.ts';
import type { EventRecord } from '../../../src/protocol/events.ts';
import { localTime } from '../../../src/protocol/timestamps.ts';
import { settle, type TestClock, virtualClock } from '../../kit/actors.ts';
import { eventRecord } from '../kit.ts';

/** A reader that keeps everything written to it; a `stalled` one takes nothing. */
class Reader implements ResponseStream {
  isOpen = true;
  text = '';
  writes: Uint8Array[] = [];
  touched = 0;
  ended = false;
  cut = false;
  stalled = false;
  bufferedBytes = 0;
  onDrain: (() => void) | null = null;
  onClose: (() => void) | null = null;

  write(bytes: Uint8Array): void {
    this.writes.push(bytes);
    this.text += Buffer.from(bytes).toString();
    if (this.stalled) this.bufferedBytes += bytes.length;
  }
  keepAlive(): void {
    this.touched += 1;
  }
  end(): void {
    this.ended = true;
    this.onClose?.();
  }
  destroy(): void {
    this.cut = true;
    this.onClose?.();
  }
  get ids(): number[] {
    return [...this.text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  }
}

const ALL: EventSelection = { types: null, names: null, detail: false, reach: null };
const stats = (id: number) =>
  eventRecord(id, { type: 'service.stats', data: `{"name":"web","cpu":0,"rssMB":1}` });
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

let clock: TestClock;
/** Duration of all writes so far. */
let spentMs: number;
let hub: EventHub<EventRecord>;
beforeEach(() => {
  clock = virtualClock();
  spentMs = 0;
  hub = new EventHub({ ...clock, monotonic: () => clock.monotonic() + spentMs });
});
const subscribe = (after = '', filter: Partial<typeof ALL & { types: string[]; names: string[] }> = {}) => {
  const reader = new Reader();
  hub.subscribe(reader, eventFilter({ ...ALL, ...filter }), after);
  return reader;
};

describe('a new subscriber', () => {
  it('gets the delay before a reconnect, and no past events', async () => {
    hub.add([eventRecord(1)]);
    const reader = subscribe();
    expect(reader.text).toBe('retry: 1000\n\n: id 1\n\n');
    hub.add([eventRecord(2)]);
    await settle();
    expect(reader.text).toBe(
      'retry: 1000\n\n: id 1\n\nid: 2\nevent: service.started\ndata: {"name":"web","pid":2,"url":"http://localhost:3000"}\n\n',
    );
  });

  it('with the last id gets what it missed, and continues without a gap or a duplicate', async () => {
    hub.add(range(1, 5).map((id) => eventRecord(id)));
    // Not sent yet when the subscriber arrives.
    const early = subscribe('0');
    hub.add([eventRecord(6)]);
    const late = subscribe('3');
    hub.add([eventRecord(7)]);
    await settle();
    expect(early.ids).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(late.ids).toEqual([4, 5, 6, 7]);
    expect(late.text).not.toContain('stream.reset');
  });

  it('with the newest id gets only new events', async () => {
    hub.add([eventRecord(1)]);
    const reader = subscribe('1');
    hub.add([eventRecord(2)]);
    await settle();
    expect(reader.text.replace(/data.*/g, '')).toBe('retry: 1000\n\nid: 2\nevent: service.started\n\n\n');
  });

  it.each(['abc', '-1', '1.5', ' 1', '1e3', '99', '999999999999999999999', '0x1', '1,2'])(
    'with the id "%s" gets a reset, then all kept events',
    (after) => {
      hub.add([eventRecord(1), eventRecord(2)]);
      const reader = subscribe(after);
      expect(reader.text).toMatch(/^retry: 1000\n\nevent: stream\.reset\ndata: {"oldest":1}\n\nid: 1\n/);
      expect(reader.ids).toEqual([1, 2]);
    },
  );

  it('gets a reset when nothing is kept', () => {
    expect(subscribe('5').text).toContain('data: {"oldest":1}');
    expect(subscribe('0').text).toBe('retry: 1000\n\n');
  });
});

describe('kept events', () => {
  it('include the last 1024 of any type', () => {
    hub.add(range(1, 1030).map((id) => eventRecord(id)));
    const reader = subscribe('6');
    expect(reader.ids).toEqual(range(7, 1030));
    expect(reader.text).not.toContain('stream.reset');
    const later = subscribe('5');
    expect(later.text).toContain('event: stream.reset\ndata: {"oldest":7}\n');
    expect(later.ids).toEqual(range(7, 1030));
  });

  it('also include the last 1024 that are not statistics', () => {
    hub.add([eventRecord(1), eventRecord(2)]);
    hub.add(range(3, 5000).map(stats));
    hub.add([eventRecord(5001)]);
    const reader = subscribe('0');
    expect(reader.text).not.toContain('stream.reset');
    expect(reader.ids).toEqual([1, 2, ...range(3978, 5001)]);
  });

  it('drop statistics silently, and nothing else', () => {
    hub.add(range(1, 2000).map(stats));
    hub.add(range(2001, 3024).map((id) => eventRecord(id)));
    expect(subscribe('1').text).not.toContain('stream.reset');
    hub.add([stats(3025), eventRecord(3026)]);
    const reader = subscribe('2000');
    expect(reader.text).toContain('event: stream.reset\ndata: {"oldest":2002}\n');
    expect(subscribe('2001').text).not.toContain('stream.reset');
  });

  it('are correct over many wraps of the ring buffers', () => {
    for (const id of range(1, 10_000)) hub.add([id % 3 === 0 ? eventRecord(id) : stats(id)]);
    const lasting = range(1, 10_000).filter((id) => id % 3 === 0);
    const oldest = lasting.at(-1024) ?? 0;
    const reader = subscribe(String(oldest - 1));
    const expected = range(1, 10_000).filter((id) => id > 10_000 - 1024 || (id % 3 === 0 && id >= oldest));
    expect(reader.ids).toEqual(expected);
    expect(reader.text).not.toContain('stream.reset');
    expect(subscribe(String(oldest - 4)).text).toContain(`{"oldest":${oldest}}`);
  });

  it('are first read from the journal', () => {
    hub.restore([eventRecord(10), eventRecord(12)], 12, 8);
    expect(subscribe('7').text).not.toContain('stream.reset');
    expect(subscribe('7').ids).toEqual([10, 12]);
    expect(subscribe('6').text).toContain('event: stream.reset\ndata: {"oldest":10}\n');
    expect(subscribe('13').text).toContain('stream.reset');
    expect(hub.isContiguous(13)).toBe(true);
    expect(hub.isContiguous(14)).toBe(false);
  });

  it('have a newest id even when nothing is kept', () => {
    hub.restore([], 40, 41);
    expect(subscribe('40').text).toBe('retry: 1000\n\n');
    expect(subscribe('39').text).toContain('{"oldest":41}');
    expect(subscribe('41').text).toContain('stream.reset');
  });

  it('are completed after a gap, also for current subscribers', async () => {
    hub.restore([eventRecord(1)], 1, 1);
    const reader = subscribe();
    hub.restore([eventRecord(1), eventRecord(2), eventRecord(3)], 3, 1);
    await settle();
    expect(reader.ids).toEqual([2, 3]);
    expect(reader.text).not.toContain('stream.reset');
    hub.restore([eventRecord(9)], 9, 8);
    await settle();
    expect(reader.text).toMatch(/id: 3\n[\s\S]*event: stream\.reset\ndata: {"oldest":9}\n\nid: 9\n/);
    expect(subscribe('3').text).toContain('stream.reset');
  });

  it('do not repeat what was already sent', async () => {
    const reader = subscribe();
    hub.add([eventRecord(1), eventRecord(2)]);
    hub.add([eventRecord(2), eventRecord(1), eventRecord(3)]);
    await settle();
    expect(reader.ids).toEqual([1, 2, 3]);
  });
});

describe('filters', () => {
  const events = [
    eventRecord(1, { name: 'web' }),
    eventRecord(2, { name: 'db', type: 'service.crashed', data: '{"name":"db"}' }),
    stats(3),
    eventRecord(4, { name: 'web', type: 'service.stopped', data: '{"name":"web"}' }),
  ];

  it.each([
    [{ types: ['service.crashed', 'service.stopped'] }, [2, 4]],
    [{ names: ['web'] }, [1, 3, 4]],
    [{ names: ['web'], types: ['service.stats'] }, [3]],
    [{ names: ['nobody'] }, []],
  ])('%j', async (filter, expected) => {
    const live = subscribe('', filter);
    hub.add(events);
    await settle();
    expect(live.ids).toEqual(expected);
    expect(subscribe('0', filter).ids).toEqual(expected);
  });

  it('detail adds the time and the run', async () => {
    const reader = subscribe('', { detail: true });
    const plain = subscribe();
    hub.add([eventRecord(1), eventRecord(2, { run: null })]);
    await settle();
    const [first, second] = [...reader.text.matchAll(/^data: (.*)$/gm)].map(([, data]) =>
      JSON.parse(data ?? ''),
    );
    expect(first).toEqual({
      name: 'web',
      pid: 1,
      url: 'http://localhost:3000',
      at: localTime(eventRecord(1).at),
      run: 'r1',
    });
    expect(second.run).toBeNull();
    expect(plain.text).not.toContain('"run"');
  });
});

describe('sending', () => {
  it('gives all subscribers with the same filter the same bytes, once per turn', async () => {
    const readers = [
      subscribe(),
      subscribe(),
      subscribe('', { names: ['web'] }),
      subscribe('', { names: ['web'] }),
    ];
    for (const id of range(1, 50)) hub.add([eventRecord(id)]);
    await settle();
    const [one, two, three, four] = readers.map(({ writes }) => writes);
    expect(one).toHaveLength(2);
    expect(one?.[1]).toBe(two?.[1]);
    expect(three?.[1]).toBe(four?.[1]);
    expect(readers.map(({ ids }) => ids)).toEqual(readers.map(() => range(1, 50)));
  });

  it('disconnects a subscriber with more than 1 MiB pending, and no other', async () => {
    const slow = subscribe();
    const fine = subscribe();
    slow.stalled = true;
    const big = `{"name":"web","url":"${'x'.repeat(10_000)}"}`;
    for (const id of range(1, 104)) {
      hub.add([eventRecord(id, { data: big })]);
      await settle();
    }
    expect([slow.cut, fine.cut]).toEqual([false, false]);
    for (const id of range(105, 120)) {
      hub.add([eventRecord(id, { data: big })]);
      await settle();
    }
    expect([slow.cut, fine.cut]).toEqual([true, false]);
    expect(slow.bufferedBytes).toBeLessThan(1024 * 1024 + 20_000);
    expect(fine.ids).toEqual(range(1, 120));
  });

  it('stops when the reader disconnects', async () => {
    const reader = subscribe();
    const other = subscribe();
    reader.onClose?.();
    hub.add([eventRecord(1)]);
    await settle();
    expect([reader.ids, other.ids]).toEqual([[], [1]]);
    hub.keepAlive();
    expect([reader.touched, other.touched]).toEqual([0, 1]);
  });

  it('ends in order after the last event', () => {
    const reader = subscribe();
    hub.add([eventRecord(1)]);
    hub.end();
    expect([reader.ids, reader.ended]).toEqual([[1], true]);
  });
});

describe('many subscribers', () => {
  it('leave as much time to other work as they take, and get the events of that time in one write', async () => {
    const readers = Array.from({ length: 20 }, () => subscribe());
    const [first] = readers;
    for (const reader of readers) {
      const write = reader.write.bind(reader);
      reader.write = (bytes) => {
        spentMs += 1;
        write(bytes);
      };
    }
    hub.add([eventRecord(1)]);
    await settle();
    expect(first?.ids).toEqual([1]);
    hub.add([eventRecord(2)]);
    await settle();
    hub.add([eventRecord(3)]);
    await clock.advance(19);
    expect(first?.ids).toEqual([1]);
    await clock.advance(1);
    for (const reader of readers) expect(reader.ids).toEqual([1, 2, 3]);
    expect(first?.writes).toHaveLength(3);
    // However long the write took, nobody waits longer than this.
    spentMs += 1_000;
    hub.add([eventRecord(4)]);
    await settle();
    expect(first?.ids).toEqual([1, 2, 3, 4]);
  });

  it('get pending events before the stream ends', async () => {
    const reader = subscribe();
    reader.write = ((write) => (bytes: Uint8Array) => {
      spentMs += 500;
      write.call(reader, bytes);
    })(reader.write);
    hub.add([eventRecord(1)]);
    await settle();
    hub.add([eventRecord(2)]);
    await clock.advance(49);
    expect(reader.ids).toEqual([1]);
    hub.end();
    expect([reader.ids, reader.ended]).toEqual([[1, 2], true]);
  });
});
