// Waits for what agents are doing, and prompts, over HTTP: docs/reference.md "Waiting for agents", "Prompt".
import http from 'node:http';
import { describe, expect, it } from 'vitest';
import type { AgentStateName, AgentStatus } from '../../../src/protocol/agent_state.ts';
import { fail } from '../../../src/protocol/errors.ts';
import type { PromptProtocol } from '../../../src/protocol/prompts.ts';
import { actor } from '../../../src/runtime/actor.ts';
import { PROMPT } from '../../../src/settings/agent_limits.ts';
import { afterThisTest, realTime, settle, type TestClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import { expectError, type FrontSetup, runningState, SERVERS, specRow, startFront } from '../kit.ts';

const AGENT = { agentType: null, hostname: 'bot.agents.localhost', cols: 80, rows: 24 };
const status = (name: string, state: AgentStateName): AgentStatus => ({
  ...{ name, state, since: Date.UTC(2030, 0, 1), title: '', lastOutputAt: null, viewers: 0, sessionId: null },
  reason: { authority: 'screen', rule: 'rule' },
  question: state === 'blocked' ? ['Delete?'] : [],
});

describe.each(SERVERS)('the wait for agents, by %s,', (server) => {
  const start = async (setup: FrontSetup = {}) => {
    const front = await startFront({ server, ...setup });
    const rows = ['one', 'two'].map((name) => specRow(name, { agent: AGENT, group: 'Agents' }));
    front.views.tell('specs', { rows: [...rows, specRow('web')] });
    front.views.tell('states', { rows: [runningState('one', 5), runningState('two', 6)] });
    const become = async (name: string, state: AgentStateName) => {
      front.views.tell('agents', { rows: [status(name, state)] });
      await settle();
    };
    await become('one', 'working');
    await become('two', 'working');
    /** Asks, and resolves when the request has arrived. */
    const ask = async (path: string) => {
      const answer = front.request('GET', path);
      const other = front.request('GET', '/v1/version');
      await other;
      await settle();
      return answer.then(({ status: code, body }) =>
        code === 200 ? (body.agents ?? [body]).map((row: AgentStatus) => `${row.name} ${row.state}`) : body,
      );
    };
    /** A request whose client goes away without an answer. */
    const goAway = (method: string, path: string, body = '') =>
      new Promise<() => void>((resolve) => {
        const headers = body ? { 'content-type': 'application/json', 'content-length': body.length } : {};
        const sent = http.request({
          host: '127.0.0.1',
          port: front.port,
          method,
          path,
          headers,
          agent: false,
        });
        sent.on('error', () => {});
        afterThisTest(() => void sent.destroy());
        sent.on('socket', (socket) => socket.on('connect', () => resolve(() => void socket.destroy())));
        sent.end(body);
      });
    return { front, become, ask, goAway };
  };

  it('answers when an agent is in one of the states', async () => {
    const { front, become, ask } = await start();
    const waits = ask('/v1/agents/one/wait?for=idle,blocked');
    await become('one', 'blocked');
    expect(await (await Promise.all([waits]))[0]).toEqual(['one blocked']);
    const { body } = await front.request('GET', '/v1/agents/one/wait');
    expect(body).toMatchObject({ state: 'blocked', question: ['Delete?'], stateReason: { rule: 'rule' } });
  });

  it('answers for any of many, and for all at the same time', async () => {
    const { become, ask } = await start();
    const [any, all, named] = [
      ask('/v1/agents/wait?for=idle'),
      ask('/v1/agents/wait?for=idle&mode=all'),
      ask('/v1/agents/wait?names=two,two&for=idle&mode=all'),
    ];
    await settle();
    await become('one', 'idle');
    expect(await any).toEqual(['one idle', 'two working']);
    await become('one', 'working');
    await become('two', 'idle');
    expect(await named).toEqual(['two idle']);
    await become('one', 'idle');
    expect(await all).toEqual(['one idle', 'two idle']);
  });

  it('returns their states when the time is over', async () => {
    const { front } = await start();
    const answer = await front.request('GET', '/v1/agents/wait?for=idle&timeout=20');
    expectError(answer, 'wait_timeout');
    expect(answer.body.message).toBe('after 20 ms one is working, two is working');
  });

  it('refuses invalid parameters', async () => {
    const { front } = await start();
    for (const query of ['for=asleep,dead', 'for=', 'timeout=-1', 'mode=any', 'until=idle'])
      expectError(await front.request('GET', `/v1/agents/one/wait?${query}`), 'invalid_spec');
    for (const query of ['mode=some', 'names='])
      expectError(await front.request('GET', `/v1/agents/wait?${query}`), 'invalid_spec');
    for (const path of ['/v1/agents/web/wait', '/v1/agents/wait?names=one,web', '/v1/agents/none/wait'])
      expectError(await front.request('GET', path), 'unknown_agent');
  });

  it('ends when the agent is removed, and when the daemon ends', async () => {
    const { front, ask } = await start();
    const removed = ask('/v1/agents/one/wait');
    const ended = ask('/v1/agents/two/wait');
    await settle();
    front.views.tell('removed', { name: 'one' });
    expect(await removed).toMatchObject({ code: 'unknown_agent' });
    await front.front.close();
    expect(await ended).toMatchObject({ code: 'daemon_busy' });
  });

  it('keeps nothing for a client that has disconnected', async () => {
    let waiting = 0;
    const clock: TestClock = {
      ...realTime,
      after: (ms, callback) => {
        const isWait = ms === PROMPT.defaultTimeoutMs;
        if (isWait) waiting += 1;
        const cancel = realTime.after(ms, callback);
        return () => {
          if (isWait) waiting -= 1;
          cancel();
        };
      },
    };
    const { front, goAway } = await start({ clock });
    const leave = await goAway('GET', '/v1/agents/one/wait');
    await eventually(() => waiting === 1);
    leave();
    await eventually(() => waiting === 0);
    expect(front.defects).toEqual([]);
  });

  it('passes a prompt on with its defaults', async () => {
    const { front } = await start();
    const service = await front.stand<PromptProtocol>('service:one', {
      prompt: () => ({ status: status('one', 'working'), lines: null }),
    });
    const answer = await front.request('POST', '/v1/agents/one/prompt', { body: { text: 'hi' } });
    expect(answer.body).toMatchObject({ name: 'one', state: 'working', lines: null });
    expect(await service.next('prompt')).toMatchObject({
      ...{ text: 'hi', pid: null, wait: null, queue: false, timeoutMs: PROMPT.defaultTimeoutMs },
    });
  });

  it('cancels a prompt when its client has disconnected', async () => {
    const { front, goAway } = await start();
    const heard: string[] = [];
    let release = (): void => {};
    const waiting = actor<PromptProtocol, null>('waiting', (context) => ({
      prompt: ({ id }) => {
        heard.push(id);
        const over = new Promise<void>((resolve) => {
          release = resolve;
        });
        return context.replyLater(over.then(() => ({ status: status('one', 'idle'), lines: null })));
      },
      cancelPrompt: ({ id }) => {
        heard.push(`not ${id}`);
        release();
        return null;
      },
    }));
    await front.start('service:one', waiting, null);
    const leave = await goAway('POST', '/v1/agents/one/prompt', '{"text":"later","queue":true}');
    await eventually(() => heard.length === 1);
    leave();
    await eventually(() => heard.length === 2);
    expect(heard[1]).toBe(`not ${heard[0]}`);
  });

  it('reports what is wrong with a prompt, without suggesting a retry', async () => {
    const { front } = await start();
    const service = await front.stand<PromptProtocol>('service:one');
    const prompt = (body: unknown, name = 'one') =>
      front.request('POST', `/v1/agents/${name}/prompt`, { body });
    for (const body of [
      {},
      { text: '' },
      { text: 7 },
      { text: 'a\x1b[201~' },
      { text: 'x'.repeat(PROMPT.maxBytes + 1) },
      { text: 'x', wait: 'blocked' },
      { text: 'x', wait: true },
      { text: 'x', queue: 'yes' },
      { text: 'x', timeout: -1 },
      { text: 'x', enter: false },
    ])
      expectError(await prompt(body), 'invalid_spec');
    expectError(await prompt({ text: 'x' }, 'web'), 'unknown_agent');
    const details = [{ path: 'question', message: 'Delete?' }];
    service.answer({
      prompt: () => {
        throw fail('agent_blocked', 'one waits for an answer', { details });
      },
    });
    expect((await prompt({ text: 'x' })).body).toMatchObject({ code: 'agent_blocked', details });
    front.views.tell('states', { rows: [{ ...runningState('one', 5), process: null }] });
    await settle();
    expectError(await prompt({ text: 'x' }), 'not_running');
    // Its actor is on no thread: whether it was typed is not known.
    expectError(await prompt({ text: 'x' }, 'two'), 'agent_stalled');
  });
});
