// Which events become notices, and when each is due: docs/reference.md "Notices".
import { describe, expect, it } from 'vitest';
import { NoticeQueue } from '../../../src/actors/notices/notice_queue.ts';
import { messageOf } from '../../../src/actors/notices/notice_text.ts';
import type { EventRecord, EventType } from '../../../src/protocol/events.ts';
import { matchesPattern, type NoticeRule } from '../../../src/settings/notify.ts';
import { must } from '../../kit/must.ts';

const rule = (more: Partial<NoticeRule> = {}): NoticeRule => ({
  ...{ types: ['service.crashed'], names: ['*'], forMs: 0, target: { kind: 'exec', command: 'true' } },
  ...more,
});

const event = (id: number, type: EventType, at: number, fields: object = {}): EventRecord => ({
  ...{ id, type, name: 'web', run: null, at },
  data: JSON.stringify({ name: 'web', ...fields }),
});

describe('a queue of notices', () => {
  it('accepts the events that the rule names, and no others', () => {
    const queue = new NoticeQueue(
      'a',
      rule({ types: ['service.c*', 'agent.state.blocked'], names: ['w*b'] }),
    );
    expect(queue.take(event(1, 'service.crashed', 0)).put).toHaveLength(1);
    expect(queue.take(event(2, 'service.started', 0)).put).toEqual([]);
    expect(queue.take(event(3, 'agent.state', 0, { state: 'idle' })).put).toEqual([]);
    expect(queue.take(event(4, 'agent.state', 0, { state: 'blocked' })).put).toHaveLength(1);
    expect(queue.take({ ...event(5, 'service.crashed', 0), name: 'web2' }).put).toEqual([]);
  });

  it('sends one notice a minute for each key, with the events added meanwhile', () => {
    const queue = new NoticeQueue('a', rule());
    queue.take(event(1, 'service.crashed', 0));
    expect(must(queue.next(0)).count).toBe(1);
    queue.take(event(2, 'service.crashed', 1_000));
    queue.take(event(3, 'service.crashed', 2_000));
    queue.take({ ...event(4, 'service.crashed', 2_000), name: 'db' });
    // One at a time.
    expect(queue.next(2_000)).toBeNull();
    expect(queue.settle(null, 2_000)).toBe(true);
    expect(must(queue.next(2_000)).event.name).toBe('db');
    expect(queue.settle(null, 2_000)).toBe(true);
    expect(queue.next(59_999)).toBeNull();
    expect(must(queue.next(60_000))).toMatchObject({ count: 2, event: { id: 3 } });
  });

  it('holds a notice until nothing else has happened for the configured time', () => {
    const queue = new NoticeQueue('a', rule({ forMs: 10_000 }));
    const [held] = queue.take(event(1, 'service.crashed', 0)).put;
    expect(queue.next(9_999)).toBeNull();
    expect(queue.take(event(2, 'service.started', 5_000)).removed).toEqual([must(held).id]);
    expect(queue.next(60_000)).toBeNull();
    queue.take(event(3, 'service.crashed', 70_000));
    expect(queue.next(79_999)).toBeNull();
    queue.take(event(4, 'service.started', 80_001));
    expect(must(queue.next(80_001)).event.id).toBe(3);
  });

  it('retries at growing intervals, under the same id, and gives up after a day', () => {
    const queue = new NoticeQueue('a', rule());
    queue.take(event(1, 'service.crashed', 0));
    const { id } = must(queue.next(0));
    expect(queue.settle('it answers 500', 0)).toBe(false);
    expect(queue.dueAt(0)).toBe(1_000);
    expect(must(queue.next(1_000)).id).toBe(id);
    queue.settle('it answers 500', 1_000);
    expect(queue.dueAt(1_000)).toBe(3_000);
    expect(queue.status).toMatchObject({ pending: 1, failed: 2, error: 'it answers 500' });
    queue.next(90_000_000);
    expect(queue.settle('ECONNREFUSED', 90_000_000)).toBe(true);
    expect(queue.status).toMatchObject({ pending: 0, dropped: 1 });
  });

  it('accepts an event of the journal once, and holds a limited number of notices', () => {
    const queue = new NoticeQueue('a', rule());
    const [first] = queue.take(event(1, 'service.crashed', 0)).put;
    const again = new NoticeQueue('a', rule());
    again.restore(must(first));
    expect(again.take(event(1, 'service.crashed', 0)).put).toEqual([]);
    for (let id = 2; id < 700; id += 1) again.take({ ...event(id, 'service.crashed', 0), name: `web${id}` });
    expect(again.status).toMatchObject({ pending: 500, dropped: 199 });
  });
});

describe('the text of a notice', () => {
  it('has no control characters, and a limited length', () => {
    const fields = { check: `\u001b]0;x\u0007${'\n'.repeat(3)}ready`, error: 'y'.repeat(2_000) };
    const stored = { id: '1-a', rule: 'a', key: 'k', count: 3, heldUntil: 0 };
    const { text } = messageOf({ ...stored, event: event(1, 'service.unhealthy', 0, fields) });
    expect(text).toMatch(/^web: service\.unhealthy \(check +\]0;x ready, error y+/);
    expect(text.length).toBe(500);
  });
});

describe('a pattern', () => {
  it.each([
    ['web', 'web', true],
    ['web', 'web2', false],
    ['*', '', true],
    ['w*', 'web', true],
    ['*b', 'web', true],
    ['w*e*b', 'web', true],
    ['we*eb', 'web', false],
    ['**', 'x', true],
    ['a*a', 'a', false],
  ])('%s and %s: %s', (pattern, text, fits) => expect(matchesPattern(pattern, text)).toBe(fits));
});
