// The viewers of a terminal, with the real emulator in this thread; the log is in memory.
import { isDeepStrictEqual } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { SharedTerminal, type SharedTerminalOptions } from '../../../src/actors/service/shared_terminal.ts';
import { drawScreen, openTerminalScreen, readScreen } from '../../../src/adapters/terminal_screen.ts';
import type { SizeMark } from '../../../src/protocol/terminal.ts';
import { Failure } from '../../../src/runtime/actor.ts';
import { systemClock } from '../../../src/runtime/clock.ts';
import { AGENT } from '../../../src/settings/agent_limits.ts';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { must } from '../../kit/must.ts';
import { screensHere } from '../../kit/screens.ts';

interface Sent {
  kind: string;
  viewer: string;
  bytes?: Uint8Array;
  cols?: number;
  rows?: number;
  exitCode?: number | null;
}

const terminals: SharedTerminal[] = [];
afterEach(() => {
  for (const terminal of terminals.splice(0)) terminal.close();
});

function stage(cols = 40, rows = 6, claims = 0, more: Partial<SharedTerminalOptions> = {}) {
  let log: Buffer = Buffer.alloc(0);
  const sent: Sent[] = [];
  const sizes: [number, number][] = [];
  const told: (readonly SizeMark[])[] = [];
  const defects: unknown[] = [];
  const io: SharedTerminalOptions = {
    size: { cols, rows },
    read: (offset, limit) => {
      const bytes = log.subarray(offset, offset + limit);
      return { start: offset, end: offset + bytes.length, bytes };
    },
    end: () => log.length + claims,
    resize: (width, height) => sizes.push([width, height]),
    onSizes: (marks) => told.push(marks),
    screens: screensHere,
    viewersInThread: { count: 0 },
    viewers: {
      address: 'viewers',
      ask: () => Promise.reject(new Error('nobody asks viewers')),
      tell: (kind, message) => sent.push({ kind, ...(message as object) } as Sent),
    },
    clock: systemClock,
    onUnwatched: () => undefined,
    onDefect: (error) => defects.push(error),
    ...more,
  };
  const terminal = new SharedTerminal(io);
  terminals.push(terminal);
  const print = (text: string | Buffer): Promise<void> => {
    log = Buffer.concat([log, Buffer.from(text)]);
    return terminal.pump();
  };
  const of = (viewer: string, kind: string) =>
    sent.filter((entry) => entry.viewer === viewer && entry.kind === kind);
  const output = (viewer: string) =>
    Buffer.concat(of(viewer, 'output').map((entry) => entry.bytes ?? Buffer.alloc(0)));
  /** What a viewer's own terminal shows for the bytes it received. */
  const shown = async (viewer: string, width = cols, height = rows): Promise<string> => {
    const screen = await openTerminalScreen(width, height);
    await screen.write(output(viewer));
    const drawn = screen.snapshot().toString();
    screen.close();
    return drawn;
  };
  return { terminal, sent, sizes, told, defects, print, of, output, shown };
}

describe('a viewer', () => {
  it('gets an end that arrives just after a read that found no more output', async () => {
    const { terminal, print, of } = stage();
    terminal.attach('one');
    await print('last words');
    await eventually(() => of('one', 'output').length > 0);
    for (let turn = 0; turn < 10; turn += 1) await terminal.pump();
    void terminal.pump();
    terminal.onExit({ exitCode: 7, signal: null });
    await eventually(() => of('one', 'exit').length > 0);
    expect(of('one', 'exit')).toMatchObject([{ exitCode: 7 }]);
  });

  it('gets output that arrives just after a read that found none', async () => {
    const { terminal, print, of, output } = stage();
    terminal.attach('one');
    await print('first');
    await eventually(() => of('one', 'output').length > 0);
    void terminal.pump();
    void print(', second');
    await eventually(() => output('one').toString().endsWith('second'));
  });

  it('has to reconnect when the terminal is closed', async () => {
    const { terminal, print, of } = stage();
    terminal.attach('one');
    await print('text');
    await eventually(() => of('one', 'output').length > 0);
    expect(of('one', 'detached')).toHaveLength(0);
    terminal.close();
    expect(of('one', 'detached')).toHaveLength(1);
    expect(terminal.hasViewers).toBe(false);
  });

  it('that joins while output is sent to another sees all of it', async () => {
    const { terminal, print, output, shown } = stage();
    const lines = Array.from({ length: 900 }, (_, index) => `line ${index} of the agent`);
    void print(lines.map((line) => `${line}\r\n`).join(''));
    terminal.attach('one');
    // The screen is being drawn.
    for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    terminal.detach('one');
    terminal.attach('two');
    await eventually(() => output('two').includes(lines.at(-1) ?? ''));
    const seen = (await shown('two')).split(/[\r\n]+/);
    expect(seen.filter((line) => line.includes(' of the agent'))).toEqual([
      expect.stringContaining(lines[0] ?? ''),
      ...lines.slice(1),
    ]);
  });

  it('gets the size, then the screen, then new output', async () => {
    const { terminal, print, of, output, shown, sent } = stage();
    await print('before\r\n');
    terminal.attach('one');
    await eventually(() => of('one', 'output').length > 0);
    expect(sent[0]).toEqual({ kind: 'size', viewer: 'one', cols: 40, rows: 6 });
    expect(output('one').toString()).toContain('before');
    await print('\x1b[31mafter\x1b[0m');
    expect(output('one').toString()).toMatch(/before[\s\S]*\x1b\[31mafter\x1b\[0m$/);
    expect(await shown('one')).toContain('after');
  });

  it('that joins later sees the same, full-screen programs included', async () => {
    const { terminal, print, of, shown } = stage();
    terminal.attach('early');
    await eventually(() => of('early', 'size').length > 0);
    await print('\x1b[?1049h\x1b[2J\x1b[3;5H\x1b[1;44mmenu\x1b[0m\x1b[6;1Hstatus');
    await eventually(() => of('early', 'output').length > 0);
    terminal.attach('late');
    await eventually(() => of('late', 'output').length > 0);
    expect(await shown('late')).toBe(await shown('early'));
    expect(await shown('late')).toContain('menu');
  });

  it('that falls behind skips output, and gets the current screen when it catches up', async () => {
    const { terminal, print, of, output, shown } = stage();
    terminal.attach('slow');
    terminal.attach('quick');
    await print('start\r\n');
    await eventually(() => of('quick', 'output').length > 0);
    const line = `${'x'.repeat(38)}\r\n`;
    let acknowledged = 0;
    for (let round = 0; round < 40; round += 1) {
      await print(line.repeat(2_000));
      const came = output('quick').length;
      terminal.acknowledge('quick', came - acknowledged);
      acknowledged = came;
    }
    await print('the end');
    expect(output('slow').length).toBeLessThanOrEqual(AGENT.maxUnacknowledgedBytes + 64 * 1024);
    expect(output('quick').toString()).toContain('the end');
    terminal.acknowledge('slow', output('slow').length);
    await eventually(() => output('slow').toString().includes('the end'));
    expect(await shown('slow')).toBe(await shown('quick'));
  });

  it('sees the latest screen when the program prints faster than screens can be drawn', async () => {
    const { terminal, print, of, output } = stage();
    terminal.attach('one');
    await print('start\r\n');
    await eventually(() => of('one', 'output').length > 0);
    await print(Buffer.alloc(8 * AGENT.replayBytes, 'y\r\n'));
    await print('the end');
    await eventually(() => output('one').toString().includes('the end'));
    expect(output('one').length).toBeLessThan(4 * AGENT.replayBytes);
  });

  it('gets the end after the last output', async () => {
    const { terminal, print, of, sent } = stage();
    terminal.attach('one');
    await eventually(() => of('one', 'size').length > 0);
    const printed = print('last words');
    terminal.onExit({ exitCode: 3, signal: null });
    await printed;
    await eventually(() => of('one', 'exit').length > 0);
    expect(sent.at(-1)).toEqual({ kind: 'exit', viewer: 'one', exitCode: 3, signal: null });
    expect(of('one', 'output').length).toBeGreaterThan(0);
    expect(terminal.hasViewers).toBe(false);
  });

  it('resizes the terminal for all: the last resize wins', async () => {
    const { terminal, sizes, of, defects } = stage();
    terminal.attach('one');
    terminal.attach('two');
    terminal.resize(100, 30);
    expect(of('two', 'size').at(-1)).toMatchObject({ cols: 100, rows: 30 });
    expect(sizes).toEqual([[100, 30]]);
    terminal.detach('one');
    expect(terminal.hasViewers).toBe(true);
    terminal.detach('two');
    expect(terminal.hasViewers).toBe(false);
    expect(defects).toEqual([]);
  });

  it('does not make a program repaint whose whole output can be drawn', async () => {
    const { terminal, print, of, sizes } = stage();
    terminal.attach('early');
    await eventually(() => of('early', 'size').length > 0);
    await print('\x1b[?1049hstarting');
    await eventually(() => of('early', 'output').length > 0);
    terminal.attach('late');
    await eventually(() => of('late', 'output').length > 0);
    expect(sizes).toEqual([]);
  });

  it('makes the program repaint when older output is not drawn, unless it only observes', async () => {
    const { terminal, print, of, sizes } = stage();
    await print(Buffer.alloc(2 * AGENT.replayBytes, 'y\r\n'));
    terminal.attach('observer', true);
    await eventually(() => of('observer', 'output').length > 0);
    expect(sizes).toEqual([]);
    terminal.attach('one');
    await eventually(() => sizes.length >= 2);
    expect(sizes).toEqual([
      [40, 5],
      [40, 6],
    ]);
  });

  it('sees the first line of a run whose log has much output of earlier runs', async () => {
    const earlier = AGENT.replayBytes;
    const { terminal, sizes } = stage(40, 6, 0, {
      end: () => earlier + 20,
      read: (offset, limit) => {
        const bytes = Buffer.from('first line\r\nsecond').subarray(Math.max(0, offset - earlier));
        return { start: offset, end: Math.min(offset + limit, earlier + 20), bytes };
      },
    });
    expect((await terminal.screen.read(false)).lines.slice(0, 2)).toEqual(['first line', 'second']);
    terminal.attach('one');
    expect(sizes).toEqual([]);
  });

  it('gets output of earlier sizes drawn at these sizes, also from a later daemon', async () => {
    const { terminal, told, print, shown } = stage(30, 8);
    const parts = [
      { cols: 30, rows: 8, text: `${'wide '.repeat(12)}\r\n\x1b[8;1Hlast of eight` },
      { cols: 12, rows: 4, text: '\x1b[?1049h\x1b[2J\x1b[99;1Hlast of four\x1b[1;1Htop' },
      { cols: 40, rows: 10, text: '\x1b[99;1Hlast of ten, without an end of line' },
    ];
    const screen = await openTerminalScreen(30, 8);
    const resizes: SizeMark[] = [];
    let output = '';
    for (const { cols, rows, text } of parts) {
      if (output !== '') {
        terminal.resize(cols, rows);
        resizes.push({ at: output.length, cols, rows });
      }
      await print(text);
      output += text;
    }
    await screen.writeRest({ bytes: Buffer.from(output), resizes }, () => false);
    const expected = screen.read(false);
    expect(expected.lines.slice(0, 4)).toEqual(['top', '', '', 'last of four']);
    expect(expected.lines.at(-1)).toBe('last of ten, without an end of line');
    expect(await terminal.screen.read(false)).toEqual(expected);
    expect(terminal.screen.drawableOutput(null)).toMatchObject({ cols: 30, rows: 8, resizes });
    terminal.attach('late');
    await eventually(async () => (await shown('late', 40, 10)) === screen.snapshot().toString());
    screen.close();
    const later = stage(30, 8, 0, { size: { cols: 30, rows: 8, marks: must(told.at(-1)) } });
    await later.print(output);
    expect(await later.terminal.screen.read(false)).toEqual(expected);
  });

  it('gets later output when its screen takes too long, and the earlier output is not drawn again', async () => {
    const clock = virtualClock();
    const tasks: string[] = [];
    let isHung = true;
    const { terminal, print, of, output, defects } = stage(40, 6, 0, {
      clock,
      screens: {
        ...screensHere,
        draw: async (prepare) => {
          const task = prepare();
          tasks.push(Buffer.from(task.bytes).toString());
          if (isHung) throw new Failure('deadline', 'not done');
          return drawScreen(task);
        },
      },
    });
    await print('a terrible sequence\r\n');
    terminal.attach('one');
    await eventually(() => of('one', 'output').length > 0);
    expect(output('one').toString()).toMatch(/^\x1bc\[berth: .*not shown\]\r\n$/);
    await print('live\r\n');
    await eventually(() => output('one').toString().endsWith('live\r\n'));
    isHung = false;
    terminal.attach('soon');
    await eventually(() => of('soon', 'output').length > 0);
    expect(tasks).toHaveLength(1);
    await clock.advance(AGENT.overrunPauseMs);
    terminal.attach('later');
    await eventually(() => output('later').includes('live'));
    expect(tasks).toEqual(['a terrible sequence\r\n', 'live\r\n']);
    expect(defects).toEqual([]);
  });

  it('gets no output at a size that is not its own, however long it takes to draw', async () => {
    const clock = virtualClock();
    const budgets: number[] = [];
    const { terminal, print, of, output } = stage(40, 6, 0, {
      clock,
      screens: {
        ...screensHere,
        draw: async (prepare) => {
          const task = prepare();
          budgets.push(task.budgetMs);
          return drawScreen({ ...task, budgetMs: -1 });
        },
      },
    });
    await print('line\r\n'.repeat(1_000));
    terminal.attach('one');
    await eventually(() => output('one').toString().endsWith('line\r\n'.repeat(1_000)));
    terminal.resize(40, 12);
    terminal.attach('two');
    await eventually(() => of('two', 'output').length > 0);
    await print('later\r\n');
    await eventually(() => output('two').toString().endsWith('later\r\n'));
    expect(output('two').toString()).toMatch(/^\x1bc\[berth: .*not shown\]\r\nlater\r\n$/);
    expect(budgets).toEqual([AGENT.drawBudgetMs, AGENT.readBudgetMs]);
  });

  it('is told that its screen takes too long instead of getting half of it', async () => {
    const { terminal, print } = stage(40, 6, 0, {
      screens: { ...screensHere, read: async (prepare) => readScreen({ ...prepare(), budgetMs: -1 }) },
    });
    await print('line\r\n'.repeat(1_000));
    await expect(terminal.screen.read(false)).rejects.toMatchObject({ code: 'daemon_busy' });
    expect(terminal.screen.drawableOutput(null).bytes).toHaveLength(6_000);
  });

  it('has only its share of the buffers while there are many, even if others acknowledge nothing', async () => {
    const viewersInThread = { count: 0 };
    const { terminal, print, of, output } = stage(40, 6, 0, { viewersInThread });
    const elsewhere = 255;
    viewersInThread.count = elsewhere;
    terminal.attach('one');
    await print('start\r\n');
    await eventually(() => of('one', 'output').length > 0);
    await print(Buffer.alloc(AGENT.replayBytes / 2, 'y\r\n'));
    const share = AGENT.maxViewerBytes / (elsewhere + 1);
    expect(share).toBeLessThan(AGENT.replayBytes / 2);
    expect(output('one').length).toBeGreaterThan(share / 2);
    expect(output('one').length).toBeLessThan(2 * share);
    terminal.detach('one');
    terminal.detach('one');
    expect(viewersInThread.count).toBe(elsewhere);
  });

  it('is sent a screen of the size that it asked for while the first was being drawn', async () => {
    const sizes: number[] = [];
    const { terminal, print, of } = stage(40, 6, 0, {
      screens: {
        ...screensHere,
        draw: async (prepare) => {
          const task = prepare();
          sizes.push((task.resizes.at(-1) ?? task).cols);
          return drawScreen(task);
        },
      },
    });
    await print('text\r\n');
    terminal.attach('one');
    terminal.resize(90, 20);
    await eventually(() => of('one', 'output').length > 0);
    expect(sizes).toEqual([40, 90]);
  });

  it('shows what the screen is, although it has its new size before it says so', async () => {
    const { terminal, print, output } = stage();
    await print(`${'line\r\n'.repeat(20)}\x1b[2;2H\x1b[1J\x1b[3;1H\x1b[2Mthe rest`);
    terminal.attach('one');
    await eventually(() => output('one').includes('the rest'));
    terminal.resize(40, 12);
    await eventually(async () => {
      const screen = await openTerminalScreen(40, 12);
      await screen.write(output('one'));
      const { lines } = screen.read(false);
      screen.close();
      return isDeepStrictEqual(lines, (await terminal.screen.read(false)).lines);
    });
  });

  it('shows output as it was printed that it has not been sent before a change of size', async () => {
    let log = Buffer.from('line\r\n'.repeat(20));
    const { terminal, sent, output } = stage(40, 6, 0, {
      end: () => log.length,
      read: (offset, limit) => {
        const bytes = log.subarray(offset, offset + limit);
        return { start: offset, end: offset + bytes.length, bytes };
      },
    });
    terminal.attach('one');
    await eventually(() => output('one').includes('line'));
    log = Buffer.concat([log, Buffer.from('\x1b[2;2H\x1b[1J\x1b[3;1H\x1b[2Mthe rest')]);
    terminal.resize(40, 12);
    await terminal.pump();
    await eventually(async () => {
      const screen = await openTerminalScreen(40, 6);
      for (const { bytes, cols, rows } of sent) {
        if (bytes) await screen.write(bytes);
        else screen.resize(must(cols), must(rows));
      }
      const { lines } = screen.read(false);
      screen.close();
      return isDeepStrictEqual(lines, (await terminal.screen.read(false)).lines);
    });
  });

  it('is sent a screen of the last size when it was changed twice while the first was being drawn', async () => {
    const drawn: number[] = [];
    const { terminal, print, of } = stage(40, 6, 0, {
      screens: {
        ...screensHere,
        draw: async (prepare) => {
          const task = prepare();
          drawn.push((task.resizes.at(-1) ?? task).cols);
          if (drawn.length === 2) terminal.resize(100, 30);
          return drawScreen(task);
        },
      },
    });
    await print('text\r\n');
    terminal.attach('one');
    terminal.resize(90, 20);
    await eventually(() => of('one', 'output').length === 2);
    expect(drawn).toEqual([40, 90, 100]);
  });

  it('that joins late has the modes that were set long ago and not reset since', async () => {
    const { terminal, print, of, output } = stage();
    terminal.attach('early');
    await eventually(() => of('early', 'size').length > 0);
    await print('\x1b[?2004h\x1b[?1;1000h\x1b[?1049hmenu\r\n');
    await eventually(() => output('early').includes('menu'));
    await print('\x1b[?1000l');
    for (let printed = 0; printed < 2 * AGENT.replayBytes; printed += AGENT.replayBytes / 4) {
      await print(Buffer.alloc(AGENT.replayBytes / 4, 'y\r\n'));
      terminal.acknowledge('early', output('early').length);
    }
    await print('\x1b[?1lthe end\r\n');
    terminal.attach('late');
    await eventually(() => output('late').includes('the end'));
    const screen = output('late').toString();
    for (const kept of ['\x1b[?2004h', '\x1b[?1049h']) expect(screen).toContain(kept);
    for (const undone of ['\x1b[?1h', '\x1b[?1000h']) expect(screen).not.toContain(undone);
    await print('\x1bc');
    for (let printed = 0; printed < 2 * AGENT.replayBytes; printed += AGENT.replayBytes / 4) {
      await print(Buffer.alloc(AGENT.replayBytes / 4, 'z\r\n'));
      terminal.acknowledge('early', output('early').length);
    }
    terminal.attach('last');
    await eventually(() => output('last').includes('z'));
    expect(output('last').toString()).not.toContain('\x1b[?');
  });

  it('is not blocked by a log that has less output than it claims', async () => {
    const { terminal, print, of } = stage(40, 6, 1_000);
    terminal.attach('one');
    await print('something');
    await eventually(() => of('one', 'output').length > 0);
    terminal.onExit({ exitCode: 0, signal: null });
    await eventually(() => of('one', 'exit').length > 0);
  });
});
