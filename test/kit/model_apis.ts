// The interfaces of the model providers that coding agents use, as far as the agents use them: OpenAI's
// Responses (codex), Gemini's generateContent (gemini), OpenAI's chat completions (opencode).
import { randomUUID } from 'node:crypto';

/** Who said what, in the order of the conversation. */
export interface ModelMessage {
  role: 'system' | 'user' | 'model' | 'tool';
  text: string;
}

/** What an agent has asked the model. */
export interface ModelRequest {
  api: string;
  messages: ModelMessage[];
  /** Names of the tools that the model may call. Requests beside the conversation, as for a title, have none. */
  tools: string[];
  /** The answer has to be JSON. */
  isJson: boolean;
  isStream: boolean;
}

/** A tool that the model calls. */
export interface ToolCall {
  tool: string;
  /** Of codex's tools of MCP servers. */
  namespace?: string;
  arguments: object;
}

/** One thing after another that the model answers. */
export type AnswerPart = string | ToolCall;

/** One interface: how its requests are recognized and read, and how an answer is written. */
export interface ModelApi {
  name: string;
  path: RegExp;
  read(body: any, path: string): Omit<ModelRequest, 'api'>;
  /** The chunks of a stream, in order. */
  stream(parts: AsyncIterable<AnswerPart>): AsyncIterable<string>;
  /** The body of an answer that is not streamed. */
  whole(parts: AnswerPart[]): unknown;
}

/** The text in a message, whose content is text or a list of parts in each of the interfaces. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).filter(Boolean).join('\n');
  if (!(content instanceof Object)) return '';
  if ('text' in content) return textOf(content.text);
  if ('functionResponse' in content) return JSON.stringify(content.functionResponse);
  return 'content' in content ? textOf(content.content) : '';
}

const ROLES: { readonly [role: string]: ModelMessage['role'] } = {
  assistant: 'model',
  developer: 'system',
  model: 'model',
  system: 'system',
  tool: 'tool',
  user: 'user',
};

const newId = (kind: string): string => `${kind}_${randomUUID().replaceAll('-', '').slice(0, 20)}`;
const isCall = (part: AnswerPart): part is ToolCall => typeof part !== 'string';
const sse = (data: unknown, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

const USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };

function responsesItem(part: AnswerPart): object {
  if (isCall(part))
    return {
      type: 'function_call',
      id: newId('fc'),
      call_id: newId('call'),
      name: part.tool,
      ...(part.namespace !== undefined && { namespace: part.namespace }),
      arguments: JSON.stringify(part.arguments),
    };
  const content = [{ type: 'output_text', text: part, annotations: [] }];
  return { type: 'message', id: newId('msg'), role: 'assistant', status: 'completed', content };
}

const responses: ModelApi = {
  name: 'responses',
  path: /\/responses$/,
  read: ({ input = [], tools = [], stream, text, instructions }) => ({
    messages: [
      { role: 'system', text: textOf(instructions) },
      ...(typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input).map(
        (item: any): ModelMessage =>
          item.type === 'message' || item.type === undefined
            ? { role: ROLES[item.role] ?? 'system', text: textOf(item.content) }
            : { role: 'output' in item ? 'tool' : 'model', text: textOf(item.output ?? '') },
      ),
    ],
    tools: tools.map(({ name, type }: any) => name ?? type),
    isJson: text?.format?.type === 'json_schema',
    isStream: stream === true,
  }),
  async *stream(parts) {
    const id = newId('resp');
    const output: object[] = [];
    yield sse({ type: 'response.created', response: { id, output: [] } }, 'response.created');
    let said = '';
    const message = newId('msg');
    const done = function* (item: object) {
      output.push(item);
      const event = 'response.output_item.done';
      yield sse({ type: event, output_index: output.length - 1, item }, event);
    };
    for await (const part of parts) {
      if (isCall(part)) {
        yield* done(responsesItem(part));
        continue;
      }
      if (said === '') {
        const event = 'response.output_item.added';
        const item = { type: 'message', id: message, role: 'assistant', status: 'in_progress', content: [] };
        yield sse({ type: event, output_index: 0, item }, event);
      }
      said += part;
      const event = 'response.output_text.delta';
      yield sse({ type: event, item_id: message, output_index: 0, content_index: 0, delta: part }, event);
    }
    if (said !== '') yield* done({ ...responsesItem(said), id: message });
    const event = 'response.completed';
    yield sse({ type: event, response: { id, status: 'completed', output, usage: USAGE } }, event);
  },
  whole: (parts) => ({
    id: newId('resp'),
    object: 'response',
    status: 'completed',
    output: parts.map(responsesItem),
    usage: USAGE,
  }),
};

const geminiPart = (part: AnswerPart): object =>
  isCall(part) ? { functionCall: { name: part.tool, args: part.arguments } } : { text: part };
const geminiChunk = (parts: AnswerPart[], finishReason?: string): object => ({
  candidates: [{ index: 0, content: { role: 'model', parts: parts.map(geminiPart) }, finishReason }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  modelVersion: 'test-model',
});

const gemini: ModelApi = {
  name: 'gemini',
  path: /:(?:streamG|g)enerateContent$/,
  read: ({ contents = [], tools = [], systemInstruction, generationConfig }, path) => ({
    messages: [
      { role: 'system', text: textOf(systemInstruction?.parts) },
      ...contents.map(({ role, parts }: any): ModelMessage => {
        const isResult = parts.some((part: object) => 'functionResponse' in part);
        return { role: isResult ? 'tool' : (ROLES[role] ?? 'user'), text: textOf(parts) };
      }),
    ],
    tools: tools.flatMap(({ functionDeclarations = [] }: any) =>
      functionDeclarations.map(({ name }: { name: string }) => name),
    ),
    isJson: generationConfig?.responseMimeType === 'application/json',
    isStream: path.endsWith(':streamGenerateContent'),
  }),
  async *stream(parts) {
    for await (const part of parts) yield sse(geminiChunk([part]));
    yield sse(geminiChunk([''], 'STOP'));
  },
  whole: (parts) => geminiChunk(parts, 'STOP'),
};

const chatCall = ({ tool, arguments: args }: ToolCall, index: number): object => ({
  index,
  id: newId('call'),
  type: 'function',
  function: { name: tool, arguments: JSON.stringify(args) },
});
const chatUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const chatOf = (kind: string, choice: object): object => ({
  id: newId('chat'),
  object: `chat.${kind}`,
  created: 0,
  model: 'test-model',
  choices: [{ index: 0, ...choice }],
  usage: chatUsage,
});
const finishOf = (calls: number): string => (calls > 0 ? 'tool_calls' : 'stop');

const chat: ModelApi = {
  name: 'chat',
  path: /\/chat\/completions$/,
  read: ({ messages = [], tools = [], stream, response_format }) => ({
    messages: messages.map(
      ({ role, content }: any): ModelMessage => ({ role: ROLES[role] ?? 'user', text: textOf(content) }),
    ),
    tools: tools.map((tool: any) => tool.function.name),
    isJson: response_format !== undefined,
    isStream: stream === true,
  }),
  async *stream(parts) {
    let calls = 0;
    const chunk = (delta: object, finish_reason: string | null): string =>
      sse(chatOf('completion.chunk', { delta, finish_reason }));
    for await (const part of parts) {
      const delta = isCall(part) ? { tool_calls: [chatCall(part, calls++)] } : { content: part };
      yield chunk({ role: 'assistant', ...delta }, null);
    }
    yield chunk({}, finishOf(calls));
    yield 'data: [DONE]\n\n';
  },
  whole: (parts) => {
    const calls = parts.filter(isCall);
    const content = parts.filter((part) => !isCall(part)).join('');
    const message = {
      role: 'assistant',
      content,
      ...(calls.length > 0 && { tool_calls: calls.map(chatCall) }),
    };
    return chatOf('completion', { message, finish_reason: finishOf(calls.length) });
  },
};

export const MODEL_APIS: readonly ModelApi[] = [responses, gemini, chat];
