// A model on loopback for real coding agents. It answers as the test says, or as the prompt itself says:
// `run: ls` asks for the shell, `wait: NAME` streams words until `release(NAME)`, `fail` answers an error,
// everything else is answered by `heard: ` and the prompt. It records what it was asked.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach } from 'vitest';
import { deferred } from '../../src/runtime/deferred.ts';
import {
  type AnswerPart,
  MODEL_APIS,
  type ModelApi,
  type ModelRequest,
  type ToolCall,
} from './model_apis.ts';

export type { ModelRequest, ToolCall } from './model_apis.ts';

/** What the model answers: parts that are streamed one by one, or the refusal of the provider. */
export type ModelAnswer = AnswerPart | AsyncIterable<AnswerPart> | { status: number; message: string };

/** The answer to a request of a conversation; undefined: what the prompt itself says. */
export type ModelScript = (request: ModelRequest) => ModelAnswer | undefined;

export interface ModelServer {
  url: string;
  /** Every request, in order; those of conversations have `tools`. */
  requests: ModelRequest[];
  /** The requests of conversations. */
  turns(): ModelRequest[];
  /** Resolves once the answer that `wait: name` has begun is under way. */
  isWaiting(name: string): Promise<void>;
  /** Ends the answer that `wait: name` has begun. */
  release(name: string): void;
}

/** The tool of each program that runs a shell command, and its arguments. */
const SHELLS: { readonly [tool: string]: (command: string) => object } = {
  exec_command: (cmd) => ({ cmd, sandbox_permissions: 'require_escalated', justification: 'May I?' }),
  shell_command: (command) => ({ command }),
  shell: (command) => ({ command: ['sh', '-c', command] }),
  run_shell_command: (command) => ({ command, description: 'Runs the command' }),
  bash: (command) => ({ command, description: 'Runs the command' }),
};

/** The call that has the program of `request` run `command`. */
export function shellCall({ tools }: ModelRequest, command: string): ToolCall {
  const tool = tools.find((name) => name in SHELLS);
  const argumentsOf = tool === undefined ? undefined : SHELLS[tool];
  if (tool === undefined || !argumentsOf) throw new Error(`no shell among the tools ${tools.join(', ')}`);
  return { tool, arguments: argumentsOf(command) };
}

/** What gemini puts before the first prompt. */
const CONTEXT = /^<session_context>[\s\S]*?<\/session_context>\n/;

/** The last text that a person has typed; `` without one. */
export const lastPrompt = ({ messages }: ModelRequest): string =>
  (messages.findLast(({ role }) => role === 'user')?.text ?? '').replace(CONTEXT, '');

class ScriptedModel {
  private readonly waits = new Map<string, { begun: PromiseSettler; over: PromiseSettler }>();

  /** What the prompt of `request` says. */
  answer(request: ModelRequest): ModelAnswer {
    if (request.isJson) return '{}';
    if (request.messages.at(-1)?.role === 'tool') return 'the command has run';
    const [, word, rest = ''] = /^(run|wait|fail)\b:?[ ]*([^\n]*)$/m.exec(lastPrompt(request)) ?? [];
    if (request.tools.length === 0) return 'a title';
    if (word === 'run') return shellCall(request, rest);
    if (word === 'wait') return this.words(rest);
    if (word === 'fail') return { status: 400, message: 'the test refuses this request' };
    return `heard: ${lastPrompt(request)}`;
  }

  wait(name: string): { begun: PromiseSettler; over: PromiseSettler } {
    const wait = this.waits.get(name) ?? { begun: deferred<void>(), over: deferred<void>() };
    this.waits.set(name, wait);
    return wait;
  }

  private async *words(name: string): AsyncIterable<AnswerPart> {
    const { begun, over } = this.wait(name);
    yield `waiting for ${name} `;
    begun.resolve();
    await over.promise;
    yield 'and it came';
  }
}

type PromiseSettler = ReturnType<typeof deferred<void>>;

async function* partsOf(answer: AnswerPart | AsyncIterable<AnswerPart>): AsyncIterable<AnswerPart> {
  if (typeof answer === 'string') yield* answer.split(/(?<= )/);
  else if (Symbol.asyncIterator in answer) yield* answer;
  else yield answer;
}

async function send(
  response: http.ServerResponse,
  api: ModelApi,
  { isStream }: ModelRequest,
  answer: ModelAnswer,
): Promise<void> {
  if (typeof answer === 'object' && 'status' in answer) {
    const { status, message } = answer;
    response.writeHead(status, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error: { code: status, message, status: 'INVALID_ARGUMENT' } }));
    return;
  }
  if (!isStream) {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const parts: AnswerPart[] = [];
    for await (const part of partsOf(answer)) parts.push(part);
    response.end(JSON.stringify(api.whole(parts)));
    return;
  }
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for await (const chunk of api.stream(partsOf(answer))) response.write(chunk);
  response.end();
}

const closers: (() => Promise<void>)[] = [];

/** Starts a model on a free port of loopback. It ends with the test. */
export async function modelServer(script: ModelScript = () => undefined): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const model = new ScriptedModel();
  const server = http.createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://model');
    const body = await text(request);
    const api = MODEL_APIS.find(({ path }) => path.test(pathname));
    if (!api) {
      // Lists of models, counts of tokens and the like: the agents do without.
      response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"error":{"message":"unknown"}}');
      return;
    }
    const asked = { api: api.name, ...api.read(JSON.parse(body), pathname) };
    requests.push(asked);
    const scripted = asked.tools.length > 0 ? script(asked) : undefined;
    await send(response, api, asked, scripted ?? model.answer(asked)).catch((error: unknown) =>
      response.destroy(error instanceof Error ? error : undefined),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  closers.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    turns: () => requests.filter(({ tools }) => tools.length > 0),
    isWaiting: (name) => model.wait(name).begun.promise,
    release: (name) => model.wait(name).over.resolve(),
  };
}

afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});
