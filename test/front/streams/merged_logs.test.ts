// docs/reference.md "Logs of many services": the logs are real files, the clients are real, the services that
// give notice are stand-ins.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { connect } from '../../../src/client/index.ts';
import type { LogStreamOptions, StreamedLogEntry } from '../../../src/client/methods/logs.ts';
import { LogWriter } from '../../../src/logs/writer.ts';
import type { ServiceProtocol } from '../../../src/protocol/service.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { expectError, runningState, SERVERS, specRow, sse, startFront, stateRow } from '../kit.ts';

const RUN = '00000000000000a1';

async function startLogged(server: (typeof SERVERS)[number]) {
  const stateDir = mkdtempSync(join(tmpdir(), 'berth-merged-'));
  afterThisTest(() => rmSync(stateDir, { recursive: true, force: true }));
  const front = await startFront({
    server,
    daemonInfo: {
      version: '1.2.3',
      pid: 42,
      startedAt: 0,
      stateDir,
      gatewayPort: null,
      agentDomain: 'agents.localhost',
    },
  });
  const writers = new Map<string, LogWriter>();
  const print = (name: string, text: string, run = RUN) => {
    const writer =
      writers.get(name) ??
      new LogWriter(join(stateDir, 'logs', name), { maxBytes: 2_000, keep: 1_000 }, () => Date.now());
    writers.set(name, writer);
    writer.append(1, run, Buffer.from(text));
    front.views.tell('grew', { name });
  };
  afterThisTest(() => {
    for (const writer of writers.values()) writer.close();
  });
  const add = async (name: string) => {
    await front.views.ask('specs', { rows: [specRow(name)] });
    const service = await front.stand<ServiceProtocol>(`service:${name}`, { follow: () => null });
    await front.views.ask('states', { rows: [runningState(name, 5)] });
    return service;
  };
  const client = connect({ url: `http://127.0.0.1:${front.port}` });
  /** The entries of a stream, as they come. */
  const follow = (options: LogStreamOptions = {}) => {
    const got: StreamedLogEntry[] = [];
    const ended = new AbortController();
    let isOpen = false;
    const onState = (state: { open: boolean }) => {
      isOpen = state.open;
    };
    const done = (async () => {
      const signal = ended.signal;
      for await (const entry of client.streamLogs({ ...options, onState, signal })) got.push(entry);
    })();
    afterThisTest(async () => {
      ended.abort();
      await done;
    });
    const texts = () => got.map((entry) => ('text' in entry ? entry.text : entry.event));
    return {
      got,
      texts,
      done,
      open: () => eventually(() => isOpen),
      has: (count: number) => eventually(() => got.length >= count).then(texts),
      stop: async () => {
        ended.abort();
        await done;
      },
    };
  };
  return { ...front, add, print, follow };
}

describe.each(SERVERS)('a stream of many logs of %s', (server) => {
  it('shows the lines of all services as they are written, and of services added later', async () => {
    const { add, print, follow } = await startLogged(server);
    const web = await add('web');
    print('web', 'before\n');
    const stream = follow();
    await stream.open();
    expect(await web.next('follow')).toEqual({ on: true });
    print('web', 'one\n');
    expect(await stream.has(1)).toEqual(['one']);
    await add('api');
    print('api', 'two\n');
    print('web', 'thr');
    print('web', 'ee\n');
    expect((await stream.has(3)).sort()).toEqual(['one', 'three', 'two']);
    await stream.stop();
    expect(await web.next('follow')).toEqual({ on: false });
  });

  it('continues after any entry, without loss or repetition', async () => {
    const { add, print, follow } = await startLogged(server);
    await add('web');
    await add('api');
    const first = follow();
    await first.open();
    for (let at = 0; at < 20; at += 1) print(at % 2 ? 'web' : 'api', `line ${at}\n`);
    const all = await first.has(20);
    await first.stop();
    const { id } = first.got[7] ?? { id: '' };
    const rest = follow({ lastEventId: id });
    print('web', 'later\n');
    expect(await rest.has(13)).toEqual([...all.slice(8), 'later']);
    // A relative `since` has moved on when a client repeats it. Here by more than there is.
    const since = new Date(Date.now() + 60_000).toISOString();
    const repeated = follow({ lastEventId: id, since, follow: false });
    await repeated.done;
    expect(repeated.texts()).toEqual([...all.slice(8), 'later']);
  });

  it('continues with the run that was counted at its beginning, however many have begun since', async () => {
    const { add, print, follow } = await startLogged(server);
    await add('web');
    await add('api');
    print('web', 'before\n', 'fedcba9876543210');
    print('web', 'one\n', '00000000000000a2');
    print('api', 'api one\n', 'a000000000000003');
    const first = follow({ run: '1', since: '1h' });
    expect((await first.has(2)).sort()).toEqual(['api one', 'one']);
    await first.stop();
    const lastEventId = first.got.at(-1)?.id;
    print('web', 'two\n', '00000000000000a2');
    print('web', 'of the next run\n', '00000000000000a4');
    print('web', 'and of another\n', '00000000000000a5');
    print('api', 'api two\n', 'a000000000000003');
    const rest = follow({ run: '1', lastEventId, follow: false });
    await rest.done;
    expect(rest.texts().sort()).toEqual(['api two', 'two']);
    const last = follow({ run: '1', lastEventId: rest.got.at(-1)?.id });
    await last.open();
    print('web', 'not this\n', '00000000000000a5');
    print('api', 'api three\n', 'a000000000000003');
    expect(await last.has(1)).toEqual(['api three']);
  });

  it('filters, begins with past lines, and ends on request', async () => {
    const { add, print, follow } = await startLogged(server);
    await add('web');
    for (let at = 0; at < 50; at += 1) print('web', `${at % 10 === 0 ? 'WARN' : 'INFO'} ${at}\n`);
    const last = follow({ limit: 2, level: 'warn', follow: false });
    await last.done;
    expect(last.texts()).toEqual(['WARN 30', 'WARN 40']);
    const since = follow({ since: '1h', regex: ' 1.$', follow: false });
    await since.done;
    expect(since.texts()).toHaveLength(10);
  });

  it('ends with the last of the services that are named, and refuses wrong values', async () => {
    const { add, follow, request, views, port } = await startLogged(server);
    await add('web');
    const stream = await sse(port, '/v1/logs/stream?names=web');
    await views.ask('states', { rows: [stateRow('web')] });
    await views.ask('removed', { name: 'web' });
    await stream.closed;
    expectError(await request('GET', '/v1/logs/stream?names=web'), 'unknown_service');
    expectError(await request('GET', '/v1/logs/stream?lastEventId=x'), 'invalid_spec');
    expectError(await request('GET', '/v1/logs/stream?regex=('), 'invalid_spec');
    // Without names it waits for services.
    await follow().open();
  });
});
