// The bounds of targets.json, and the rows that miss them.
import type { Row } from './harness.ts';

/**
 * The bounds that `--check` applies to a row: the least ratio, the least or greatest value, or the greatest
 * excess over the floor.
 */
export interface Bounds {
  ratio?: number;
  least?: number;
  most?: number;
  over?: number;
}

/** By benchmark and row. */
export type Targets = Record<string, Record<string, Bounds>>;

export const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

/** The bounds of a row, in words. */
export function boundOf({ ratio, least, most, over }: Bounds = {}): string {
  const bounds = [
    ratio === undefined ? '' : `ratio ≥ ${ratio}`,
    least === undefined ? '' : `≥ ${least.toLocaleString('en')}`,
    most === undefined ? '' : `≤ ${most}`,
    over === undefined ? '' : `≤ ${over} over`,
  ];
  return bounds.filter((text) => text !== '').join(', ');
}

/** Describes how a row misses its bound; empty when it does not. */
function isMissed(row: Row, { ratio, least, most, over }: Bounds): string[] {
  return [
    ratio !== undefined && row.ratio < ratio
      ? `has ratio ${row.ratio.toFixed(2)}, must be at least ${ratio}`
      : '',
    least !== undefined && row.subject < least
      ? `is ${round(row.subject)} ${row.unit}, at least ${least} must be`
      : '',
    most !== undefined && row.subject > most
      ? `is ${round(row.subject)} ${row.unit}, at most ${most} may be`
      : '',
    over !== undefined && row.over > over
      ? `is ${round(row.over)} ${row.unit} over its floor, at most ${over} may be`
      : '',
  ].filter((text) => text !== '');
}

/** Rows that miss their bound, and bounds without a row: otherwise a benchmark that lost a row would pass. */
export function misses(targets: Targets, results: ReadonlyMap<string, readonly Row[]>): string[] {
  return [...results].flatMap(([name, rows]) =>
    Object.entries(targets[name] ?? {}).flatMap(([title, bounds]) => {
      const row = rows.find((found) => found.name === title);
      const wrong = row ? isMissed(row, bounds) : ['has not been measured'];
      return wrong.map((text) => `${name}: "${title}" ${text}`);
    }),
  );
}
