import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatJournalLine, parseJournalLine } from '../../../src/actors/events/journal_lines.ts';
import { EventRing, isStatistics } from '../../../src/actors/events/ring.ts';
import { EVENT_TYPES, type EventRecord } from '../../../src/protocol/events.ts';

const record = fc.record({
  id: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  type: fc.constantFrom(...EVENT_TYPES),
  name: fc.stringMatching(/^[a-z0-9_][a-z0-9_-]{0,62}$/),
  run: fc.option(fc.stringMatching(/^[0-9a-f]{16}$/)),
  at: fc.nat({ max: 4e12 }),
  data: fc.dictionary(fc.string(), fc.jsonValue()).map((fields) => JSON.stringify(fields)),
});

describe('a line of the journal', () => {
  it('gives back the event', () => {
    fc.assert(
      fc.property(record, (event) => {
        const line = formatJournalLine(event);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(parseJournalLine(line.slice(0, -1))).toEqual(event);
      }),
    );
  });

  it('is refused when anything is left of it but the whole', () => {
    fc.assert(
      fc.property(record, fc.nat(), (event, cut) => {
        const line = formatJournalLine(event).slice(0, -1);
        expect(parseJournalLine(line.slice(0, cut % line.length))).toBeUndefined();
      }),
    );
    expect(parseJournalLine('\0'.repeat(80))).toBeUndefined();
  });
});

/**
 * The rule as it stands in docs/reference.md "Replay and retention": the last `size` of any type, and besides
 * the last `size` that are no statistics.
 */
function union(events: EventRecord[], size: number): EventRecord[] {
  const any = new Set(events.slice(-size));
  const life = new Set(events.filter((event) => !isStatistics(event)).slice(-size));
  return events.filter((event) => any.has(event) || life.has(event));
}

describe('the kept events', () => {
  it('are the union of the newest of any type and the newest that are no statistics', () => {
    const kinds = fc.array(fc.constantFrom('service.stats', 'service.stats', 'service.started'), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(kinds, fc.integer({ min: 1, max: 12 }), (types, size) => {
        const ring = new EventRing(size, 1);
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
        for (const event of events) ring.push(event);
        const kept = ring.kept();
        expect(kept).toEqual(union(events, size));
        const missing = events.filter((event) => !isStatistics(event) && !kept.includes(event));
        expect(ring.completeFrom).toBe((missing.at(-1)?.id ?? 0) + 1);
        for (const event of kept.filter((one) => !isStatistics(one)))
          expect(ring.claim(event.run ?? '', event.type)).toBe(false);
        for (const event of missing) expect(ring.claim(event.run ?? '', event.type)).toBe(true);
      }),
    );
  });
});
