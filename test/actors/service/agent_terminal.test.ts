// A service with a terminal and a log on disk: what viewers and readers get in its messages.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { LogWriter } from '../../../src/logs/writer.ts';
import type { TerminalProtocol, TerminalViewersProtocol } from '../../../src/protocol/terminal.ts';
import { Failure, type Ref, tolerateFailure } from '../../../src/runtime/actor.ts';
import { afterThisTest, type Stand } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { AGENT, quiet, running, type Supervised, supervise } from '../../kit/service.ts';

interface Shown {
  world: Supervised;
  /** Whether drawing a screen is a defect. */
  drawing: { isBroken: boolean };
  terminal: Ref<TerminalProtocol>;
  viewers: Stand<TerminalViewersProtocol>;
  log: LogWriter;
  run: string;
  print(text: string, run?: string): void;
  /** Everything sent to viewer `one` so far. */
  output(): string;
}

async function agent(maxBytes = 1_000_000): Promise<Shown> {
  const world = await supervise({ spec: { agent: AGENT } });
  const viewers = await world.services.stand<TerminalViewersProtocol>('viewers');
  const drawing = { isBroken: false };
  const { screens } = world.config;
  world.config.screens = {
    ...screens,
    draw: async (prepare) => {
      if (drawing.isBroken) throw new TypeError('a defect');
      return screens.draw(prepare);
    },
  };
  await world.begin();
  await running(world);
  const log = new LogWriter(join(world.config.logs, 'web'), { maxBytes, keep: 2 }, Date.now);
  afterThisTest(() => log.close());
  const run = world.host.row?.run ?? '';
  return {
    world,
    drawing,
    terminal: world.services.ref<TerminalProtocol>('service:web'),
    viewers,
    log,
    run,
    print: (text, of = run) => {
      log.append(1, of, Buffer.from(text));
      if (world.host.follows.at(-1)) world.host.service?.tell('grew', { end: log.end });
    },
    output: () => Buffer.concat(viewers.of('output').map(({ bytes }) => bytes)).toString(),
  };
}

describe('the viewer of an agent', () => {
  it('has to reconnect when its terminal has ended with a defect', async () => {
    const { world, drawing, terminal, viewers, print, output } = await agent();
    print('hello\r\n');
    await terminal.ask('attach', { viewer: 'one' });
    await eventually(() => output().includes('hello'));
    drawing.isBroken = true;
    await terminal.ask('attach', { viewer: 'two' });
    await eventually(() => viewers.of('detached').length > 0);
    expect(viewers.of('detached')).toContainEqual({ viewer: 'one' });
    expect(world.services.crashes.splice(0)).toMatchObject([{ address: 'service:web' }]);
  });

  it('gets the size, the screen of this run, new output, and the end', async () => {
    const { world, terminal, viewers, print, output } = await agent();
    print('of the run before\r\n', '00000000000000bb');
    print('hello\r\n');
    await terminal.ask('attach', { viewer: 'one' });
    await eventually(() => output().includes('hello'));
    expect(output()).not.toContain('of the run before');
    expect(viewers.of('size')).toEqual([{ viewer: 'one', cols: 120, rows: 32 }]);
    expect(world.host.follows).toEqual([true]);
    print('more\r\n');
    await eventually(() => output().includes('more'));
    world.host.exit(7);
    await eventually(() => viewers.of('exit').length > 0);
    expect(viewers.of('exit')).toEqual([{ viewer: 'one', exitCode: 7, signal: null }]);
    await quiet();
    expect(world.host.follows).toEqual([true, false]);
    const late = await terminal.ask('attach', { viewer: 'two' }).catch((error: unknown) => error);
    expect(late).toBeInstanceOf(Failure);
    expect(late).toMatchObject({ code: 'not_running' });
  });

  it('types and resizes while it is attached', async () => {
    const { world, terminal, viewers } = await agent();
    await terminal.ask('attach', { viewer: 'one' });
    await terminal.ask('input', { viewer: 'one', data: Buffer.from('ls\r') });
    await terminal.ask('resize', { cols: 80, rows: 24 });
    await quiet();
    expect(world.host.typed).toEqual(['ls\r']);
    expect(viewers.of('inputTaken')).toEqual([{ viewer: 'one' }]);
    expect(world.host.sizes).toContainEqual([80, 24]);
    expect(viewers.of('size').at(-1)).toEqual({ viewer: 'one', cols: 80, rows: 24 });
    await terminal.ask('detach', { viewer: 'one' });
    await quiet();
    expect(world.host.follows).toEqual([true, false]);
  });
});

describe('a viewer who attaches while the process is being started', () => {
  async function starting(): Promise<Shown> {
    const shown = await agent();
    shown.world.host.exit(0);
    await quiet();
    shown.world.host.spawnMs = 1_000;
    void tolerateFailure(shown.world.ref.ask('start', { timeoutMs: null, wait: false }), () => null);
    await quiet();
    return shown;
  }

  it('types and resizes at once', async () => {
    const { world, terminal, viewers } = await starting();
    const attached = terminal.ask('attach', { viewer: 'one' });
    terminal.tell('resize', { cols: 80, rows: 24 });
    terminal.tell('input', { viewer: 'one', data: Buffer.from('ls') });
    terminal.tell('input', { viewer: 'one', data: Buffer.from('\r') });
    await world.advance(1_000);
    await attached;
    await quiet();
    expect(world.host.sizes).toEqual([[80, 24]]);
    expect(world.host.typed).toEqual(['ls', '\r']);
    expect(viewers.of('inputTaken')).toHaveLength(2);
    expect(viewers.of('size').at(-1)).toEqual({ viewer: 'one', cols: 80, rows: 24 });
  });

  it('is gone if they leave before', async () => {
    const { world, terminal } = await starting();
    const attached = [1, 2].map((one) => terminal.ask('attach', { viewer: `viewer ${one}` }));
    terminal.tell('detach', { viewer: 'viewer 1' });
    terminal.tell('detach', { viewer: 'viewer 2' });
    await world.advance(1_000);
    await Promise.all(attached);
    await quiet();
    expect(world.host.follows).toEqual([true, false]);
    expect(world.config.viewersInThread.count).toBe(0);
  });
});

describe('a client that is not attached', () => {
  it('reads the screen and types, also keys that depend on the mode of the terminal', async () => {
    const { world, terminal, print } = await agent();
    print('\x1b]2;a title\x07\x1b[31mred\x1b[0m plain \x1b[48;5;200m \r\n\x1b[0m> ');
    const shown = await terminal.ask('screen', { ansi: false });
    expect(shown).toMatchObject({
      ...{ cols: 120, rows: 32, cursor: { x: 2, y: 1 }, altScreen: false, title: 'a title' },
    });
    expect(shown.lines).toHaveLength(32);
    expect(shown.lines.slice(0, 3)).toEqual(['red plain', '>', '']);
    const coloured = await terminal.ask('screen', { ansi: true });
    expect(coloured.lines.slice(0, 2)).toEqual(['\x1b[0;31mred\x1b[0m plain \x1b[0;48;5;200m \x1b[0m', '>']);
    await terminal.ask('type', { text: 'é', keys: ['Up', 'C-c', 'Enter'] });
    print('\x1b[?1049h\x1b[?1h');
    expect(await terminal.ask('screen', { ansi: false })).toMatchObject({ altScreen: true });
    await terminal.ask('type', { text: '', keys: ['Up', 'C-Up'] });
    expect(world.host.typed).toEqual(['é\x1b[A\x03\r', '\x1bOA\x1b[1;5A']);
    // Nobody is attached, so the log is not followed.
    expect(world.host.follows).toEqual([]);
  });

  it('is refused when the agent does not run', async () => {
    const { world, terminal } = await agent();
    world.host.exit(0);
    await quiet();
    for (const asked of [
      terminal.ask('screen', { ansi: false }),
      terminal.ask('type', { text: 'x', keys: [] }),
    ])
      expect(await asked.catch((error: unknown) => error)).toMatchObject({ code: 'not_running' });
  });
});

describe('the log of a service', () => {
  const query = { stream: null, timestamps: false, raw: false };
  /** Lines of 64 KiB, four to a part, that take long to turn into readable text. */
  const drawn = (count: number) => `${'x\x1b[K\x1b[1K'.repeat(8_192)}\n`.repeat(count);

  it('lets other work run while many long lines are converted to text', async () => {
    const { world, print } = await agent(16_000_000);
    const count = 40;
    print(drawn(count));
    let turns = 0;
    let isOver = false;
    const tick = (): void => {
      turns += 1;
      if (!isOver) setImmediate(tick);
    };
    setImmediate(tick);
    const logs = world.ref.ask('logs', { ...query, lines: count }).then((lines) => {
      isOver = true;
      return lines;
    });
    // Another message to the same service comes in between.
    await world.ref.ask('read', { offset: 0, limit: 1, stream: null, timestamps: false });
    expect(isOver).toBe(false);
    expect(JSON.parse(Buffer.from(await logs).toString())).toEqual(Array.from({ length: count }, () => ''));
    expect(turns).toBeGreaterThanOrEqual(count / 4);
  });

  it('holds one long tail in memory at a time, and does not delay short ones', async () => {
    const { world, print } = await agent(16_000_000);
    const count = 100;
    print(drawn(count));
    let turns = 0;
    let waiting = 3;
    const tick = (): void => {
      turns += 1;
      if (waiting > 0) setImmediate(tick);
    };
    setImmediate(tick);
    const ask = async (lines: number): Promise<number> => {
      await world.ref.ask('logs', { ...query, lines });
      waiting -= 1;
      return turns;
    };
    const [first, second, short] = await Promise.all([ask(count), ask(count), ask(1)]);
    expect(short).toBeLessThan(count / 4);
    expect(second - first).toBeGreaterThanOrEqual(count / 4);
  });

  it('is read by lines and by offsets, and its last lines appear in the explanation', async () => {
    const { world, print, log } = await agent();
    print('old\n', '00000000000000bb');
    print('one\x1b[31m red\x1b[0m\ntwo');
    const lines = await world.ref.ask('logs', { ...query, lines: 2 });
    expect(Buffer.from(lines).toString()).toBe('["one red","two"]');
    const { lastLines } = await world.ref.ask('explain', {});
    expect(lastLines).toEqual(['one red', 'two']);
    const stamped = await world.ref.ask('logs', { ...query, lines: 1, timestamps: true });
    expect(Buffer.from(stamped).toString()).toMatch(/^\["\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d two"\]$/);
    const starts = [0, 1, 2, 9].map((lines) => world.ref.ask('tailStart', { lines, stream: null }));
    expect(await Promise.all(starts)).toEqual([log.end, log.end - 3, 4, 0]);
    const read = async (offset: number) => {
      const asked = { offset, limit: 4, stream: null, timestamps: false };
      const { start, end, parts } = await world.ref.ask('read', asked);
      return [start, end, ...parts.map((part) => [part.offset, Buffer.from(part.bytes).toString()])];
    };
    // Never from two runs at once.
    expect(await read(2)).toEqual([2, 4, [2, 'd\n']]);
    expect(await read(4)).toEqual([4, 8, [4, 'one\x1b']]);
  });

  it('appears in the hint of a failed start', async () => {
    const { world, print } = await agent();
    await world.ref.ask('stop', { graceMs: 0 });
    world.host.spawnMs = 20;
    const started = world.ref.ask('start', { timeoutMs: null, wait: true }).catch((error: unknown) => error);
    await world.advance(25);
    print('cannot bind\n', world.host.row?.run);
    world.host.exit(1);
    const error = await started;
    expect(error).toMatchObject({ code: 'start_failed', detail: { hint: 'Its last lines:\ncannot bind' } });
  });
});
