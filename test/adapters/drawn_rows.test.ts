// Rows that wrap, end at the edge or were longer, for a new viewer: docs/reference.md "Terminal repaint".
import { describe, expect, it } from 'vitest';
import { drawScreen, openTerminalScreen, type TerminalScreen } from '../../src/adapters/terminal_screen.ts';
import type { ScreenReading } from '../../src/protocol/terminal.ts';
import { MIB } from '../../src/settings/limits.ts';
import { FUZZ_SEED } from '../kit/hostile_output.ts';
import { must } from '../kit/must.ts';
import { random } from '../kit/random.ts';

const ALTERNATE = '\x1b[?1049h';
const CLEAR = '\x1b[2J\x1b[H';
/** A piece of output, or the size from there on. */
type Step = string | [cols: number, rows: number];

async function after(size: [number, number], steps: readonly Step[]): Promise<TerminalScreen> {
  const terminal = await openTerminalScreen(...size);
  for (const step of steps)
    if (typeof step === 'string') await terminal.write(Buffer.from(step));
    else terminal.resize(...step);
  return terminal;
}

/** What the terminal shows, and what a new viewer's terminal of the same size shows of it. */
async function bothScreens(
  size: [number, number],
  steps: readonly Step[],
  isWhole = false,
): Promise<[ScreenReading, ScreenReading]> {
  const terminal = await after(size, steps);
  const there = terminal.read(true, isWhole);
  const viewer = await after([there.cols, there.rows], [Buffer.from(terminal.snapshot()).toString()]);
  // A title is not drawn: viewers get it with later output.
  const here = { ...viewer.read(true, isWhole), title: there.title };
  terminal.close();
  viewer.close();
  return [there, here];
}

/** What a new viewer sees, which is what there is. */
async function seen(size: [number, number], ...steps: Step[]): Promise<ScreenReading> {
  const [there, here] = await bothScreens(size, steps);
  expect(here).toEqual(there);
  return here;
}

describe('a row of the alternate screen', () => {
  it('that was longer than a narrower terminal is drawn up to its edge', async () => {
    const before = Buffer.from(`${ALTERNATE}${'a'.repeat(26)}\r\nfirst`);
    const bytes = Buffer.from(`${before}${CLEAR}${'b'.repeat(16)}\r\nsecond\r\n`);
    const drawn = await drawScreen({
      ...{ cols: 20, rows: 6, modes: Buffer.alloc(0), bytes, maxBytes: MIB, budgetMs: 60_000 },
      resizes: [{ at: before.length, cols: 10, rows: 5 }],
    });
    const viewer = await after([10, 5], [Buffer.from(must(must(drawn).screen)).toString()]);
    expect(viewer.read(false)).toMatchObject({
      lines: ['bbbbbbbbbb', 'bbbbbb', 'second', '', ''],
      cursor: { x: 0, y: 3 },
      altScreen: true,
    });
    viewer.close();
  });

  it('keeps nothing beyond the edge for a wider terminal', async () => {
    const steps: Step[] = [`${ALTERNATE}0123456789`, [6, 3], [12, 3]];
    expect((await seen([10, 3], ...steps)).lines).toEqual(['012345', '', '']);
  });

  it('may end exactly at the edge, or with half of a wide character', async () => {
    expect((await seen([12, 3], ALTERNATE, [6, 3], `${CLEAR}012345678901end`)).lines).toEqual([
      '012345',
      '678901',
      'end',
    ]);
    expect((await seen([12, 3], `${ALTERNATE}01234漢x`, [6, 3], '\r\nnext')).lines).toEqual([
      '01234',
      'next',
      '',
    ]);
    expect((await seen([12, 3], ALTERNATE, [6, 3], `${CLEAR}01234漢字`)).lines).toEqual([
      '01234',
      '漢字',
      '',
    ]);
  });

  it('has the style that it was printed in, not the current one', async () => {
    expect((await seen([12, 2], `${ALTERNATE}plain\x1b[1m`)).lines).toEqual(['plain', '']);
    expect((await seen([12, 2], `${ALTERNATE}plain\x1b[44m`)).lines).toEqual(['plain', '']);
  });
});

describe.each([
  ['main', ''],
  ['alternate', ALTERNATE],
])('on the %s screen', (_name, begin) => {
  it('a wrapped row is drawn in its place when its begin or the end before it is erased', async () => {
    expect((await seen([6, 4], `${begin}0123456789\x1b[1;1H\x1b[Kx`)).lines).toEqual(['x', '6789', '', '']);
    expect((await seen([6, 4], `${begin}0123456789\x1b[1;1H\x1b[K`)).lines).toEqual(['', '6789', '', '']);
    expect((await seen([6, 4], `${begin}0123456789\x1b[2;2H\x1b[1K\x1b[4;1Hend`)).lines).toEqual([
      '012345',
      '  89',
      '',
      'end',
    ]);
  });

  it.each(['\x1b[1J', '\x1b[?1J'])('%j erases all up to the last cell', async (erase) => {
    const shown = await seen([6, 3], `${begin}above\x1b[3;5Hxx${erase}\x1b[2;1Hend`);
    expect(shown.lines).toEqual(['', 'end', '']);
  });

  it('the last rows have their background', async () => {
    const blue = '\x1b[0;44m    \x1b[0m';
    expect((await seen([4, 3], `${begin}\x1b[44m\x1b[2J\x1b[Htop`)).lines).toEqual([
      blue.replace('   ', 'top'),
      blue,
      blue,
    ]);
    expect((await seen([4, 3], `${begin}text\x1b[H\x1b[44m\x1b[2J\x1b[m`)).lines).toEqual([blue, blue, blue]);
  });

  it('the cursor has its place beside a row that reaches the edge, and in a scroll region', async () => {
    expect((await seen([6, 3], `${begin}\x1b[3;1H012345\x1b[1;3H`)).cursor).toEqual({ x: 2, y: 0 });
    expect((await seen([6, 4], `${begin}\x1b[2;3r\x1b[?6hab\x1b[1;2H`)).cursor).toEqual({ x: 1, y: 1 });
  });

  it(`at random, a new viewer sees what there is (BERTH_FUZZ_SEED=${FUZZ_SEED})`, async () => {
    const below = random(FUZZ_SEED);
    const rounds = Number(process.env['BERTH_FUZZ_ROUNDS'] ?? 100);
    for (let round = 0; round < rounds; round += 1) {
      const size: [number, number] = [2 + below(14), 1 + below(6)];
      const steps = [begin, ...Array.from({ length: 1 + below(10) }, () => randomStep(below))];
      const [there, here] = await bothScreens(size, steps, begin === '');
      expect(here, JSON.stringify({ size, steps })).toEqual(there);
    }
  });
});

it('the cursor has its place in the window of a viewer with more rows', async () => {
  const terminal = await after([6, 3], ['1\r\n2\r\n3\r\n4\r\n012345\x1b[2;3H']);
  const viewer = await after([6, 8], [Buffer.from(terminal.snapshot()).toString()]);
  expect(viewer.read(false)).toMatchObject({
    lines: ['1', '2', '3', '4', '012345', '', '', ''],
    cursor: { x: 2, y: 3 },
  });
  terminal.close();
  viewer.close();
});

function randomStep(below: (limit: number) => number): Step {
  const kinds: (() => Step)[] = [
    () => [2 + below(14), 1 + below(6)],
    () => '漢'.repeat(1 + below(8)),
    () => 'abcdefghijklmnopqrstuvwxyz'.slice(below(26)),
    () => '\r\n',
    () => `\x1b[${1 + below(6)};${1 + below(15)}H`,
    () => `\x1b[${below(3)}K`,
    () => `\x1b[${below(3)}J`,
  ];
  return must(kinds[below(kinds.length)])();
}
