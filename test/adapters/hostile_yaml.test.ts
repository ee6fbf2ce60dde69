// No text may end the process or keep a thread busy: each is parsed as a kubeconfig by the real job threads,
// in half of their time, and as a project file in this process, which an overflow of V8's would end.
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { parseYamlNodes, YamlPositionError } from '../../src/adapters/yaml.ts';
import { createJobPool } from '../../src/daemon/job_pool.ts';
import { HTTP, JOBS, KIB } from '../../src/settings/limits.ts';
import { afterThisTest } from '../kit/actors.ts';
import { bundle } from '../kit/bundle.ts';
import { codeOf } from '../kit/probe_actor.ts';

let worker: URL;
beforeAll(async () => {
  worker = pathToFileURL(await bundle('workers/jobs.ts'));
});

function readAsProject(text: string): void {
  try {
    parseYamlNodes(text, 32);
  } catch (error) {
    if (!(error instanceof YamlPositionError)) throw error;
  }
}

/** Reads kubeconfigs. The time allowed is processor time, so that a busy machine fails no test. */
function openReader(): (text: string) => Promise<unknown> {
  const jobs = createJobPool({ file: worker, deadlineMs: 10 * JOBS.deadlineMs });
  afterThisTest(() => jobs.close());
  return async (upload) => {
    const before = process.cpuUsage();
    const code = await codeOf(jobs.run('parseKubeconfig', { upload, now: 0 }));
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(JOBS.deadlineMs / 2);
    return code;
  };
}

/** `unit` as often as a kubeconfig may hold. */
const filledWith = (unit: string): string =>
  unit.repeat(Math.floor((HTTP.maxKubeconfigBytes - 1) / unit.length));

/** Each level one space deeper than the one before. */
const staircase = (levels: number): string =>
  Array.from({ length: levels }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('');

const CORPUS: readonly [what: string, text: string][] = [
  ['explicit keys on one line', `${'? '.repeat(7173)}: x`],
  ['list items on one line', `${'- '.repeat(60_000)}: x`],
  // The parser recurses where a line ends many levels at once.
  ['explicit keys that a line ends', `${'? '.repeat(7173)}\n: x`],
  ['list items that a line ends', `${'- '.repeat(50_000)}\nx: 1`],
  ['values on one line', `a${': '.repeat(60_000)}`],
  ['ever longer lines of list items', Array.from({ length: 480 }, (_, n) => '- '.repeat(n)).join('\n')],
  ['brackets that close nothing', `a: ${']'.repeat(250_000)}`],
  ['open brackets', `a: ${'['.repeat(250_000)}`],
  ['open braces', filledWith('{a: ')],
  ['nested keys', `${'[{? '.repeat(60_000)}`],
  ['a staircase of maps', staircase(700)],
  ['anchors', `a: ${'&a '.repeat(80_000)}`],
  ['aliases', `a: &a 1\nb: ${'*a '.repeat(80_000)}`],
  ['tags with brackets', filledWith('!t ]:')],
  ['quotes', filledWith('"[:')],
  ['lines with a carriage return', filledWith('\n\r\n:')],
  ['comments', filledWith('# c\n- ')],
  ['ends of documents', filledWith('...\n%Y\n:')],
];

it.each(CORPUS)('the YAML reader reads %s in a limited time', async (_, text) => {
  const read = openReader();
  expect(await read(text)).toBe('invalid_spec');
  readAsProject(text);
});

it('the YAML reader reads two hostile texts at once without refusing a third', async () => {
  const read = openReader();
  const hostile = [read(CORPUS[0]?.[1] ?? ''), read(CORPUS[1]?.[1] ?? '')];
  expect(await read('kind: Config')).toBe('invalid_spec');
  expect(await Promise.all(hostile)).toEqual(['invalid_spec', 'invalid_spec']);
});

it('the YAML reader reads any text in a limited time', async () => {
  const runs = Number(process.env['BERTH_FUZZ_TEXTS'] ?? 30);
  const read = openReader();
  const words = fc.constantFrom(
    ...['- ', '? ', ': ', '[', ']', '{', '}', ', ', '\n', '\r\n', ' ', '\t', '#', '&a ', '*a ', '<<: '],
    ...['!t ', '"', "'", '|\n', '>-\n ', '---\n', '...\n', '%YAML 1.1\n', 'a', '\\', '\0', '\ufeff', 'key: '],
  );
  // A short pattern, many times: that is where nesting and repeated work come from.
  const texts = fc
    .tuple(
      fc.array(words, { minLength: 1, maxLength: 6 }),
      fc.array(words, { maxLength: 6 }),
      fc.nat(60 * KIB),
    )
    .map(([unit, start, bytes]) => {
      const pattern = unit.join('');
      return `${start.join('')}:${pattern.repeat(Math.ceil(bytes / pattern.length))}`;
    });
  // A failure prints its seed.
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      expect(['invalid_spec', 'none']).toContain(await read(text));
      readAsProject(text);
    }),
    { numRuns: runs },
  );
});

it('the YAML reader resolves an alias to the last anchor of its name', () => {
  const tree = parseYamlNodes('a: &x 1\nb: *x\nc: &x 2\nd: *x\n', 8);
  const values =
    tree.kind === 'map' ? tree.rows.map(({ value }) => value.kind === 'scalar' && value.value) : [];
  expect(values).toEqual([1, 1, 2, 2]);
  expect(() => parseYamlNodes('a: &x [*x]', 8)).toThrow('nested too deeply');
  expect(() => parseYamlNodes('a: *x\nb: &x 1', 8)).toThrow(/x does not exist|Unresolved alias/);
});
