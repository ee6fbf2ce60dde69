// docs/reference.md "Logs of many services"

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { mergeAnswers } from '../../../src/front/api/handlers/log_search.ts';
import { LogWriter } from '../../../src/logs/writer.ts';
import type { LogSearchAnswer } from '../../../src/protocol/logs.ts';
import type { StacksProtocol } from '../../../src/protocol/stacks.ts';
import { expectError, specRow, startFront } from '../kit.ts';

let stateDir = '';
beforeEach(() => {
  stateDir = mkdtempSync(join(tmpdir(), 'berth-front-logs-'));
});
afterEach(() => rmSync(stateDir, { recursive: true, force: true }));

const RUN = '00000000000000a1';
const agent = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
const HOUR_MS = 3_600_000;

function print(name: string, at: number, ...lines: string[]): void {
  const writer = new LogWriter(join(stateDir, 'logs', name), { maxBytes: 1e6, keep: 5 }, () => at);
  for (const line of lines) writer.append(1, RUN, Buffer.from(`${line}\n`));
  writer.close();
}

async function frontWithLogs() {
  const front = await startFront({
    daemonInfo: {
      version: '1.2.3',
      pid: 42,
      startedAt: 0,
      stateDir,
      gatewayPort: null,
      agentDomain: 'agents.localhost',
    },
  });
  const rows = [specRow('web'), specRow('shop--api', { stack: 'shop' }), specRow('bot', { agent })];
  await front.views.ask('specs', { rows });
  const texts = async (query: string): Promise<string[]> => {
    const { status, body } = await front.request('GET', `/v1/logs${query}`);
    expect(status).toBe(200);
    return (body as { lines: { text: string }[] }).lines.map(({ text }) => text);
  };
  return { ...front, texts };
}

describe('GET /v1/logs', () => {
  it('merges the lines of services, oldest first, and leaves out agents unless they are named', async () => {
    const now = Date.now();
    print('web', now - 2 * HOUR_MS, 'old');
    print('shop--api', now - HOUR_MS, 'between');
    print('web', now - 1_000, 'new');
    print('bot', now, 'agent');
    const { texts } = await frontWithLogs();
    expect(await texts('')).toEqual(['old', 'between', 'new']);
    expect(await texts('?names=bot,web')).toEqual(['old', 'new', 'agent']);
    expect(await texts('?agents=true&limit=2')).toEqual(['new', 'agent']);
    expect(await texts('?stack=shop')).toEqual(['between']);
    expect(await texts('?since=90m&until=30m')).toEqual(['between']);
    expect(await texts(`?since=${new Date(now - 90 * 60_000).toISOString()}`)).toEqual(['between', 'new']);
    expect(await texts('?q=NEW')).toEqual(['new']);
  });

  it('refuses an unknown stack, and accepts one without services', async () => {
    const { stand, request } = await frontWithLogs();
    const empty = { name: 'empty', project: 'empty', path: '/', worktree: null, branch: null };
    await stand<StacksProtocol>('stacks', {
      list: () => ({ stacks: [{ ...empty, isNamed: false, gone: false }] }),
    });
    expect(await request('GET', '/v1/logs?stack=empty')).toMatchObject({ status: 200, body: { lines: [] } });
    for (const path of ['/v1/logs?stack=shpo', '/v1/logs/stream?stack=shpo'])
      expect(await request('GET', path)).toMatchObject({
        status: 404,
        body: { code: 'unknown_stack', message: 'there is no stack shpo' },
      });
  });

  it('returns older lines page by page', async () => {
    print('web', Date.now(), ...Array.from({ length: 10 }, (_, at) => `line ${at}`));
    const { request } = await frontWithLogs();
    const pages: string[][] = [];
    for (let before: string | null = ''; before !== null; ) {
      const query: string = before === '' ? '' : `&before=${before}`;
      const { body } = await request('GET', `/v1/logs?limit=4${query}`);
      const page = body as { lines: { text: string }[]; before: string | null };
      pages.push(page.lines.map(({ text }) => text));
      before = page.before;
    }
    expect(pages.filter((page) => page.length > 0)).toEqual([
      ['line 6', 'line 7', 'line 8', 'line 9'],
      ['line 2', 'line 3', 'line 4', 'line 5'],
      ['line 0', 'line 1'],
    ]);
  });

  it('reports every wrong value', async () => {
    const { request } = await frontWithLogs();
    expectError(await request('GET', '/v1/logs?names=nobody'), 'unknown_service');
    const wrong = ['since=yesterday', 'until=-5m', 'run=first', 'q=', 'level=loud', 'before=x', 'regex=('];
    for (const query of [...wrong, `q=${'x'.repeat(257)}`]) {
      const answer = await request('GET', `/v1/logs?names=web&${query}`);
      expectError(answer, 'invalid_spec');
      expect(answer.body).toMatchObject({ details: [{ path: query.split('=')[0] }] });
    }
    const many = await request('GET', '/v1/logs?since=x&until=y&run=z');
    expect(many.body).toMatchObject({ details: [{ path: 'run' }, { path: 'since' }, { path: 'until' }] });
  });
});

describe('the results of parts of the logs', () => {
  const answer = (name: string, times: number[], bound: number | null): LogSearchAnswer => ({
    entries: times.map((time) => ({ name, key: 2 * time + 1, time, json: `${name} ${time}`, isLine: true })),
    taken: [{ name, key: 0 }],
    bound,
  });

  it('are merged as far back as every part has been searched', () => {
    const page = mergeAnswers([answer('a', [9, 5, 3], null), answer('b', [8], 6)], 10);
    expect(page.entries.map(({ json }) => json)).toEqual(['a 9', 'b 8']);
    expect(page.bound).toBe(6);
    expect(page.taken).toEqual(
      new Map([
        ['a', 12],
        ['b', 0],
      ]),
    );
  });

  it('have marks at one position where their times belong, and lines of other logs in between', () => {
    const mark = (name: string, key: number, time: number) => ({
      ...{ name, key, time, json: `${name} ${time}` },
      isLine: false,
    });
    const line = (name: string, key: number, time: number) => ({ ...mark(name, key, time), isLine: true });
    // The run of a that ended at 3 was followed at 8 by another one, and neither printed anything in between.
    const marked = {
      entries: [mark('a', 4, 8), mark('a', 4, 3), line('a', 3, 2), mark('a', 0, 1)],
      taken: [{ name: 'a', key: 0 }],
      bound: null,
    };
    const page = mergeAnswers([marked, answer('b', [7, 5, 2.5], null)], 10);
    expect(page.entries.map(({ json }) => json)).toEqual(['a 8', 'b 7', 'b 5', 'a 3', 'b 2.5', 'a 2', 'a 1']);
    // They are never divided between pages, as one key stands for all of them.
    const short = mergeAnswers([marked, answer('b', [7, 5, 2.5], null)], 1);
    expect(short.entries.map(({ json }) => json)).toEqual(['a 8', 'b 7', 'a 3']);
    expect(short.taken.get('a')).toBe(4);
  });

  it('continue from the first line that a page has no room for', () => {
    const page = mergeAnswers([answer('a', [9, 5], null), answer('b', [8, 7], null)], 3);
    expect(page.entries.map(({ json }) => json)).toEqual(['a 9', 'b 8', 'b 7']);
    expect(page.taken.get('a')).toBe(12);
    expect(page.bound).toBe(5);
  });
});
