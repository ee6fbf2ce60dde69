// One MCP server: answers the requests of one client with the tools and resources of its workplace.
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  Server,
  type ServerContext,
} from '../adapters/mcp_sdk.ts';
import { type BerthError, isBerthError } from '../client/errors.ts';
import { VERSION } from '../settings/version.ts';
import { type FollowedResources, listResources, readResource, resourceTemplates } from './resources.ts';
import type { CheckedCall, ToolCall, Workplace } from './tool.ts';
import { listedTools, toolNamed } from './tool_table.ts';

const INSTRUCTIONS =
  'Berth runs and watches the services of this machine. Start servers with its tools, never in a shell with ' +
  '&: they survive your session, wait for readiness, and keep their logs. `list` shows what there is, ' +
  '`stack_up` brings up the project, `explain` says why something does not run, `logs_search` searches what ' +
  'was printed.';

/** How long clients may keep the list of tools, which changes only with the version. */
const LIST_TTL_MS = 3_600_000;
/** Interval of progress messages. */
const PROGRESS_INTERVAL_MS = 1_000;

/** Servers request nothing from clients, so there is nothing to validate; the default is slow to create. */
const NO_VALIDATION = {
  getValidator: () => () => ({
    valid: false as const,
    data: undefined,
    errorMessage: 'nothing is asked for',
  }),
};

/** What to do about an error whose hint from the API names paths of the API. */
const HINTS: Readonly<Record<string, string>> = {
  unknown_service: '`list` gives the names; `register` or `stack_up` makes one.',
  unknown_stack: '`list` shows the stack of each service.',
  unknown_agent: '`agents` gives the names.',
  unknown_workload: '`workloads` gives the ids.',
  agent_blocked: '`agent_keys` answers what it asks; then try again.',
  agent_working: '`agent_wait` waits until it is idle; or send the prompt with queue: true.',
  already_running: 'It runs: use it, or `restart` it.',
  not_running: '`start` starts it.',
  unauthorized:
    'Over HTTP, send the header Authorization: Bearer <token>. `berth mcp` takes the tokens from the ' +
    'configuration: set auth.token, or cloud.token for workloads, to the token of the daemon.',
  ready_timeout: '`explain` says what it waits for; `logs` has its lines.',
};

/** An error that a model can act on: its code, what has happened, and what to do. */
function errorText({ code, message, hint: apiHint, details }: BerthError): string {
  // The hint of a failed start has the last lines of its log.
  const hint = apiHint.includes('\n') ? apiHint : (HINTS[code] ?? apiHint);
  const faults = details.map((one) => `- ${one.message}`);
  return [`${code}: ${message}`, ...faults, ...(hint === '' ? [] : [`Hint: ${hint}`])].join('\n');
}

const failedCall = (text: string): CallToolResult => ({ content: [{ type: 'text', text }], isError: true });

/** Tells the client at intervals what a call waits for, if it has asked for that. Returns its end. */
function reportProgress(
  call: ToolCall,
  describe: CheckedCall['progress'],
  context: ServerContext,
): () => void {
  const progressToken = context.mcpReq._meta?.progressToken;
  if (progressToken === undefined || describe === null) return () => {};
  const began = performance.now();
  let isAsking = false;
  const report = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    // Progress is only informative: the call itself reports failures.
    const message = await describe(call).catch(() => 'waiting');
    isAsking = false;
    if (call.signal.aborted || timer === undefined) return;
    const progress = Math.round(performance.now() - began) / 1000;
    // The client may have disconnected meanwhile.
    await context.mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, message } })
      .catch(() => {});
  };
  let timer: NodeJS.Timeout | undefined = setInterval(() => void report(), PROGRESS_INTERVAL_MS);
  return () => {
    clearInterval(timer);
    timer = undefined;
  };
}

async function callTool(
  workplace: Workplace,
  name: string,
  input: unknown,
  context: ServerContext,
): Promise<CallToolResult> {
  const tool = toolNamed(name);
  if (!tool)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${name.slice(0, 100)}`);
  const checked = tool.check(input);
  if ('faults' in checked)
    return failedCall(
      ['invalid_spec: the input is wrong', ...checked.faults.map((one) => `- ${one}`)].join('\n'),
    );
  const call: ToolCall = { ...workplace, signal: context.mcpReq.signal };
  const endProgress = reportProgress(call, checked.progress, context);
  try {
    const { text, content } = await checked.run(call);
    return { content: [{ type: 'text', text }], structuredContent: content };
  } catch (error) {
    if (!isBerthError(error)) throw error;
    return failedCall(errorText(error));
  } finally {
    endProgress();
  }
}

async function readText(workplace: Workplace, uri: string, signal: AbortSignal): Promise<string> {
  try {
    const text = await readResource(workplace, uri, signal);
    if (text !== null) return text;
  } catch (error) {
    if (!isBerthError(error)) throw error;
    if (error.status !== 404) throw new ProtocolError(ProtocolErrorCode.InternalError, errorText(error));
  }
  throw new ResourceNotFoundError(uri);
}

/**
 * A server for one client, not connected yet. `followed`: what it subscribes to, where a connection lasts
 * longer than a request; null: it does not.
 */
export function createMcpServer(workplace: Workplace, followed: FollowedResources | null): Server {
  const server = new Server(
    { name: 'berth', title: 'Berth', version: VERSION },
    {
      capabilities: { tools: {}, resources: { subscribe: true } },
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: NO_VALIDATION,
      cacheHints: { 'tools/list': { ttlMs: LIST_TTL_MS, cacheScope: 'public' } },
    },
  );
  server.setRequestHandler('tools/list', () => ({ tools: listedTools() }));
  server.setRequestHandler('tools/call', ({ params }, context) =>
    callTool(workplace, params.name, params.arguments, context),
  );
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: resourceTemplates() }));
  server.setRequestHandler('resources/list', async (_request, { mcpReq }) => ({
    resources: await listResources(workplace, mcpReq.signal),
  }));
  server.setRequestHandler('resources/read', async ({ params: { uri } }, { mcpReq }) => ({
    contents: [{ uri, mimeType: 'text/plain', text: await readText(workplace, uri, mcpReq.signal) }],
  }));
  if (followed) {
    server.setRequestHandler('resources/subscribe', ({ params }) => {
      followed.add(params.uri);
      return {};
    });
    server.setRequestHandler('resources/unsubscribe', ({ params }) => {
      followed.remove(params.uri);
      return {};
    });
  }
  return server;
}
