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
