// Runs mutations of the source against the tests that should notice them: `npm run mutants [-- --sample N
// --seed S --minutes M --area NAME --id ID]`. Works on a copy of the tree, one mutation at a time, and names
// the test that noticed it. A mutation that no test notices survives. One whose text is not in its file exactly
// once is stale. One whose tests do not end in time, or that is noticed by a test that fails without it too, is
// unclear: neither counts as noticed.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { random } from '../kit/random.ts';
import { MUTANTS, type Mutant } from './mutants.ts';

/** npm starts its scripts there; this file runs as a bundle elsewhere. */
const ROOT = process.cwd();
/** Everything that the tests read, without what is installed or built. */
const COPIED = [
  'src',
  'workers',
  'bench',
  'test',
  'docs',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];
const OTHERS = ['vitest.config.ts', 'biome.json', 'README.md', 'ARCHITECTURE.md', 'LICENSE', '.ci'];
const BUILD = join('src', 'build', 'build.mjs');
/** A mutant that makes a test hang is noticed by this. */
const TEST_TIMEOUT_MS = 15_000;
const RUN_TIMEOUT_MS = 300_000;
/** The shares of noticed mutants that must be reached, in percent. */
const BOUNDS = { all: 85, area: 75 };

interface Verdict {
  is: 'killed' | 'survived' | 'stale' | 'unclear';
  /** The test that failed. */
  by?: string;
}

const { values } = parseArgs({
  options: {
    sample: { type: 'string' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    area: { type: 'string' },
    id: { type: 'string' },
  },
});

/** The mutants asked for; with --sample, as many of them at random. */
function chosenMutants(): Mutant[] {
  const asked = MUTANTS.filter(
    ({ id, area }) =>
      (values.id === undefined || id === values.id) && (values.area === undefined || area === values.area),
  );
  const below = random(Number(values.seed));
  const count = Math.min(Number(values.sample ?? asked.length), asked.length);
  return Array.from({ length: count }, () => asked.splice(below(asked.length), 1)).flat();
}

function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'berth-mutants-'));
  for (const name of [...COPIED, ...OTHERS]) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

interface TestRun {
  /** null: it did not end in time. */
  isGreen: boolean | null;
  /** The file of the first test that failed, and its name. */
  failure: { file: string; test: string } | null;
}

/** Whether `tests` run what is built, as those in a browser do. */
const needBuild = (tests: readonly string[]): boolean =>
  tests.some((path) => /^test\/(cli|e2e)\//.test(path));

/** Runs `tests` in the tree `copy`. */
function runTests(copy: string, tests: readonly string[]): TestRun {
  if (needBuild(tests)) spawnSync(process.execPath, [BUILD], { cwd: copy });
  const report = join(copy, 'mutant.json');
  rmSync(report, { force: true });
  const vitest = join('node_modules', 'vitest', 'vitest.mjs');
  const output = ['--reporter=json', `--outputFile=${report}`];
  const args = [vitest, 'run', '--bail=1', `--testTimeout=${TEST_TIMEOUT_MS}`, ...output, ...tests];
  const { status } = spawnSync(process.execPath, args, { cwd: copy, timeout: RUN_TIMEOUT_MS });
  if (status === null || !existsSync(report)) return { isGreen: null, failure: null };
  const { testResults }: { testResults: FileResult[] } = JSON.parse(readFileSync(report, 'utf8'));
  const failed = testResults.find((file) => file.status === 'failed');
  const test = failed?.assertionResults.find((one) => one.status === 'failed')?.fullName ?? 'the file';
  return { isGreen: status === 0, failure: failed ? { file: relative(copy, failed.name), test } : null };
}

/** What the tests of `mutant` say once it is applied to the tree `copy`, which is left as it was. */
function verdictOn(copy: string, { file, find, replace, tests }: Mutant): Verdict {
  const path = join(copy, file);
  const text = readFileSync(path, 'utf8');
  if (text.split(find).length !== 2) return { is: 'stale' };
  writeFileSync(
    path,
    text.replace(find, () => replace),
  );
  let mutated: TestRun;
  try {
    mutated = runTests(copy, tests);
  } finally {
    writeFileSync(path, text);
  }
  const { isGreen, failure } = mutated;
  if (isGreen) return { is: 'survived' };
  if (!failure) return { is: 'unclear' };
  const by = `${failure.file} > ${failure.test}`;
  return { is: runTests(copy, [failure.file]).isGreen ? 'killed' : 'unclear', by };
}

interface FileResult {
  name: string;
  status: string;
  assertionResults: { status: string; fullName: string }[];
}

const percent = (verdicts: readonly Verdict[]): number =>
  Math.round((100 * verdicts.filter((one) => one.is === 'killed').length) / Math.max(1, verdicts.length));

const chosen = chosenMutants();
console.log(`${chosen.length} of ${MUTANTS.length} mutants, seed ${values.seed}`);
const copy = copyTree();
const endsAt = performance.now() + Number(values.minutes ?? Infinity) * 60_000;
const results = new Map<Mutant, Verdict>();
try {
  for (const mutant of chosen) {
    if (performance.now() > endsAt) break;
    const verdict = verdictOn(copy, mutant);
    results.set(mutant, verdict);
    console.log(`${verdict.is.padEnd(8)} ${mutant.id.padEnd(24)} ${verdict.by ?? mutant.about}`);
  }
} finally {
  rmSync(copy, { recursive: true });
}
const areas = new Set(chosen.map(({ area }) => area));
for (const area of areas) {
  const verdicts = [...results].flatMap(([mutant, verdict]) => (mutant.area === area ? [verdict] : []));
  console.log(`${area.padEnd(12)} ${percent(verdicts)} % of ${verdicts.length}`);
  // A few say nothing about an area.
  if (verdicts.length >= 4 && percent(verdicts) < BOUNDS.area) process.exitCode = 1;
}
const all = [...results.values()];
console.log(`${'all'.padEnd(12)} ${percent(all)} % of ${all.length}, at least ${BOUNDS.all} % wanted`);
if (percent(all) < BOUNDS.all || all.some(({ is }) => is === 'stale')) process.exitCode = 1;
