// The model of the tests, asked as each of the agents asks it.
import { describe, expect, it } from 'vitest';
import { type ModelServer, modelServer } from './model_server.ts';

/** A request of a conversation as each interface has it, and where the tool `shell` is offered. */
const ASKED = {
  responses: {
    path: '/v1/responses',
    body: (prompt: string) => ({
      stream: true,
      tools: [{ type: 'function', name: 'shell_command' }],
      input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: prompt }] }],
    }),
  },
  gemini: {
    path: '/v1beta/models/any:streamGenerateContent?alt=sse',
    body: (prompt: string) => ({
      tools: [{ functionDeclarations: [{ name: 'run_shell_command' }] }],
      contents: [{ role: 'user', parts: [{ text: prompt }] }],
    }),
  },
  chat: {
    path: '/v1/chat/completions',
    body: (prompt: string) => ({
      stream: true,
      tools: [{ type: 'function', function: { name: 'bash' } }],
      messages: [{ role: 'user', content: prompt }],
    }),
  },
};

describe.each(Object.entries(ASKED))('the test model, called through %s', (api, { path, body }) => {
  const ask = (model: ModelServer, prompt: string): Promise<Response> =>
    fetch(`${model.url}${path}`, { method: 'POST', body: JSON.stringify(body(prompt)) });

  it('streams the prompt back, and records it', async () => {
    const model = await modelServer();
    expect(await (await ask(model, 'good-morning')).text()).toContain('good-morning');
    expect(model.turns()).toMatchObject([
      { api, isStream: true, messages: expect.arrayContaining([{ role: 'user', text: 'good-morning' }]) },
    ]);
  });

  it('requests a shell command, waits or fails if the prompt says so', async () => {
    const model = await modelServer();
    expect(await (await ask(model, 'run: touch made')).text()).toContain('touch made');
    const waiting = ask(model, 'wait: a').then((response) => response.text());
    await model.isWaiting('a');
    model.release('a');
    expect(await waiting).toContain('came');
    expect(await ask(model, 'fail')).toMatchObject({ status: 400 });
  });

  it('responds as the test says', async () => {
    const model = await modelServer(() => ({ tool: 'berth_list', arguments: { names: ['web'] } }));
    const answer = await (await ask(model, 'hello')).text();
    expect(answer).toContain('berth_list');
    expect(answer).toContain('web');
  });
});
