// The pages of docs are true: their commands exist, their tables are those of the program, their links lead
// somewhere.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PLATFORM_PARTS } from '../../src/adapters/platform_parts.ts';
import { platformFindings } from '../../src/cli/commands/doctor_checks.ts';
import { COMMAND_TABLE } from '../../src/cli/commands.ts';
import { loadCommand } from '../../src/cli/kit/command_table.ts';
import { commandWords } from '../../src/cli/kit/global_options.ts';
import { parseCommandLine } from '../../src/cli/kit/parser.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter((path) =>
  path.endsWith('.md'),
);

/** The words of a line of shell, without its quotes. */
const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare ?? '',
  );

/** Every call of `berth` in a block of shell, without what a shell does around it. */
const calls = pages.flatMap((path) =>
  [...read(path).matchAll(/^\$ (.*)$/gm)]
    .flatMap(([, line = '']) => line.split(/ && | \| | > |#/))
    .filter((part) => part.startsWith('berth '))
    .map((part) => [path, part.trim()] as const),
);

/** The calls of `berth` that the page at / suggests: alone in a literal or a `<code>`. */
const suggested = readdirSync(join(ROOT, 'src/dashboard'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.tsx'))
  .flatMap((path) =>
    [...read(`src/dashboard/${path}`).matchAll(/(?:<code>|')(berth [^<'`]+)(?:<\/code>|')/g)].map(
      ([, line = '']) => [path, line] as const,
    ),
  );

it.each([...calls, ...suggested])('%s: `%s` is a valid command line', async (_path, line) => {
  const argv = wordsOf(line).slice(1);
  const called = await loadCommand(COMMAND_TABLE, commandWords(argv));
  expect(called).toBeDefined();
  expect(parseCommandLine(argv, COMMAND_TABLE, called)).toHaveProperty('options');
});

it.each(pages)('%s links only to files that exist', (path) => {
  const links = [...read(path).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) => target);
  expect(links.filter((target) => !existsSync(join(ROOT, dirname(path), target)))).toEqual([]);
});

describe('each part that only Linux has', () => {
  it('is in the table of docs/install.md', () => {
    const page = read('docs/install.md');
    const rows = [...page.slice(page.indexOf('| Part |')).matchAll(/^\| (.+) \| (.+) \|$/gm)].slice(1);
    expect(rows.map(([, name, without]) => ({ name, without }))).toEqual(
      PLATFORM_PARTS.map(({ name, without }) => ({ name, without })),
    );
  });

  it('is reported by berth doctor if it is missing', () => {
    expect(platformFindings(PLATFORM_PARTS)).toEqual([]);
    const missing = PLATFORM_PARTS.map((part, index) => ({ ...part, isHere: () => index !== 0 }));
    expect(platformFindings(missing)).toEqual([
      {
        state: 'warning',
        about: 'this system lacks the table of processes in /proc',
        fix: PLATFORM_PARTS[0]?.without,
      },
    ]);
  });

  it('is used only in the file of its row', () => {
    const known = new Set(PLATFORM_PARTS.map(({ adapter }) => adapter));
    const using = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .map((name) => `src/${name}`)
      .filter((path) => path.endsWith('.ts') && !path.endsWith('/platform_parts.ts'))
      .filter((path) => /['"`]\/(proc|sys|etc)\//.test(read(path)));
    const message = 'each needs a row in src/adapters/platform_parts.ts, and one in docs/install.md';
    expect(
      using.filter((path) => !known.has(path)),
      message,
    ).toEqual([]);
  });
});
