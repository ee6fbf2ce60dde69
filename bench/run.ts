// Runs benchmarks by name: `node dist/bench.js [name...] [--json FILE] [--check]`. Without a name: all of them.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import type { Benchmark, Row } from './harness.ts';

/** Every benchmark, loaded only when it runs. */
const BENCHMARKS: ReadonlyMap<string, () => Promise<Benchmark>> = new Map([
  ['front', async () => (await import('./front.ts')).front],
  ['link', async () => (await import('./link.ts')).link],
  ['events', async () => (await import('./events.ts')).events],
  ['register', async () => (await import('./register.ts')).register],
  ['tether', async () => (await import('./tether.ts')).tether],
  ['cloud', async () => (await import('./cloud.ts')).cloud],
  ['cli', async () => (await import('./cli.ts')).cli],
  ['coldstart', async () => (await import('./coldstart.ts')).coldstart],
  ['memory', async () => (await import('./memory.ts')).memoryUse],
  ['processes', async () => (await import('./processes.ts')).processes],
  ['fanout', async () => (await import('./fanout.ts')).fanout],
  ['terminal', async () => (await import('./terminal.ts')).terminal],
  ['gateway', async () => (await import('./gateway.ts')).gateway],
  ['peers', async () => (await import('./peers.ts')).peers],
]);

/** What `--check` accepts of a row: the least ratio, or the most that it may be itself, or more than its floor. */
interface Bounds {
  ratio?: number;
  most?: number;
  over?: number;
}

/** By benchmark and row. */
type Targets = Record<string, Record<string, Bounds>>;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
    targets: { type: 'string', default: 'bench/targets.json' },
  },
});

const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);

function print({ name, question }: Benchmark, rows: readonly Row[]): void {
  console.log(`\n${name}: ${question}`);
  for (const row of rows) {
    const numbers = `${round(row.subject)} of ${round(row.floor)} ${row.unit}`;
    const spread = `${row.least.toFixed(2)} to ${row.greatest.toFixed(2)} in ${row.turns} turns`;
    console.log(`  ${row.name.padEnd(32)} ratio ${row.ratio.toFixed(2)} (${spread}), ${numbers}`);
  }
}

/** What is wrong with a row; empty when nothing is. */
function missed(row: Row, { ratio, most, over }: Bounds): string[] {
  return [
    ratio !== undefined && row.ratio < ratio
      ? `has ratio ${row.ratio.toFixed(2)}, must be at least ${ratio}`
      : '',
    most !== undefined && row.subject > most
      ? `is ${round(row.subject)} ${row.unit}, at most ${most} may be`
      : '',
    over !== undefined && row.over > over
      ? `is ${round(row.over)} ${row.unit} over its floor, at most ${over} may be`
      : '',
  ].filter((text) => text !== '');
}

/** Rows that miss their target, and targets without a row: a benchmark that lost a row would pass otherwise. */
function misses(targets: Targets, results: ReadonlyMap<string, readonly Row[]>): string[] {
  return [...results].flatMap(([name, rows]) =>
    Object.entries(targets[name] ?? {}).flatMap(([title, bounds]) => {
      const row = rows.find((found) => found.name === title);
      const wrong = row ? missed(row, bounds) : ['has not been measured'];
      return wrong.map((text) => `${name}: "${title}" ${text}`);
    }),
  );
}

const names = positionals.length > 0 ? positionals : [...BENCHMARKS.keys()];
const unknown = names.filter((name) => !BENCHMARKS.has(name));
if (unknown.length > 0) {
  console.error(`no benchmark ${unknown.join(', ')}; there are ${[...BENCHMARKS.keys()].join(', ')}`);
  process.exit(2);
}
const results = new Map<string, readonly Row[]>();
for (const name of names) {
  const benchmark = await BENCHMARKS.get(name)?.();
  if (!benchmark) continue;
  const rows = await benchmark.run();
  results.set(name, rows);
  print(benchmark, rows);
}
const machine = { cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, node: process.version };
if (values.json !== undefined)
  writeFileSync(
    values.json,
    `${JSON.stringify({ machine, at: new Date().toISOString(), results: Object.fromEntries(results) }, null, 2)}\n`,
  );
if (values.check) {
  const lines = misses(JSON.parse(readFileSync(values.targets, 'utf8')), results);
  for (const line of lines) console.error(line);
  process.exitCode = lines.length > 0 ? 1 : 0;
}
