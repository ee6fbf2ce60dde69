// The bounds in targets.json, and which rows miss them.
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

/** The bounds of each row of each benchmark. */
export type Targets = Record<string, Record<string, Bounds>>;

export const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

/** The bounds of a row as text. */
export function boundOf({ ratio, least, most, over }: Bounds = {}): string {
  const bounds = [
    ratio === undefined ? '' : `ratio ≥ ${ratio}`,
    least === undefined ? '' : `≥ ${least.toLocaleString('en')}`,
    most === undefined ? '' : `≤ ${most}`,
    over === undefined ? '' : `≤ ${over} over`,
  ];
  return bounds.filter((text) => text !== '').join(', ');
}

/** Describes each bound that a row misses. */
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

/** Reports rows that miss a bound. A bound without a row is also a miss, so that no row can get lost. */
export function misses(targets: Targets, results: ReadonlyMap<string, readonly Row[]>): string[] {
  return [...results].flatMap(([name, rows]) =>
    Object.entries(targets[name] ?? {}).flatMap(([title, bounds]) => {
      const row = rows.find((found) => found.name === title);
      const wrong = row ? isMissed(row, bounds) : ['has not been measured'];
      return wrong.map((text) => `${name}: "${title}" ${text}`);
    }),
  );
}
