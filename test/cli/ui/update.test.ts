// What keys, pastes and news of the daemon make of the terminal interface: tables over its pure part.
import { describe, expect, it } from 'vitest';
import { MAX_LOG_ENTRIES } from '../../../src/cli/ui/log_pages.ts';
import {
  type Effect,
  initialModel,
  type LogPageRead,
  type Message,
  type Model,
  viewOf,
} from '../../../src/cli/ui/model.ts';
import type { LogEntry, Service } from '../../../src/client/records.ts';
import { entryKey } from '../../../src/presentation/log_entry.ts';
import { must } from '../../kit/must.ts';
import {
  agentOf,
  agentService,
  NOW,
  pressed,
  screenOf,
  serviceOf,
  showing,
  told,
  workloads,
} from './models.ts';

const SHOP = [
  serviceOf('shop--web', { stack: 'shop', service: 'web', group: 'shop' }),
  serviceOf('shop--db', { stack: 'shop', service: 'db', group: 'shop', status: 'crashed', exitCode: 3 }),
  serviceOf('alone', { status: 'sleeping' }),
];
const BOT = [agentService('bot')];
const withBot = (): Model => showing([...SHOP, ...BOT], { agents: [agentOf('bot', { state: 'blocked' })] });

/** The rows in the order of the list: alone's section has no name, so it comes first. */
const ORDER = ['head', 'alone', 'head', 'shop--db', 'shop--web', 'head', 'bot'];
const toRow = (name: string): Message[] =>
  pressed('g', ...Array.from({ length: ORDER.indexOf(name) }, () => 'j'));

it('the selection begins at the first service, whatever row comes first', () => {
  const lists: Message = { kind: 'lists', services: SHOP, agents: [] };
  const begun = initialModel({ columns: 80, rows: 12 }, NOW, '', '');
  const first = told(begun, lists)[0].selected;
  const [late] = told(begun, { kind: 'workloads', workloads: workloads(30) }, lists);
  expect([late.selected, late.top]).toEqual([first, 0]);
  // What a person has selected meanwhile stays.
  const [moved] = told(late, ...pressed('j', 'j'), lists);
  expect(moved.selected).toBe(told(late, ...pressed('j', 'j'))[0].selected);
});

describe('actions', () => {
  const target = (kind: string, name: string, label = name, isAsleep = false) => ({
    kind,
    name,
    label,
    isAsleep,
  });
  it.each<[row: string, key: string, effect: object | null, question: string | null]>([
    ['shop--web', 'x', { kind: 'act', action: 'stop', target: target('service', 'shop--web') }, null],
    ['shop--db', 's', { kind: 'act', action: 'start', target: target('service', 'shop--db') }, null],
    ['shop--db', 'r', { kind: 'act', action: 'restart', target: target('service', 'shop--db') }, null],
    ['alone', 'z', { kind: 'act', action: 'wake', target: target('service', 'alone', 'alone', true) }, null],
    ['shop--web', 'z', { kind: 'act', action: 'sleep', target: target('service', 'shop--web') }, null],
    ['shop--web', 'X', null, 'Stop shop--web and remove it with its logs?'],
    ['bot', 'x', null, 'stop bot? What it is doing ends.'],
    ['bot', 's', { kind: 'act', action: 'start', target: target('agent', 'bot') }, null],
    ['bot', 'a', { kind: 'attach', name: 'bot' }, null],
    ['shop--web', 'a', null, null],
    ['shop--web', 'l', { kind: 'openLog', selection: { title: 'shop--web', names: ['shop--web'] } }, null],
    ['shop--web', 'L', { kind: 'openLog', selection: { title: 'all services' } }, null],
    ['shop--web', 'Enter', { kind: 'readDetails', name: 'shop--web' }, null],
    ['shop--web', 'q', { kind: 'quit', code: 0 }, null],
    ['shop--web', 'C-c', { kind: 'quit', code: 130 }, null],
    ['shop--web', 'C-z', { kind: 'suspend' }, null],
  ])('%s, %s', (row, key, effect, question) => {
    const [model, ...effects] = told(withBot(), ...toRow(row), ...pressed(key));
    expect(effects).toEqual(effect === null ? [] : [effect]);
    const dialog = model.dialog?.kind === 'confirm' ? model.dialog.question : null;
    expect(dialog).toBe(question);
  });

  it('ask before a whole group is stopped, and need y as confirmation', () => {
    const head = toRow('shop--db').slice(0, -1);
    const [asked, ...none] = told(withBot(), ...head, ...pressed('x'));
    expect(none).toEqual([]);
    expect(screenOf(asked).join('\n')).toContain('stop all of shop?');
    expect(told(asked, ...pressed('j', 'x', 'Enter'))[0].dialog).not.toBeNull();
    expect(told(asked, ...pressed('n'))).toEqual([{ ...asked, dialog: null }]);
    const [, effect] = told(asked, ...pressed('y'));
    expect(effect).toMatchObject({ kind: 'act', action: 'stop', target: { kind: 'group', name: 'shop' } });
  });

  it.each<[what: string, services: Service[], keys: string[]]>([
    ['a search hides some of it', SHOP, ['/', ...'web', 'Enter', 'k']],
    ['a group has others', [...SHOP, serviceOf('other--web', { stack: 'other', group: 'shop' })], []],
    ['of agents', [...BOT, agentService('shop--bot')], []],
  ])('are none on a section that is no whole group: %s', (_what, services, keys) => {
    const [model] = told(showing(services), ...pressed('g'), ...pressed(...keys));
    const heads = model.rows.filter((row) => row.kind === 'head' && row.key !== '0');
    for (const { key: selected } of heads) {
      const [asked, ...effects] = told({ ...model, selected }, ...pressed('x'));
      expect([asked.dialog, effects]).toEqual([null, []]);
      expect(screenOf(asked).join('\n')).toContain('This section is not exactly one group');
    }
    expect(heads).not.toEqual([]);
  });

  it('on one marked service ask, because another one is selected', () => {
    const marked = told(withBot(), ...toRow('shop--db'), ...pressed(' '))[0];
    const [asked, ...none] = told(marked, ...pressed('r'));
    expect(none).toEqual([]);
    expect(asked.dialog).toMatchObject({ kind: 'confirm', question: 'restart shop--db?' });
    const [, ...started] = told(marked, ...pressed('s'));
    expect(started).toMatchObject([{ kind: 'act', action: 'start', target: { name: 'shop--db' } }]);
    const [removed] = told(marked, ...pressed('X'));
    expect(removed.dialog).toMatchObject({ question: 'Stop shop--db and remove it with its logs?' });
  });

  it('on several marked services ask once, apply to each, and clear the marks', () => {
    const [marked] = told(withBot(), ...toRow('shop--db'), ...pressed(' ', ' '));
    expect(marked.marked.size).toBe(2);
    expect(screenOf(marked).filter((line) => /^.\+/.test(line))).toHaveLength(2);
    expect(screenOf(marked).join('\n')).toContain('2 marked  Esc ends it');
    // The question is about what is marked, wherever the selected row is.
    const [asked, ...none] = told(marked, ...pressed('g', 'x'));
    expect(none).toEqual([]);
    expect(screenOf(asked).join('\n')).toContain('stop the 2 marked?');
    const [after, ...effects] = told(asked, ...pressed('y'));
    const target = (name: string) => ({ kind: 'service', name, label: name, isAsleep: false });
    expect(effects).toEqual(
      ['shop--db', 'shop--web'].map((name) => ({ kind: 'act', action: 'stop', target: target(name) })),
    );
    expect(after.marked.size).toBe(0);
    expect(told(marked, ...pressed('Escape'))[0].marked.size).toBe(0);
    // What a filter hides is not acted on.
    const [, ...shown] = told(marked, ...pressed('/', ...'web', 'Enter', 's'));
    expect(shown).toMatchObject([{ kind: 'act', action: 'start', target: { name: 'shop--web' } }]);
  });

  it('copy and open what is in view, and copy the line that was found or the last one', () => {
    const lastEffect = (...keys: string[]) => told(withBot(), ...toRow('shop--web'), ...pressed(...keys))[1];
    expect(lastEffect('y')).toEqual({ kind: 'copy', text: 'http://localhost:3000' });
    expect(lastEffect('u')).toEqual({ kind: 'openUrl', url: 'http://localhost:3000' });
    const at = '2026-01-02T03:04:05.000Z';
    const line = (text: string, offset: number): LogEntry => ({
      ...{ name: 'shop--web', at, run: 'r', stream: 'stdout', level: null },
      ...{ text, offset },
    });
    const entries = ['\x1b[31mred\x1b[0m error', 'calm', 'the \x1b]52;c;aGE=\x07 last'].map(line);
    const [open] = told(withBot(), ...toRow('shop--web'), ...pressed('l'), { kind: 'logged', entries });
    const [, last] = told(open, ...pressed('y'));
    expect(last).toMatchObject({ kind: 'copy', text: expect.stringMatching(/^the [^\x07\x1b]* last$/) });
    const [, found] = told(open, ...pressed('/', ...'red', 'Enter', 'y'));
    expect(found).toEqual({ kind: 'copy', text: 'red error' });
  });

  it('do nothing while the daemon is gone, and nothing twice at once', () => {
    const lost = {
      kind: 'connection',
      connection: { state: 'lost', detail: 'no daemon is running' },
    } as const;
    const [gone, ...effects] = told(withBot(), ...toRow('shop--web'), lost, ...pressed('x'));
    expect(effects).toEqual([]);
    expect(screenOf(gone).join('\n')).toContain('Nothing was done: the daemon is gone.');
    const begun = { kind: 'began', title: 'stop shop--web' } as const;
    expect(told(withBot(), ...toRow('shop--web'), begun, ...pressed('x')).slice(1)).toEqual([]);
  });
});

describe('the list', () => {
  it('keeps the selected row on its line while rows come and go above it', () => {
    const many = Array.from({ length: 100 }, (_, at) => serviceOf(`svc-${at}`));
    const model = told(showing(many), ...pressed(...Array.from({ length: 40 }, () => 'j')))[0];
    const lineOf = (shown: Model): number => screenOf(shown).findIndex((line) => line.startsWith('›'));
    const selected = must(screenOf(model)[lineOf(model)]);
    const more = Array.from({ length: 20 }, (_, at) => serviceOf(`a-${at}`));
    const grown = told(model, { kind: 'lists', services: [...more, ...many], agents: [] })[0];
    expect(lineOf(grown)).toBe(lineOf(model));
    expect(screenOf(grown)[lineOf(grown)]).toBe(selected);
  });

  it('selects the row that takes the place of a removed one', () => {
    const model = told(showing(SHOP), ...toRow('shop--db'))[0];
    expect(model.selected).toBe('service shop--db');
    const without = SHOP.filter(({ name }) => name !== 'shop--db');
    expect(told(model, { kind: 'lists', services: without, agents: [] })[0].selected).toBe(
      'service shop--web',
    );
    expect(told(model, { kind: 'lists', services: [], agents: [] })[0].selected).toBe('');
  });

  it('filters while text is typed, and Escape restores the earlier filter', () => {
    const typing = told(withBot(), ...pressed('/', 'w', 'e', 'b'))[0];
    expect(typing.rows.map(({ key }) => key)).toEqual(['0shop', 'service shop--web']);
    expect(told(typing, ...pressed('Enter'))[0]).toMatchObject({ filter: 'web', dialog: null });
    expect(told(typing, ...pressed('Escape'))[0]).toMatchObject({ filter: '', dialog: null });
    expect(screenOf(told(typing, ...pressed('x', 'Enter'))[0]).join('\n')).toContain('Nothing matches webx');
    // By the state of an agent, which is not that of its process.
    const byState = told(withBot(), ...pressed('/', ...'blocked'))[0];
    expect(byState.rows.map(({ key }) => key)).toEqual(['1Agents', 'service bot']);
  });

  it('selects a row that a filter finds, and never a section heading by itself', () => {
    const filtered = told(withBot(), ...pressed('g', '/', ...'db', 'Enter'))[0];
    expect(filtered.selected).toBe('service shop--db');
    const [, effect] = told(filtered, ...pressed('s'));
    expect(effect).toMatchObject({ action: 'start', target: { kind: 'service', name: 'shop--db' } });
    // A filter that still finds the selected one leaves it selected.
    expect(told(filtered, ...pressed('/', 'C-u', ...'shop', 'Enter'))[0].selected).toBe('service shop--db');
    // The last one of a section is removed: the one before it is selected, and not the next section.
    const last = told(withBot(), ...toRow('shop--web'))[0];
    const without = [...SHOP, ...BOT].filter(({ name }) => name !== 'shop--web');
    expect(told(last, { kind: 'lists', services: without, agents: [] })[0].selected).toBe('service shop--db');
  });

  it('orders by name, state, CPU and memory, and those agents first that have waited longest', () => {
    const services = ['a', 'b', 'c'].map((name) =>
      serviceOf(name, name === 'c' ? { status: 'crashed' } : {}),
    );
    const agents = ['idle', 'late', 'early'].map((name) =>
      agentOf(name, {
        state: name === 'idle' ? 'idle' : 'blocked',
        stateSince: `2026-01-02T0${name === 'early' ? 1 : 2}:00:00.000Z`,
        question: [`May I, says ${name}?`],
      }),
    );
    const usages = new Map([
      ['a', { cpu: 0.1, rssMB: 9 }],
      ['b', { cpu: 0.2, rssMB: 5 }],
    ]);
    const all = [...services, ...agents.map(({ name }) => agentService(name))];
    const model = told(showing(all, { agents }), { kind: 'usages', usages })[0];
    const orderOf = (shown: Model): string =>
      shown.rows.flatMap((row) => (row.kind === 'service' ? [row.service.name] : [])).join(' ');
    const orders = [0, 1, 2, 3, 4].map((times) =>
      orderOf(told(model, ...pressed(...Array.from({ length: times }, () => 'o')))[0]),
    );
    expect(orders).toEqual(
      ['a b c', 'c a b', 'b a c', 'a b c', 'a b c'].map((first) => `${first} early late idle`),
    );
    const more = new Map([['c', { cpu: 3, rssMB: 1 }]]);
    const moved = told(model, ...pressed('o', 'o'), { kind: 'usages', usages: more })[0];
    expect(orderOf(moved)).toBe('c b a early late idle');
    expect(screenOf(told(model, ...pressed('G', 'k', 'k'))[0]).join('\n')).toContain('May I, says early?');
  });

  it('shows what a filter finds in a folded section too', () => {
    const folded = told(withBot(), ...toRow('shop--db').slice(0, -1), ...pressed(' '))[0];
    const found = told(folded, ...pressed('/', ...'web', 'Enter'))[0];
    expect(found.rows.map(({ key }) => key)).toEqual(['0shop', 'service shop--web']);
    expect(told(found, ...pressed('Escape'))[0].rows).toHaveLength(folded.rows.length);
  });

  it('jumps to what needs attention, and folds sections', () => {
    const model = withBot();
    expect(told(model, ...pressed('g', 'n'))[0].selected).toBe('service shop--db');
    expect(told(model, ...pressed('g', 'n', 'n'))[0].selected).toBe('service bot');
    expect(told(model, ...pressed('g', 'n', 'n', 'n'))[0].selected).toBe('service shop--db');
    const folded = told(model, ...toRow('shop--db').slice(0, -1), ...pressed(' '))[0];
    expect(folded.rows).toHaveLength(model.rows.length - 2);
    expect(told(folded, ...pressed(' '))[0].rows).toHaveLength(model.rows.length);
  });

  it('says that a service with open details is gone', () => {
    const open = told(showing(SHOP), ...toRow('shop--db'), ...pressed('Enter'))[0];
    const gone = told(open, { kind: 'lists', services: [], agents: [] })[0];
    expect(screenOf(gone).join('\n')).toContain('shop--db is not registered any more.');
    expect(told(gone, ...pressed('s')).slice(1)).toEqual([]);
    expect(told(gone, ...pressed('q'))[0].views).toEqual([{ kind: 'list' }]);
  });
});

describe('pasted text', () => {
  const paste = (text: string, isCut = false): Message => ({ kind: 'paste', text, isCut });
  it('is not read as keys', () => {
    const [model, ...effects] = told(withBot(), ...toRow('bot'), paste('xyq\n'));
    expect(effects).toEqual([]);
    expect(screenOf(model).join('\n')).toContain('nothing was done');
  });

  it('becomes the text of a prompt with all its lines', () => {
    const asked = told(withBot(), ...toRow('bot'), ...pressed('p'))[0];
    const [, effect] = told(asked, ...pressed('a'), paste('b\r\nc'), ...pressed('Enter'));
    expect(effect).toEqual({ kind: 'prompt', name: 'bot', text: 'ab\nc' } satisfies Effect);
    const [refused, ...none] = told(asked, paste('x\x1b[2J'), ...pressed('Enter'));
    expect(none).toEqual([]);
    expect(refused.dialog).toMatchObject({ text: 'x\x1b[2J' });
    expect(told(asked, paste('long', true))[0].dialog).toMatchObject({ text: '' });
  });
});

describe('a log', () => {
  const line = (at: number): LogEntry => ({
    name: 'alone',
    run: 'r',
    at: '2026-01-02T03:04:05.000Z',
    stream: 'stdout',
    level: null,
    text: `line ${at} of many`,
    offset: at,
  });
  const lines = (from: number, count: number) => Array.from({ length: count }, (_, at) => line(from + at));
  const logged = (from: number, count: number): Message => ({ kind: 'logged', entries: lines(from, count) });
  const open = (): Model => told(showing(SHOP), ...toRow('alone'), ...pressed('l'), logged(0, 100))[0];
  const body = (model: Model): string[] => screenOf(model).slice(3, -2);

  it('follows, stays where it is while it is paused, and follows again', () => {
    const model = open();
    expect(body(model).at(-1)).toContain('line 99 of many');
    const paused = told(model, ...pressed('k'))[0];
    expect(body(told(paused, logged(100, 50))[0])).toEqual(body(paused));
    const again = told(paused, logged(100, 50), ...pressed('G'))[0];
    expect(body(again).at(-1)).toContain('line 149 of many');
    expect(body(told(again, logged(150, 1))[0]).at(-1)).toContain('line 150 of many');
  });

  it('keeps the visible lines in place when the oldest lines are dropped', () => {
    const paused = told(open(), logged(100, MAX_LOG_ENTRIES - 100), ...pressed('PageUp', 'PageUp'))[0];
    const grown = told(paused, logged(MAX_LOG_ENTRIES, 500))[0];
    expect(body(grown)).toEqual(body(paused));
  });

  it('finds a text, from match to match', () => {
    const found = told(open(), ...pressed('g', '/', ...'LINE 7', 'Enter'))[0];
    expect(body(found).find((text) => text.startsWith('›'))).toContain('line 7 of');
    expect(body(told(found, ...pressed('n'))[0]).find((text) => text.startsWith('›'))).toContain(
      'line 70 of',
    );
    // Before the first one, all that is kept is searched; after the newest one there is nothing.
    const [asking, effect] = told(found, ...pressed('N'));
    expect(effect).toMatchObject({
      kind: 'readLog',
      reading: { kind: 'find', direction: -1, search: 'LINE 7' },
    });
    expect(screenOf(asking).join('\n')).toContain('searching…');
    const last = told(open(), ...pressed('/', ...'line 99', 'Enter', 'n'))[0];
    expect(screenOf(last).join('\n')).toContain('No newer line has line 99');
  });

  const readOf = (model: Model, page: LogPageRead): Message => {
    const view = viewOf(model);
    if (view.kind !== 'log') throw new Error('no log is open');
    return { kind: 'logRead', selection: view.log.selection, reading: view.log.reading ?? 'find', page };
  };

  it('shows a line found in the past with its context, and continues from there', () => {
    const long = told(open(), logged(100_000, 10))[0];
    const [asking] = told(long, ...pressed('/', ...'of old', 'Enter'));
    const old = lines(5_000, 100).map((entry, at) =>
      'text' in entry && at === 50 ? { ...entry, text: 'of old' } : entry,
    );
    const key = entryKey(must(old[50]));
    const page = { kind: 'found', entries: old, cursor: 'c', found: key } as const;
    const [found, effect] = told(asking, readOf(asking, page));
    expect(effect).toEqual({ kind: 'detachLog' });
    expect(body(found).find((text) => text.startsWith('›'))).toContain('of old');
    expect(screenOf(found).join('\n')).toContain('in the past');
    // What comes is not added after lines of long ago.
    expect(body(told(found, logged(100_010, 5))[0])).toEqual(body(found));
    const [, newer] = told(found, ...pressed('PageDown'));
    expect(newer).toMatchObject({ kind: 'readLog', reading: { kind: 'newer' } });
    const [, again] = told(found, ...pressed('G'));
    expect(again).toMatchObject({ kind: 'openLog', selection: { names: ['alone'] } });
    // An answer for the log as it was before is dropped.
    expect(told(found, ...pressed('G'), readOf(asking, page))[0]).toEqual(told(found, ...pressed('G'))[0]);
    const missed = readOf(asking, { kind: 'nothing', reason: 'No older line has of old' });
    expect(screenOf(told(asking, missed)[0]).join('\n')).toContain('No older line has of old');
  });

  it('loads older lines at its beginning, one request at a time, and shows no line twice', () => {
    const [top, effect] = told(open(), ...pressed('g'));
    expect(effect).toMatchObject({ kind: 'readLog', reading: { kind: 'older', cursor: null } });
    expect(told(top, ...pressed('k', 'PageUp')).slice(1)).toEqual([]);
    const older = { kind: 'older', entries: [...lines(-50, 50), ...lines(0, 3)], cursor: 'c' } as const;
    const grown = told(top, readOf(top, older))[0];
    expect(body(grown)[0]).toContain('line 0 of');
    expect(screenOf(grown).join('\n')).toContain('150 lines');
    expect(body(told(grown, ...pressed('k'))[0])[0]).toContain('line -1 of');
    expect(told(grown, ...pressed('g'))[1]).toMatchObject({ reading: { kind: 'older', cursor: 'c' } });
    // Only lines of one millisecond: the next page is asked for at once.
    const same = { kind: 'older', entries: lines(0, 3), cursor: 'd' } as const;
    expect(told(top, readOf(top, same))[1]).toMatchObject({ reading: { kind: 'older', cursor: 'd' } });
    const end = { kind: 'older', entries: [], cursor: null } as const;
    expect(told(grown, ...pressed('g'), readOf(grown, end), ...pressed('g')).slice(1)).toEqual([]);
  });

  it('drops lines far from the visible ones, and follows again at the end', () => {
    const full = told(open(), logged(100, MAX_LOG_ENTRIES - 100), ...pressed('g'))[0];
    const older = { kind: 'older', entries: lines(-1_000, 1_000), cursor: null } as const;
    const [back, detach] = told(full, readOf(full, older));
    expect(detach).toEqual({ kind: 'detachLog' });
    const atEnd = told(back, ...Array.from({ length: 300 }, () => pressed('PageDown')).flat())[0];
    expect(body(atEnd).at(-1)).toContain(`line ${MAX_LOG_ENTRIES - 1_001} of`);
    const newer = { kind: 'newer', entries: lines(MAX_LOG_ENTRIES - 1_001, 1_500), lastId: 'x' } as const;
    const [ahead, follow] = told(atEnd, readOf(atEnd, newer));
    expect(follow).toMatchObject({ kind: 'openLog', after: 'x' });
    expect(screenOf(ahead).join('\n')).toContain('5000 lines');
    expect(body(ahead)).toEqual(body(atEnd));
    expect(body(told(ahead, ...pressed('G'))[0]).at(-1)).toContain(`line ${MAX_LOG_ENTRIES + 498} of`);
  });

  it('keeps the visible lines while it is paused, however many lines arrive', () => {
    const paused = told(open(), ...pressed('g'))[0];
    const [flooded, effect] = told(paused, logged(100, MAX_LOG_ENTRIES));
    expect(effect).toEqual({ kind: 'detachLog' });
    expect(body(flooded)).toEqual(body(paused));
  });

  it('shows only lines with a text, or of a level, with a new request', () => {
    const [only, effect] = told(open(), ...pressed('w', 'f', ...'GET', 'Enter'));
    expect(effect).toMatchObject({ kind: 'openLog', selection: { names: ['alone'], q: 'GET' } });
    expect(screenOf(only).join('\n')).toContain('only GET');
    expect(viewOf(only)).toMatchObject({ log: { isWrapped: true, entries: [] } });
    const levels = [1, 2, 3].map((times) => {
      const [, opened] = told(only, ...pressed(...Array.from({ length: times }, () => 'e')));
      return opened?.kind === 'openLog' ? [opened.selection.level, opened.selection.q] : null;
    });
    expect(levels).toEqual([
      ['warn', 'GET'],
      ['error', 'GET'],
      [undefined, 'GET'],
    ]);
    const [, all] = told(only, ...pressed('f', 'C-u', 'Enter'));
    expect(all?.kind === 'openLog' && all.selection.q).toBeUndefined();
  });

  it('is closed with its view', () => {
    expect(told(open(), ...pressed('Escape')).slice(1)).toEqual([{ kind: 'closeLog' }]);
  });
});
