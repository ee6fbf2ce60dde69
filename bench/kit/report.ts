// Writes the latest results to the folder of the benchmarks: figures as JSON, a table in README.md, a plot.
// A run of some benchmarks keeps the rows of the others, provided that machine and Node are the same.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Run } from './measured_run.ts';
import { plot } from './plot.ts';
import { boundOf, round, type Targets } from './targets.ts';

const BEGIN = '<!-- the last run -->';
const END = '<!-- end of the last run -->';

/** The figures of a run as a Markdown table. */
export function tableOf({ machine, results }: Run, targets: Targets): string {
  const { cpu, cores, memoryGiB, node } = machine;
  const lines = Object.entries(results).flatMap(([name, { at, rows }]) => [
    `| **\`${name}\`** | ${at} | | | | |`,
    ...rows.map((row) => {
      const spread = row.turns > 1 ? ` (${row.least.toFixed(2)} to ${row.greatest.toFixed(2)})` : '';
      const ratio = `${row.ratio.toFixed(2)}${spread}`;
      const bound = boundOf(targets[name]?.[row.name]);
      return `| ${row.name} | ${round(row.subject)} | ${round(row.floor)} | ${row.unit} | ${ratio} | ${bound} |`;
    }),
  ]);
  return [
    `On ${cores} cores of ${cpu}, ${memoryGiB} GiB, Node ${node.slice(1)}, Linux. The ratio with the least and the greatest of its turns.`,
    '',
    '![ratios and growth](last.svg)',
    '',
    '| Row | Berth | Floor | Unit | Ratio | Bound |',
    '|---|--:|--:|---|---|---|',
    ...lines,
  ].join('\n');
}

/** Returns `text` with `inner` in place of the part between the marks. */
export function between(text: string, inner: string): string {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`README.md has no ${BEGIN} with ${END} after it`);
  return `${text.slice(0, begin)}${BEGIN}\n${inner}\n${text.slice(end)}`;
}

/** Merges `run` with the earlier results in `folder`, and writes all three files there. */
export function report(run: Run, targets: Targets, folder: string): void {
  const file = join(folder, 'last.json');
  const before: Run | null = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
  const isSame = JSON.stringify(before?.machine) === JSON.stringify(run.machine);
  const results = { ...(isSame ? before?.results : {}), ...run.results };
  const ordered = Object.fromEntries(Object.entries(results).sort(([a], [b]) => a.localeCompare(b)));
  const whole: Run = { machine: run.machine, results: ordered };
  const readme = join(folder, 'README.md');
  writeFileSync(file, `${JSON.stringify(whole, null, 2)}\n`);
  writeFileSync(readme, between(readFileSync(readme, 'utf8'), tableOf(whole, targets)));
  writeFileSync(join(folder, 'last.svg'), plot(whole, targets));
}
