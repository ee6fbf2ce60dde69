// Rules of the source tree that its text shows: words, citations, and what no line may say.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from './source_tree.ts';

interface File {
  path: string;
  text: string;
  lines: string[];
}

const read = (path: string): File => {
  const text = readFileSync(join(ROOT, path), 'utf8');
  return { path, text, lines: text.split('\n') };
};

const filesOf = (folder: string): File[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => /\.(tsx?|mjs)$/.test(path))
    .map(read);

const sources = ['src', 'workers', 'bench'].flatMap(filesOf);
const tests = filesOf('test');
const reference = `docs/${'reference.md'}`;
const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  'bench/README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].map(read);

/** Where `pattern` stands in a line of `files`. */
const linesWith = (files: readonly File[], pattern: RegExp): string[] =>
  files.flatMap(({ path, lines }) =>
    lines.flatMap((line, index) => (pattern.test(line) ? [`${path}:${index + 1}`] : [])),
  );

describe('the text of the source tree', () => {
  it('exports no value that is used nowhere else', () => {
    // Types are left out: a file that exports a function also exports what the function takes.
    const EXPORTED = /^export (?:async )?(?:const|function\*?|class) (\w+)/gm;
    const all = [...sources, ...tests].map((file) => ({ ...file, words: new Set(file.text.match(/\w+/g)) }));
    const unused = sources.flatMap(({ path, text }) =>
      [...text.matchAll(EXPORTED)]
        .map(([, name = '']) => name)
        .filter((name) => !all.some((other) => other.path !== path && other.words.has(name)))
        .map((name) => `${path}: ${name}`),
    );
    expect(unused).toEqual([]);
  });

  it('contains no unfinished work and disables no check', () => {
    const words = ['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X', 'HA' + 'CK'].join('|');
    const MARKS = new RegExp(`\\b(${words})\\b|@ts-ignore|@ts-nocheck`);
    expect(linesWith([...sources, ...tests.filter(({ path }) => !path.includes('/tidy/'))], MARKS)).toEqual(
      [],
    );
  });

  it('cites headings of the reference that exist, and no other document', () => {
    const headings = [...read(reference).text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => heading);
    expect(headings.filter((heading, index) => headings.indexOf(heading) !== index)).toEqual([]);
    // A citation is the path and one heading or more: "Heading", "Another". In Markdown the path may also be a link
    // or code.
    const CITATION = new RegExp(`${reference.replace('.', '\\.')}\`?( "[^"\\n]+"(?:, "[^"\\n]+")*)?`, 'g');
    const cited = [...sources, ...tests, ...documents].flatMap(({ path, text }) =>
      [...text.matchAll(CITATION)].flatMap(([, names]) => {
        if (names === undefined) return path.endsWith('.md') ? [] : [{ path, name: '' }];
        return [...names.matchAll(/"([^"]+)"/g)].map(([, name = '']) => ({ path, name }));
      }),
    );
    expect(cited.length).toBeGreaterThan(0);
    expect(cited.filter(({ name }) => !headings.includes(name))).toEqual([]);
    const ELSEWHERE = new RegExp(`\\b(${'con'}tract|${'speci'}fication)s?[ \\n/*]+section`, 'i');
    const wrong = [...sources, ...tests, ...documents].filter(({ text }) => ELSEWHERE.test(text));
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it('names paths of the repository that exist', () => {
    const PATH = /(?<![\w./-])(?:src|workers|test|bench|docs)\/[\w./-]*\w(?:\.\w+)?/g;
    const missing = [...sources, ...documents].flatMap(({ path, text }) =>
      [...text.matchAll(PATH)]
        .map(([name]) => name)
        .filter((name) => /\.(tsx?|mjs|md|json|svg)$/.test(name) && !existsSync(join(ROOT, name)))
        .map((name) => `${path}: ${name}`),
    );
    expect(missing).toEqual([]);
  });

  it('marks private members in one way', () => {
    expect(linesWith(sources, /\bthis\.#/)).toEqual([]);
  });

  it('never signals a process id that may be missing, as 0 means the process group of the caller', () => {
    expect(linesWith([...sources, ...tests], /kill\(.*(\?\?|\|\|) 0/)).toEqual([]);
  });

  it('has worker entry points of at most 30 lines', () => {
    const tall = sources.filter(({ path, lines }) => path.startsWith('workers/') && lines.length - 1 > 30);
    expect(tall.map(({ path, lines }) => `${path}: ${lines.length - 1}`)).toEqual([]);
  });
});
