// Screens of hostile output: docs/reference.md "Terminal repaint". The jobs run on real threads.
import { pathToFileURL } from 'node:url';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { drawScreen, openTerminalScreen } from '../../src/adapters/terminal_screen.ts';
import { createJobPool, type JobPool } from '../../src/daemon/job_pool.ts';
import { screenJobs } from '../../src/daemon/screen_drawer.ts';
import type { DrawnScreen, ScreenTask } from '../../src/protocol/terminal.ts';
import { AGENT } from '../../src/settings/agent_limits.ts';
import { KIB, MIB } from '../../src/settings/limits.ts';
import { afterThisTest } from '../kit/actors.ts';
import { bundle } from '../kit/bundle.ts';
import { FUZZ_SEED, hostileSequences, randomOutput, seededRandom } from '../kit/hostile_output.ts';
import { must } from '../kit/must.ts';
import { shownScreen } from '../kit/shown_screen.ts';

const [COLS, ROWS] = [40, 12];

const task = (bytes: Buffer, more: Partial<ScreenTask> = {}): ScreenTask => ({
  cols: COLS,
  rows: ROWS,
  modes: Buffer.alloc(0),
  resizes: [],
  bytes,
  maxBytes: MIB,
  budgetMs: AGENT.drawBudgetMs,
  ...more,
});

/** What a terminal shows after `text`. */
const shown = (text: string): Promise<string> => shownScreen(text, COLS, ROWS);

describe('a window with room for a part of the screen', () => {
  const part = async (text: string, cols: number, rows: number) => {
    const terminal = await openTerminalScreen(COLS, ROWS);
    await terminal.write(Buffer.from(text));
    const seen = terminal.part(cols, rows);
    terminal.close();
    return seen;
  };

  it('shows the left of each row, with colours and without half a wide character', async () => {
    const { lines } = await part('\x1b[31mred\x1b[0m and more\r\nab漢字', 3, 2);
    expect(lines).toEqual(['\x1b[0;31mred\x1b[0m', 'ab']);
    expect((await part('ab漢字', 4, 2)).lines[0]).toBe('ab漢');
  });

  it('shows the first rows, or those that end with that of the cursor', async () => {
    const rows = Array.from({ length: 30 }, (_, row) => `row ${row}`).join('\r\n');
    expect(await part(`${rows}\x1b[2;3H`, 9, 3)).toMatchObject({
      lines: ['row 18', 'row 19', 'row 20'],
      cursor: { x: 2, y: 1 },
    });
    expect(await part(`${rows}\x1b[5;3H`, 9, 3)).toMatchObject({
      lines: ['row 20', 'row 21', 'row 22'],
      cursor: { x: 2, y: 2 },
    });
    expect((await part(rows, 50, 20)).lines).toHaveLength(ROWS);
  });

  it('has no cursor where it is hidden or further to the right', async () => {
    expect((await part('abcd', 9, 3)).cursor).toEqual({ x: 4, y: 0 });
    expect((await part('abcd', 4, 3)).cursor).toBeNull();
    expect((await part('abcd\x1b[?25l', 9, 3)).cursor).toBeNull();
  });
});

describe('a count in an escape sequence', () => {
  const before = `${Array.from({ length: 30 }, (_, row) => `row ${row} of the text`).join('\r\n')}\x1b[5;9H`;
  it.each([
    ...['@', 'I', 'P', 'X', 'Z', 'b'].map((final) => [final, COLS] as const),
    ...['L', 'M', 'S', 'T'].map((final) => [final, ROWS] as const),
  ])('of CSI %s beyond the screen is limited to the screen size', async (final, most) => {
    const effect = await shown(`${before}x\x1b[${most}${final}`);
    expect(await shown(`${before}x\x1b[2147483647${final}`)).toBe(effect);
    expect(effect).not.toBe(await shown(`${before}x`));
    expect(await shown(`${before}x\x1b[3${final}`)).not.toBe(await shown(`${before}x`));
  });
});

/** A drawing that comes to the last size. */
const drawn = async (toDraw: ScreenTask): Promise<DrawnScreen> => must(await drawScreen(toDraw));

describe('a drawn screen', () => {
  it('ends after the last complete line, from which a terminal can continue', async () => {
    const { screen, drawnBytes } = await drawn(task(Buffer.from('one\r\ntwo\r\n\x1b[3')));
    expect(drawnBytes).toBe('one\r\ntwo\r\n'.length);
    expect(Buffer.from(screen ?? []).toString()).toContain('two');
    const unbroken = Buffer.from('\x1b[H\x1b[2Jmenu '.repeat(2_000));
    expect((await drawn(task(unbroken, { budgetMs: 60_000 }))).drawnBytes).toBe(unbroken.length);
  });

  it.each([
    ['a control sequence', '\x1b[38;5;2', '08mred'],
    ['an escape', '\x1b', '[31mred'],
    ['a title', '\x1b]0;half of ', 'it\x07text'],
    ['a character', Buffer.from('€').subarray(0, 2), Buffer.from('€').subarray(2)],
  ])('ends before %s that has not arrived completely', async (_what, half, rest) => {
    const line = Buffer.from('menu '.repeat(100));
    const bytes = Buffer.concat([line, Buffer.from(half)]);
    const { screen, drawnBytes } = await drawn(task(bytes, { budgetMs: 60_000 }));
    expect(drawnBytes).toBe(line.length);
    const whole = Buffer.concat([bytes, Buffer.from(rest)]);
    const sent = Buffer.concat([screen ?? Buffer.alloc(0), whole.subarray(drawnBytes)]);
    expect(await shownScreen(sent, COLS, ROWS)).toBe(await shownScreen(whole, COLS, ROWS));
  });

  it.each([
    ['a scroll region', '\x1b[3;6r\x1b[6;1Hfooter\x1b[5;3H', '\n\n\n\nscrolled'],
    ['a hidden cursor', '\x1b[?25l', ''],
    ['the encoding of the mouse', '\x1b[?1002;1006h', ''],
  ])('has %s', async (_what, before, after) => {
    const { screen } = await drawn(task(Buffer.from(`top\r\n${before}\n`), { budgetMs: 60_000 }));
    const sent = Buffer.concat([screen ?? Buffer.alloc(0), Buffer.from(after)]);
    expect(await shownScreen(sent, COLS, ROWS)).toBe(await shown(`top\r\n${before}\n${after}`));
    expect(await shown(`top\r\n${before}\n`)).not.toBe(await shown('top\r\n\n'));
  });

  it('is not logged, whatever is wrong with the sequences in it', async () => {
    const logged = (['debug', 'log', 'info', 'warn', 'error', 'trace'] as const).map((level) =>
      vi.spyOn(console, level).mockImplementation(() => {}),
    );
    afterThisTest(() => logged.forEach((level) => void level.mockRestore()));
    const { drawnBytes } = await drawn(task(Buffer.from('\x1b€\x1b[€m\x1bP€\x1b\\\r\n')));
    expect(drawnBytes).toBeGreaterThan(0);
    expect(logged.flatMap((level) => level.mock.calls)).toEqual([]);
  });

  it('ends when the time is over', async () => {
    const { drawnBytes } = await drawn(task(Buffer.from('line\r\n'.repeat(10_000)), { budgetMs: -1 }));
    expect(drawnBytes).toBe(0);
  });

  it('is missing when the time is over before the last change of size', async () => {
    const text = 'line\r\n'.repeat(10_000);
    const late = { resizes: [{ at: text.length, cols: COLS, rows: 2 * ROWS }], budgetMs: -1 };
    const bytes = Buffer.from(`${text}more\r\n`);
    expect(await drawScreen(task(bytes, late))).toBeNull();
    const early = { ...late, resizes: [{ at: 0, cols: COLS, rows: 2 * ROWS }] };
    expect(await drawScreen(task(bytes, early))).toMatchObject({ drawnBytes: 0 });
    expect(await drawScreen(task(bytes, { ...late, budgetMs: 60_000 }))).toMatchObject({
      drawnBytes: bytes.length,
    });
    const unfinished = task(Buffer.from(`${text}\x1b[3`), { ...late, budgetMs: 60_000 });
    unfinished.resizes = [{ at: unfinished.bytes.length, cols: COLS, rows: 2 * ROWS }];
    expect(await drawScreen(unfinished)).toMatchObject({ drawnBytes: text.length });
  });

  it('has the scrollback if it fits, else the screen, else nothing', async () => {
    const text = Buffer.from(`${'x'.repeat(COLS)}\r\n`.repeat(500));
    const sizeOf = async (maxBytes: number) =>
      (await drawn(task(text, { maxBytes, budgetMs: 60_000 }))).screen?.length;
    const whole = (await sizeOf(MIB)) ?? 0;
    const bare = (await sizeOf(whole - 1)) ?? 0;
    expect(bare).toBeGreaterThan(0);
    expect(bare * 10).toBeLessThan(whole);
    expect(await sizeOf(bare - 1)).toBeUndefined();
  });
});

describe('hostile output', () => {
  let jobs: JobPool;
  beforeAll(async () => {
    const file = pathToFileURL(await bundle('workers/jobs.ts'));
    jobs = createJobPool({ file, deadlineMs: AGENT.drawTimeoutMs });
    return () => jobs.close();
  });

  /** More than an idle machine needs. */
  const budgetMs = 100;
  const corpus = hostileSequences();
  const repeated = (sequence: string, bytes: number): string =>
    sequence.repeat(Math.max(1, Math.floor(bytes / sequence.length)));

  it('has at least 200 sequences', () => expect(new Set(corpus).size).toBeGreaterThanOrEqual(200));

  // A job that is not over at the deadline fails with `deadline`, one that takes too much memory with `crashed`.
  it.each([
    ['of the usual size', AGENT.defaultCols, AGENT.defaultRows, 2 * KIB, 4],
    ['of one column and row', 1, 1, KIB, 4],
    ['of the largest size', AGENT.maxColsOrRows, AGENT.maxColsOrRows, 64, 60],
  ])('is drawn on a screen %s', async (_, cols, rows, bytes, perScreen) => {
    const { draw } = screenJobs(jobs);
    const outputs = corpus.map((sequence) => repeated(sequence, bytes));
    const groups = Array.from({ length: Math.ceil(outputs.length / perScreen) }, (_, index) =>
      outputs.slice(index * perScreen, (index + 1) * perScreen).join(''),
    );
    const failed: [string, unknown][] = [];
    await Promise.all(
      groups.map(async (group) => {
        const output = Buffer.from(`${group}\r\n`, 'latin1');
        await draw(() => task(output, { cols, rows, budgetMs })).catch((error) =>
          failed.push([group.slice(0, 99), error]),
        );
      }),
    );
    expect(failed).toEqual([]);
  });

  it(`at random is drawn (BERTH_FUZZ_SEED=${FUZZ_SEED})`, async () => {
    const random = seededRandom(FUZZ_SEED);
    const { draw } = screenJobs(jobs);
    const rounds = Number(process.env['BERTH_FUZZ_ROUNDS'] ?? 60);
    const failed: [number, unknown][] = [];
    const outputs = Array.from({ length: rounds }, () => randomOutput(random, corpus, 16 * KIB));
    await Promise.all(
      outputs.map((output, round) =>
        draw(() =>
          task(output, {
            cols: 1 + Math.floor(random() * 200),
            rows: 1 + Math.floor(random() * 60),
            budgetMs,
          }),
        ).catch((error) => failed.push([round, error])),
      ),
    );
    expect(failed).toEqual([]);
  });
});

describe('screens that wait to be drawn', () => {
  it('have not been read yet, and are drawn in order, also after a failure', async () => {
    const prepared: number[] = [];
    const finish: ((fails: boolean) => void)[] = [];
    const jobs: JobPool = {
      run: () =>
        new Promise((resolve, reject) => {
          finish.push((fails) =>
            fails ? reject(new Error('over')) : resolve({ screen: null, drawnBytes: 0 } as never),
          );
        }),
      close: async () => undefined,
    };
    const { draw } = screenJobs(jobs, 2);
    const drawn = [0, 1, 2, 3].map((number) =>
      draw(() => {
        prepared.push(number);
        return task(Buffer.alloc(0));
      }).then(
        () => 'drawn',
        () => 'failed',
      ),
    );
    const turns = () => new Promise((resolve) => setImmediate(resolve));
    await turns();
    expect(prepared).toEqual([0, 1]);
    finish[1]?.(true);
    await turns();
    expect(prepared).toEqual([0, 1, 2]);
    for (const number of [0, 2]) finish[number]?.(false);
    await turns();
    finish[3]?.(false);
    expect(await Promise.all(drawn)).toEqual(['drawn', 'failed', 'drawn', 'drawn']);
  });

  it('are drawn while another one blocks its thread', async () => {
    const file = pathToFileURL(await bundle('test/daemon/job_worker.ts'));
    const jobs = createJobPool({ file, deadlineMs: 20_000 });
    afterThisTest(() => jobs.close());
    const { draw } = screenJobs(jobs);
    const stuck = draw(() => task(Buffer.from('spin'))).catch((error: unknown) => error);
    for (let count = 0; count < 5; count += 1)
      expect(await draw(() => task(Buffer.from('draw')))).toMatchObject({ drawnBytes: 4 });
    await jobs.close();
    expect(await stuck).toMatchObject({ code: 'crashed' });
  });
});
