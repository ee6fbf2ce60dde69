// Times, sizes and ends as text.
import { UNSAFE_CHARACTERS } from '../protocol/unsafe_characters.ts';

/** `text` on one line, with every character visible that would move, hide or turn what stands beside it. */
export const visibleLine = (text: string): string =>
  text.replace(/[\n\t]/g, ' ').replace(UNSAFE_CHARACTERS, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : '\ufffd';
  });

/** How a process ended: `exit 3`, `SIGKILL`; '' if unknown. */
export function endText(end: { exitCode?: number | null; signal?: string | null; cause?: string }): string {
  const cause = end.cause === undefined ? '' : `, ${end.cause}`;
  if (end.signal) return `${end.signal}${cause}`;
  return typeof end.exitCode === 'number' ? `exit ${end.exitCode}${cause}` : '';
}

/** The same within a sentence, even if unknown. */
export const howEnded = (end: Parameters<typeof endText>[0]): string => endText(end) || 'nobody saw how';

/** Cores as percent of one: `12.5%`. */
export const cpuText = (cores: number | undefined): string =>
  cores === undefined ? '' : `${(cores * 100).toFixed(1)}%`;

/** Megabytes with their unit. */
export const memoryText = (megabytes: number | undefined): string => {
  if (megabytes === undefined) return '';
  return megabytes >= 10_240 ? `${(megabytes / 1024).toFixed(1)} GB` : `${Math.round(megabytes)} MB`;
};

const KIB = 1024;
const MIB = 1024 * KIB;

/** A number of bytes: `3 KiB`, `4.9 MiB`. */
export const bytesText = (bytes: number): string =>
  bytes < MIB ? `${Math.ceil(bytes / KIB)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`;

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
  ['s', 1],
] as const;

/** A duration in its two largest units: `3h 12m`, `45s`. */
export function spanText(milliseconds: number): string {
  let rest = Math.max(0, Math.floor(milliseconds / 1_000));
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    if (count > 0 || parts.length > 0 || unit === 's') parts.push(`${count}${unit}`);
    rest -= count * seconds;
    if (parts.length === 2) break;
  }
  return parts.join(' ');
}

/** How long something took: `850ms`, `3.2s`, then as `spanText`. */
export const tookText = (milliseconds: number): string => {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)}ms`;
  return milliseconds < 10_000 ? `${(milliseconds / 1_000).toFixed(1)}s` : spanText(milliseconds);
};

const two = (value: number): string => String(value).padStart(2, '0');

/** Hours, minutes and seconds of a time, in the local time zone. */
export function clockText(time: string | number): string {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** The day of a time: `2026-11-20`. */
export function dayText(time: string | number): string {
  const at = new Date(time);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** The time, with its day unless that is today. `now`: epoch milliseconds. */
export const whenText = (time: string | number, now: number): string =>
  dayText(time) === dayText(now) ? clockText(time) : `${dayText(time)} ${clockText(time)}`;

/** `1 service`, `3 services`. */
export const countText = (number: number, one: string): string =>
  `${number} ${one}${number === 1 ? '' : 's'}`;

const natural = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** Compares names so that `svc-4` comes before `svc-12`. */
export const compareNames = (one: string, other: string): number => natural.compare(one, other);
