import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatJournalLine, parseJournalLine } from '../../../src/actors/events/journal_lines.ts';
import { EVENT_TYPES } from '../../../src/protocol/events.ts';

const record = fc.record({
  id: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
  type: fc.constantFrom(...EVENT_TYPES),
  name: fc.stringMatching(/^[a-z0-9_][a-z0-9_-]{0,62}$/),
  run: fc.option(fc.stringMatching(/^[0-9a-f]{16}$/)),
  at: fc.nat({ max: 4e12 }),
  data: fc.dictionary(fc.string(), fc.jsonValue()).map((fields) => JSON.stringify(fields)),
});

describe('a line of the journal', () => {
  it('is parsed into the same event', () => {
    fc.assert(
      fc.property(record, (event) => {
        const line = formatJournalLine(event);
        expect(line.indexOf('\n')).toBe(line.length - 1);
        expect(parseJournalLine(line.slice(0, -1))).toEqual(event);
      }),
    );
  });

  it('is refused when any part of it is missing', () => {
    fc.assert(
      fc.property(record, fc.nat(), (event, cut) => {
        const line = formatJournalLine(event).slice(0, -1);
        expect(parseJournalLine(line.slice(0, cut % line.length))).toBeUndefined();
      }),
    );
    expect(parseJournalLine('\0'.repeat(80))).toBeUndefined();
  });
});
