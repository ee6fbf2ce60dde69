// What a new viewer gets of rows that wrap, end at the edge or were longer, and of what decides where later
// output lands: docs/reference.md "Terminal repaint".
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
  await take(terminal, steps);
  return terminal;
}

async function take(terminal: TerminalScreen, steps: readonly Step[]): Promise<void> {
  for (const step of steps)
    if (typeof step === 'string') await terminal.write(Buffer.from(step));
    else terminal.resize(...step);
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

/** What the terminal shows, and what a viewer that came before `later` shows. */
async function bothAfter(
  size: [number, number],
  steps: readonly Step[],
  later: readonly Step[],
  isWhole = false,
): Promise<[ScreenReading, ScreenReading]> {
  const terminal = await after(size, steps);
  const { cols, rows } = terminal.read(false);
  const viewer = await after([cols, rows], [Buffer.from(terminal.snapshot()).toString()]);
  for (const shown of [terminal, viewer]) await take(shown, later);
  const [there, here] = [terminal.read(true, isWhole), viewer.read(true, isWhole)];
  terminal.close();
  viewer.close();
  return [there, { ...here, title: there.title }];
}

/** What a viewer shows that came before `later`, which is what there is. */
async function seenAfter(size: [number, number], before: string, later: string): Promise<ScreenReading> {
  const [there, here] = await bothAfter(size, [before], [later]);
  expect(here).toEqual(there);
  return here;
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

  it(`at random, later output means the same to a new viewer (BERTH_FUZZ_SEED=${FUZZ_SEED})`, async () => {
    const below = random(FUZZ_SEED);
    const rounds = Number(process.env['BERTH_FUZZ_ROUNDS'] ?? 100);
    for (let round = 0; round < rounds; round += 1) {
      const size: [number, number] = [2 + below(30), 1 + below(6)];
      const randomSteps = () => Array.from({ length: 1 + below(12) }, () => randomChange(below));
      const [steps, later] = [[begin, ...randomSteps()], randomSteps()];
      const [there, here] = await bothAfter(size, steps, later, begin === '');
      expect(here, JSON.stringify({ size, steps, later })).toEqual(there);
    }
  });
});

describe('later output', () => {
  it.each([
    ['ESC 7', '\x1b7', '\x1b8'],
    ['CSI s', '\x1b[s', '\x1b[u'],
    ['mode 1048', '\x1b[?1048h', '\x1b[?1048l'],
  ])('returns to where the cursor was saved by %s', async (_name, save, restore) => {
    const step = (count: number) => `\x1b[Jstep ${count}\r\nof 40\r\n`;
    const progress = `one\r\ntwo\r\n${save}${step(1)}`;
    expect((await seenAfter([10, 8], progress, `${restore}${step(2)}`)).lines).toEqual([
      ...['one', 'two', 'step 2', 'of 40', '', '', '', ''],
    ]);
    expect((await seenAfter([10, 4], `above\r\n${progress}`, `${restore}end`)).lines).toEqual([
      ...['two', 'endp 1', 'of 40', ''],
    ]);
  });

  it('has the style and the character set that were saved with the cursor', async () => {
    expect((await seenAfter([9, 2], '\x1b[31m\x1b7\x1b[m\r\n', '\x1b8red')).lines[0]).toBe(
      '\x1b[0;31mred\x1b[0m',
    );
    expect((await seenAfter([9, 2], '\x1b(0\x1b7\x1b(B\r\n', 'q\x1b8q')).lines).toEqual(['─', 'q']);
    expect((await seenAfter([9, 2], '\x1b)0\x0e\x1b7\x0f\r\n', 'q\x1b8q')).lines).toEqual(['─', 'q']);
  });

  it('finds the saved cursor and the current one beside a scroll region', async () => {
    const before = 'top\r\n1\r\n2\x1b[4;4H\x1b7\x1b[2;3r\x1b[3;2H';
    expect((await seenAfter([6, 4], before, '\r\n3\x1b8end')).lines).toEqual(['top', '2', '3', '   end']);
  });

  it('is line drawing if it was', async () => {
    expect((await seenAfter([9, 2], '\x1b(0lqk\r\n', 'mqj')).lines).toEqual(['┌─┐', '└─┘']);
    expect((await seenAfter([9, 2], '\x1b)0\x0elqk\r\n', 'mqj\x0fq')).lines).toEqual(['┌─┐', '└─┘q']);
    expect((await seenAfter([9, 2], '\x1b)0lqk\r\n', 'q\x0emqj')).lines).toEqual(['lqk', 'q└─┘']);
  });

  it('finds the main screen as it was before the alternate one', async () => {
    const main = '1\r\n2\r\n3\r\nlast\x1b[1;3r\x1b[31m\x1b[3;2H\x1b(0';
    const { lines } = await seenAfter([6, 4], `${main}${ALTERNATE}\x1b(B\x1b[mmenu`, '\x1b[?1049lq\r\n');
    expect(lines).toEqual(['2', '3\x1b[0;31m─\x1b[0m', '', 'last']);
    const menu = await seenAfter([6, 4], `${main}${ALTERNATE}\x1b(B\x1b[m\x1b[H\x1b7menu\r\n`, '\x1b8M\n');
    expect(menu.lines).toEqual(['Menu', '', '', '']);
  });

  it('has the tab stops and the line ends of before', async () => {
    expect((await seenAfter([20, 2], '\x1b[3g\x1b[4G\x1bH\x1b[7G\x1bH\r\n', 'a\tb\tc')).lines[1]).toBe(
      'a  b  c',
    );
    expect((await seenAfter([9, 2], '\x1b[20habc', '\nnext')).lines).toEqual(['abc', 'next']);
  });

  it('wraps where the cursor is at the edge, also above other rows or where that is erased', async () => {
    expect((await seenAfter([4, 3], '\x1b[3;1Hend\x1b[1;1Habcd', 'x')).lines).toEqual(['abcd', 'x', 'end']);
    expect((await seenAfter([4, 3], '\x1b[2;1Hend\x1b[1;1Hab漢', 'x')).lines).toEqual(['ab漢', 'xnd', '']);
    expect((await seenAfter([4, 3], '\x1b[2;3r\x1b[?6habcd\r\n\x1b[1;1Habcd', 'x')).lines[2]).toBe('x');
    expect((await seenAfter([4, 3], 'abcd\x1b[2K', 'x')).lines).toEqual(['', 'x', '']);
  });
});

it('bold that follows dim is drawn', async () => {
  expect((await seen([9, 1], '\x1b[2mdim\x1b[22;1mBOLD')).lines).toEqual([
    '\x1b[0;2mdim\x1b[0;1mBOLD\x1b[0m',
  ]);
  expect((await seen([9, 1], '\x1b[2mdim\x1b[22;1;4;38;2;1;22;3mBOLD')).lines).toEqual([
    '\x1b[0;2mdim\x1b[0;1;4;38;2;1;22;3mBOLD\x1b[0m',
  ]);
  expect((await seen([9, 1], '\x1b[2mdim\x1b[22;38;2;7;1;22mtext')).lines).toEqual([
    '\x1b[0;2mdim\x1b[0;38;2;7;1;22mtext\x1b[0m',
  ]);
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

/** Output that moves the cursor, or changes where and how later output is shown. */
function randomChange(below: (limit: number) => number): string {
  const one = (...sequences: string[]): string => must(sequences[below(sequences.length)]);
  const kinds: (() => string)[] = [
    () => 'lqxjabcdefghijklmnopqrstuvwxyz'.slice(below(26)),
    () => '\r\n'.repeat(1 + below(3)),
    () => '\t',
    () => `\x1b[${1 + below(6)};${1 + below(30)}H`,
    () => `\x1b[${below(3)}K`,
    () => `\x1b[${below(3)}J`,
    () => `\x1b[${one('0', '1', '2', '22', '31', '4', '7')}m`,
    () => one('\x1b7', '\x1b[s', '\x1b[?1048h'),
    // The emulator restores the character set in use, but not those that it can shift to.
    () => `${one('\x1b8', '\x1b[u', '\x1b[?1049l')}\x1b(B\x1b)B\x0f`,
    () => one('\x1b(0', '\x1b(B', '\x1b)0', '\x1b)B', '\x0e', '\x0f'),
    () => `\x1b[${1 + below(3)};${2 + below(5)}r`,
    () => one('\x1b[S', '\x1b[T', '\x1bM', '\x1bD'),
    () => one('\x1bH', '\x1b[g', '\x1b[3g'),
    () => one('\x1b[20h', '\x1b[20l', '\x1b[4h', '\x1b[4l', '\x1b[?6h', '\x1b[?6l'),
  ];
  return must(kinds[below(kinds.length)])();
}
