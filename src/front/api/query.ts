// Parses query values strictly: declared values are checked, undeclared ones are refused.
// docs/reference.md "Query values".
import type { QueryField, QueryShape, QueryValues } from '../../api/query.ts';
import { fail } from '../../protocol/errors.ts';

/** The most faults that one error names. */
const MAX_FAULTS = 32;
const INTEGER = /^(?:0|-?[1-9][0-9]*)$/;

/** The value of one field, or a description of the expected value. */
function readField(field: QueryField, text: string): { value: unknown } | { must: string } {
  if (field.kind === 'integer') {
    const { least, most, clamp } = field;
    const value = INTEGER.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return { value };
    if (clamp && value > most) return { value: most };
    return { must: clamp ? `an integer of at least ${least}` : `an integer from ${least} to ${most}` };
  }
  if (field.kind === 'flag')
    return text === 'true' || text === 'false' ? { value: text === 'true' } : { must: 'true or false' };
  if (field.kind === 'word')
    return !field.of || field.of.includes(text) ? { value: text } : { must: `one of ${field.of.join(', ')}` };
  const value = text.split(',').filter((word) => word !== '');
  if (value.length === 0) return { must: 'a list of words with commas between them' };
  return !field.of || value.every((word) => field.of?.includes(word))
    ? { value }
    : { must: `a list of some of ${field.of.join(', ')}` };
}

/** Decodes percent-encoding; null when it is invalid. */
export function percentDecode(text: string): string | null {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    return null;
  }
}

/**
 * The declared values of a query string. Throws invalid_spec naming every wrong value and every undeclared
 * name: ignoring an unknown name, such as a misspelt dry run, would carry out the request.
 */
export function readQuery<S extends QueryShape>(raw: string, shape: S): QueryValues<S> {
  const values = new Map<string, unknown>(Object.keys(shape).map((key) => [key, null]));
  const details = new Map<string, string>();
  const seen = new Set<string>();
  for (const pair of raw.split('&')) {
    if (pair === '' || details.size === MAX_FAULTS) continue;
    const equals = pair.indexOf('=');
    const key = percentDecode(equals < 0 ? pair : pair.slice(0, equals));
    const text = percentDecode((equals < 0 ? '' : pair.slice(equals + 1)).replaceAll('+', ' '));
    if (key === null || text === null) throw fail('invalid_spec', 'the query has broken percent-encoding');
    const field = Object.hasOwn(shape, key) ? shape[key] : undefined;
    if (!field) {
      details.set(key, 'is not a query value of this request');
      continue;
    }
    const result = readField(field, text);
    if (seen.has(key)) details.set(key, 'may be given only once');
    else if ('must' in result) details.set(key, `must be ${result.must}`);
    else values.set(key, result.value);
    seen.add(key);
  }
  if (details.size > 0) {
    const list = [...details].map(([path, message]) => ({ path, message: `${path} ${message}` }));
    throw fail('invalid_spec', list.map(({ message }) => message).join('; '), { details: list });
  }
  // The map has every key of the shape, with a value of its field's kind.
  return Object.fromEntries(values) as QueryValues<S>;
}
