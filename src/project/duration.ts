// Durations as people write them: 500ms, 30s, 5m, 1h, 1m30s. A bare number is milliseconds, as in the API.

export const DURATION_PATTERN = /^\s*(\d+|(\d+(\.\d+)?(ms|s|m|h))+)\s*$/;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** Milliseconds; undefined if `text` is not a duration. */
export function parseDuration(text: string): number | undefined {
  if (!DURATION_PATTERN.test(text)) return undefined;
  if (/^\s*\d+\s*$/.test(text)) return Number(text);
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    sum += Number(amount) * (UNIT_MS[unit ?? ''] ?? 0);
  }
  return Math.round(sum);
}

/** A duration for people: `850ms`, `3.2s`, `1m05s`, `2h10m`, `3d4h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 60) return `${seconds}s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  const hours = Math.floor(seconds / 3_600);
  if (hours < 48) return `${hours}h${two(Math.floor((seconds % 3_600) / 60))}m`;
  return `${Math.floor(hours / 24)}d${hours % 24}h`;
}
