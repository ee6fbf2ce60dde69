// What the terminal interface draws: every size, every number of services, and names and lines that mean harm.
import { describe, expect, it } from 'vitest';
import { frameChanges } from '../../../src/cli/kit/frame_changes.ts';
import { displayWidth } from '../../../src/cli/kit/text_width.ts';
import { initialModel, type Message, type Model } from '../../../src/cli/ui/model.ts';
import { writtenLine } from '../../../src/cli/ui/styled_line.ts';
import { frameLines } from '../../../src/cli/ui/view.ts';
import { hostileSequences } from '../../kit/hostile_output.ts';
import { shownScreen } from '../../kit/shown_screen.ts';
import { agentOf, agentService, pressed, screenOf, serviceOf, showing, told } from './models.ts';

const SIZES = [
  [80, 24],
  [120, 40],
  [250, 70],
  [40, 10],
  [20, 3],
  [3, 2],
  [1, 1],
] as const;

const written = (model: Model, hasColours = true): string[] =>
  frameLines(model).map((line) => writtenLine(line, model.size.columns, hasColours));

/** Every view of a model. */
const viewsOf = (model: Model): Model[] => [
  model,
  ...['Enter', 'l', 'L', '?', '/', 'X', 'p'].map((key) => told(model, ...pressed('G', key))[0]),
];

const many = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    serviceOf(`svc-${at}`, {
      stack: `stack-${at % 7}`,
      service: `svc-${at}`,
      status: at % 9 ? 'running' : 'crashed',
    }),
  );

describe.each(SIZES)('a terminal of %i x %i', (columns, rows) => {
  it.each([0, 5, 500])('shows %i services in exactly its lines and columns', (count) => {
    const agents = count > 0 ? [agentOf('bot')] : [];
    const services = [...many(count), ...agents.map(({ name }) => agentService(name))];
    for (const model of viewsOf(showing(services, { columns, rows, agents }))) {
      const lines = written(model);
      expect(lines).toHaveLength(rows);
      for (const text of frameLines(model).map((line) => writtenLine(line, columns, false)))
        expect(displayWidth(text), text).toBeLessThanOrEqual(columns);
    }
  });
});

describe('the list', () => {
  const services = [
    serviceOf('web', { port: 3000, restarts: 2 }),
    serviceOf('worker', { port: null, url: null, status: 'crashed', exitCode: 137 }),
    serviceOf('数据库-漢字-very-long-name-that-is-cut', { port: 5432, status: 'sleeping' }),
  ];
  const agents = [agentOf('bot', { state: 'blocked' })];
  const model = (columns: number): Model =>
    told(showing([...services, agentService('bot')], { columns, rows: 12, agents }), {
      kind: 'usages',
      usages: new Map([['web', { cpu: 0.125, rssMB: 120 }]]),
    })[0];

  it('is a table of 80 columns', () => {
    expect(screenOf(model(80)).map((line) => line.trimEnd())).toEqual([
      ' Berth  ✗ 1 crashed  ◆ 1 blocked  1 of 3 services running  1 agent     http://x',
      '    NAME                        STATE              PORT     CPU   MEMORY      UP',
      ' ▾ Without a group                                                    1 of 3 up',
      '› ● web                         running            3000   12.5%   120 MB   4m 5s',
      '  ✗ worker                      crashed exit 137                           4m 5s',
      '  ☾ 数据库-漢字-very-long-name… sleeping           5432                    4m 5s',
      ' ▾ Agents                                                             1 of 1 up',
      '  ◆ bot                         blocked            8100                    4m 5s',
      '',
      '',
      '',
      ' / filter  s start  x stop  r restart  l log  a attach           ? help  q quit',
    ]);
  });

  it('shows states without colours, and writes none', () => {
    for (const line of written(model(80), false)) expect(line).not.toMatch(/\x1b\[[0-9;]*3\dm/);
    expect(written(model(80)).join('')).toMatch(/\x1b\[1;31m✗/);
  });

  it('keeps everything in its column when a value changes', () => {
    const [before, now] = [
      model(120),
      told(model(120), { kind: 'usages', usages: new Map([['web', { cpu: 12, rssMB: 12_000 }]]) })[0],
    ];
    const changed = screenOf(now).filter((line, at) => line !== screenOf(before)[at]);
    expect(changed).toHaveLength(1);
    expect(changed[0]).toContain('1200.0%  11.7 GB');
  });

  it('writes only the lines that have changed, as one update', () => {
    const before = model(80);
    const now = told(before, { kind: 'usages', usages: new Map([['web', { cpu: 1, rssMB: 1 }]]) })[0];
    const changes = frameChanges(written(before), written(now));
    expect(changes.match(/\x1b\[\d+;1H/g)).toEqual(['\x1b[4;1H']);
    expect(changes).toMatch(/^\x1b\[\?2026h.*\x1b\[\?2026l$/s);
    expect(frameChanges(written(now), written(now))).toBe('');
  });
});

describe('text from other programs', () => {
  const LINE = {
    name: 'web',
    run: 'r',
    at: '2026-01-02T03:04:05.000Z',
    stream: 'stdout',
    level: null,
    text: '',
    offset: 0,
  } as const;
  /** All that a frame may write: text, colours, columns, and the end of a line erased. */
  const HARMLESS = /\x1b\[(?:[0-9;:]*m|\d+G|K)/g;
  const evil = hostileSequences().map((text) => Buffer.from(text, 'latin1').toString('utf8'));

  it('is shown without its control sequences, in names, titles, states, reasons and logs', () => {
    const agents = evil.map((text, at) => agentOf(`bot-${at}`, { title: text, question: [text] }));
    const services = [
      ...evil.map((text) =>
        serviceOf(text, { stack: text, service: text, url: text, exitCode: null, signal: text }),
      ),
      ...agents.map(({ name }) => agentService(name)),
    ];
    const rows = 3 * evil.length + 20;
    const list = showing(services, { columns: 130, rows, agents });
    const entries = evil.map((text, offset) => ({ ...LINE, name: text, text, offset }));
    const failures = evil.map((text): Message => ({ kind: 'ended', title: text, error: text }));
    const log = [...pressed('G', 'l'), { kind: 'logged', entries } as const];
    const lost = { kind: 'connection', connection: { state: 'lost', detail: evil.join('') } } as const;
    const models = [
      ...viewsOf(list),
      ...failures.map((message) => told(showing([]), message)[0]),
      told(list, ...log)[0],
      told(list, ...log, { kind: 'logTrouble', trouble: evil.join('') })[0],
      told(initialModel({ columns: 80, rows: 24 }, 0, '', ''), lost)[0],
    ];
    for (const model of models)
      for (const line of written(model))
        expect(line.replace(HARMLESS, '')).not.toMatch(/[\0-\x1f\x7f-\x9f\u202e\u2066]/);
  });

  it('keeps its colours in a log, and no other effect', async () => {
    const text = `\x1b[1mbold\x1b[32mgreen\x1b[0mplain\x1b[2J漢\ttab${'x'.repeat(1_000_000)}`;
    const entry = { ...LINE, text };
    const model = told(showing([serviceOf('web')]), ...pressed('G', 'l'), {
      kind: 'logged',
      entries: [entry],
    })[0];
    const [line = ''] = written(model).slice(3);
    expect(line).toContain('\x1b[1mbold\x1b[0m\x1b[1;32mgreen\x1b[0mplain␛[2J漢');
    const screen = await shownScreen(frameChanges([], written(model)), 80, 24);
    expect(screen).toContain('plain␛[2J漢');
  });
});
