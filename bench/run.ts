// Runs benchmarks by name: `node dist/bench.js [name...] [--json FILE] [--report] [--check] [--list]`.
// Without a name it runs all but the long ones. A number after a name is its duration in minutes.
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { Benchmark, Row } from './kit/harness.ts';
import { runOf } from './kit/measured_run.ts';
import { report } from './kit/report.ts';
import { misses, round, type Targets } from './kit/targets.ts';

/** Every benchmark, loaded only when it runs. */
const BENCHMARKS: ReadonlyMap<string, () => Promise<Benchmark>> = new Map([
  ['front', async () => (await import('./front.ts')).front],
  ['link', async () => (await import('./link.ts')).link],
  ['events', async () => (await import('./events.ts')).events],
  ['register', async () => (await import('./register.ts')).register],
  ['tether', async () => (await import('./tether.ts')).tether],
  ['cloud', async () => (await import('./cloud.ts')).cloud],
  ['audit', async () => (await import('./audit.ts')).audit],
  ['shared', async () => (await import('./shared.ts')).shared],
  ['restart', async () => (await import('./restart.ts')).restart],
  ['cli', async () => (await import('./cli.ts')).cli],
  ['coldstart', async () => (await import('./coldstart.ts')).coldstart],
  ['memory', async () => (await import('./memory.ts')).memoryUse],
  ['processes', async () => (await import('./processes.ts')).processes],
  ['fanout', async () => (await import('./fanout.ts')).fanout],
  ['terminal', async () => (await import('./terminal.ts')).terminal],
  ['agents', async () => (await import('./agents.ts')).agents],
  ['mcp', async () => (await import('./mcp.ts')).mcp],
  ['viewers', async () => (await import('./viewers.ts')).viewers],
  ['door', async () => (await import('./door.ts')).door],
  ['logs', async () => (await import('./logs.ts')).logs],
  ['watch', async () => (await import('./watch.ts')).watch],
  ['gateway', async () => (await import('./gateway.ts')).gateway],
  ['page', async () => (await import('./page.ts')).page],
  ['peers', async () => (await import('./peers.ts')).peers],
  ['scale-services', async () => (await import('./scale.ts')).scaleServices],
  ['scale-events', async () => (await import('./scale.ts')).scaleEvents],
  ['scale-workloads', async () => (await import('./scale.ts')).scaleWorkloads],
  ['soak', async () => (await import('./soak.ts')).soak],
]);

/** Long benchmarks, which run only by name. */
const LONG = 'soak';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'string' },
    check: { type: 'boolean', default: false },
    report: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    targets: { type: 'string', default: 'bench/targets.json' },
  },
});

function print({ name, question }: Benchmark, rows: readonly Row[]): void {
  console.log(`\n${name}: ${question}`);
  for (const row of rows) {
    const numbers = `${round(row.subject)} of ${round(row.floor)} ${row.unit}`;
    const spread = `${row.least.toFixed(2)} to ${row.greatest.toFixed(2)} in ${row.turns} turns`;
    console.log(`  ${row.name.padEnd(32)} ratio ${row.ratio.toFixed(2)} (${spread}), ${numbers}`);
  }
}

const all = [...BENCHMARKS.keys()];
/** `scale` stands for every name that begins with it. */
const named = (name: string): string[] => all.filter((key) => key === name || key.startsWith(`${name}-`));
const isMinutes = (text: string): boolean => /^[1-9][0-9]*$/.test(text);
const asked = positionals.filter((text) => !isMinutes(text));
const minutes = positionals.filter(isMinutes).map(Number)[0];
const names = asked.length > 0 ? asked.flatMap(named) : all.filter((name) => name !== LONG);
const unknown = asked.filter((name) => named(name).length === 0);
if (unknown.length > 0) {
  console.error(`no benchmark ${unknown.join(', ')}; there are ${all.join(', ')}`);
  process.exit(2);
}
if (values.list) {
  for (const load of BENCHMARKS.values()) {
    const { name, question } = await load();
    console.log(`${name.padEnd(16)} ${question}`);
  }
  process.exit();
}
const targets: Targets = JSON.parse(readFileSync(values.targets, 'utf8'));
const results = new Map<string, readonly Row[]>();
for (const name of names) {
  const benchmark = await BENCHMARKS.get(name)?.();
  if (!benchmark) continue;
  const rows = await benchmark.run(minutes);
  results.set(name, rows);
  print(benchmark, rows);
}
const run = runOf(results);
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(run, null, 2)}\n`);
if (values.report) report(run, targets, 'bench');
if (values.check) {
  const lines = misses(targets, results);
  for (const line of lines) console.error(line);
  process.exitCode = lines.length > 0 ? 1 : 0;
}
