// Values from an untrusted cluster, checked and cut to what may be kept. Pure.
import { UNSAFE_CHARACTERS } from '../../protocol/unsafe_characters.ts';

/** The elements of `value`; none when it is not an array. */
export const arrayOrEmpty = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
/** `value` when it is a string of at most `maxLength` UTF-16 units, else ''. */
export const boundedText = (value: unknown, maxLength: number): string =>
  typeof value === 'string' && value.length <= maxLength ? value : '';
/** `value` when it is a count as Kubernetes has them (int32), else `fallback`. */
export const boundedCount = (value: unknown, fallback: number): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0x7fffffff
    ? value
    : fallback;

/** The time in `value`, RFC 3339, in epoch milliseconds; null when it is none. */
export function timeOrNull(value: unknown): number | null {
  const at = Date.parse(boundedText(value, 40));
  return Number.isNaN(at) ? null : at;
}

/** Untrusted text as one line of printable characters, cut to `maxLength`; '' when it is not a string. */
export function oneLine(value: unknown, maxLength = 300): string {
  if (typeof value !== 'string') return '';
  const line = value.replace(UNSAFE_CHARACTERS, ' ').replace(/\s+/g, ' ').trim();
  // A slice alone would keep the whole of a long text in memory.
  return line.length > maxLength ? Buffer.from(line.slice(0, maxLength)).toString() : line;
}
