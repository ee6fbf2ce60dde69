import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KeptEvents } from '../../src/actors/events/kept_events.ts';
import { EventRing, isStatistics } from '../../src/protocol/event_ring.ts';
import type { EventRecord } from '../../src/protocol/events.ts';

/**
 * docs/reference.md "Replay and retention": the last `size` events of any type, and also the last `size` that
 * are not statistics.
 */
function union(events: EventRecord[], size: number): EventRecord[] {
  const any = new Set(events.slice(-size));
  const life = new Set(events.filter((event) => !isStatistics(event)).slice(-size));
  return events.filter((event) => any.has(event) || life.has(event));
}

describe('the kept events', () => {
  it('are the newest of any type, and the newest that are not statistics', () => {
    const kinds = fc.array(fc.constantFrom('service.stats', 'service.stats', 'service.started'), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(kinds, fc.integer({ min: 1, max: 12 }), (types, size) => {
        const ring = new EventRing<EventRecord>(size, 1);
        const journal = new KeptEvents(1, size);
        const events = types.map(
          (type, index): EventRecord => ({
            id: index * 3 + 1,
            type: type === 'service.stats' ? type : 'service.started',
            name: 'web',
            run: String(index),
            at: 0,
            data: '{}',
          }),
        );
        for (const event of events) {
          ring.push(event);
          journal.push(event);
        }
        const kept = ring.kept();
        expect(kept).toEqual(union(events, size));
        expect(journal.list()).toEqual(kept);
        const missing = events.filter((event) => !isStatistics(event) && !kept.includes(event));
        expect(ring.completeFrom).toBe((missing.at(-1)?.id ?? 0) + 1);
        expect(journal.completeFrom).toBe(ring.completeFrom);
        for (const event of kept.filter((one) => !isStatistics(one)))
          expect(journal.claim(event.run ?? '', event.type)).toBe(event.type);
        for (const event of missing) expect(journal.claim(event.run ?? '', event.type)).toBeNull();
      }),
    );
  });
});
