// Values from an untrusted cluster, validated and shortened. Pure.
import { UNSAFE_CHARACTERS } from '../../protocol/unsafe_characters.ts';

/** The elements of `value`; none if it is not an array. */
export const arrayOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
/** `value` when it is a string of at most `maxLength` UTF-16 units, else ''. */
export const boundedText = (value: unknown, maxLength: number): string =>
  typeof value === 'string' && value.length <= maxLength ? value : '';
/** `value` if it is a count as in Kubernetes (int32), otherwise `fallback`. */
export const boundedCount = (value: unknown, fallback: number): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fffffff
    ? value
    : fallback;

/** The RFC 3339 time in `value`, in epoch milliseconds; null if it is not one. */
export function timeOrNull(value: unknown): number | null {
  const at = Date.parse(boundedText(value, 40));
  return Number.isNaN(at) ? null : at;
}

/** Untrusted text as one line of printable characters, cut to `maxLength`; '' when it is not a string. */
export function oneLine(value: unknown, maxLength = 300): string {
  if (typeof value !== 'string') return '';
  const line = value.replace(UNSAFE_CHARACTERS, ' ').replace(/\s+/g, ' ').trim();
  // A slice alone would keep the whole long text in memory.
  return line.length > maxLength ? Buffer.from(line.slice(0, maxLength)).toString() : line;
}
