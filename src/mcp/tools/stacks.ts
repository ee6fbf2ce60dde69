// Tools for stacks: the services of a project in one working tree.
import { z } from '../../adapters/zod.ts';
import type { Client } from '../../client/create_client.ts';
import { BerthError } from '../../client/errors.ts';
import type { ServiceDetail } from '../../client/records.ts';
import { reverseDependencies, runInDependencyOrder } from '../../protocol/dependency_order.ts';
import { HOOKS, isHook } from '../../protocol/hooks.ts';
import { AGENTS_GROUP } from '../../protocol/names.ts';
import { SERVICE_STATUSES } from '../../protocol/service.ts';
import { nameInStack } from '../../protocol/stacks.ts';
import { durationMs, linesOf } from '../fields.ts';
import { defineTool, inputShape, type ToolCall } from '../tool.ts';

const StackState = z.object({
  stack: z.string(),
  services: z.array(
    z.object({
      name: z.string(),
      status: z.enum(SERVICE_STATUSES),
      url: z.string().nullable(),
      error: z.string().nullable().describe('Why it could not be started or stopped'),
    }),
  ),
});

type StackAnswer = z.infer<typeof StackState>;

const stateText = ({ services }: StackAnswer): string =>
  linesOf(
    services,
    ({ name, status, url, error }) => [name, status, error ?? url].filter(Boolean).join('  '),
    'The stack has no services.',
  );

/** The services of a stack that are started and stopped with it, with their dependencies. */
async function membersOf({ client, signal }: ToolCall, stack: string): Promise<ServiceDetail[]> {
  // Fails with unknown_stack, which says more than an empty list.
  await client.stack(stack, { signal });
  const members = (await client.services({ signal })).filter(
    (one) => one.stack === stack && one.group !== AGENTS_GROUP && !isHook(one.service),
  );
  return Promise.all(members.map(({ name }) => client.service(name, { signal })));
}

/** The failures among outcomes, by service. */
function errorsOf(outcomes: Awaited<ReturnType<typeof runInDependencyOrder>>): Map<string, string> {
  const errors = new Map<string, string>();
  for (const [name, outcome] of outcomes) {
    if ('skipped' in outcome) errors.set(name, `not started: it needs ${outcome.skipped}`);
    if ('failed' in outcome)
      errors.set(name, outcome.failed instanceof Error ? outcome.failed.message : String(outcome.failed));
  }
  return errors;
}

/** The state of the services of a stack, with the `errors` of some. */
async function stateOf(
  call: ToolCall,
  stack: string,
  errors: ReadonlyMap<string, string>,
): Promise<StackAnswer> {
  const services = (await membersOf(call, stack)).map(({ name, status, url }) => ({
    name,
    status,
    url,
    error: errors.get(name) ?? null,
  }));
  return { stack, services };
}

/** Runs the hook `create` of a stack as `berth up` does, unless it has completed. Fails as its start does. */
async function runCreateHook({ client, signal }: ToolCall, stack: string): Promise<void> {
  const hook = nameInStack(stack, HOOKS.create);
  const isThere = (await client.services({ signal })).some(({ name }) => name === hook);
  if (isThere) await client.start(hook, { signal, ifChanged: true });
}

/**
 * Starts one service, or waits for its start that is under way; a task only if it has changed since it
 * completed.
 */
async function startOne(
  client: Client,
  { kind, name }: ServiceDetail,
  timeout: number | undefined,
  signal: AbortSignal,
) {
  const ifTask = kind === 'task' ? { ifChanged: true } : { join: true };
  await client.start(name, { timeout, signal, ...ifTask });
}

/** Brings up the project of a folder as `berth up` does. */
async function bringUp(call: ToolCall, given: string | undefined): Promise<StackAnswer> {
  const { client, signal, bringUp: up } = call;
  const folder = given ?? call.folder;
  if (up === null || folder === null)
    throw new BerthError('invalid_spec', 'stack is missing', {
      hint: 'Pass a stack that `list` shows, or run `berth up` in the folder of the project once.',
    });
  const { names, errors } = await up(folder, signal);
  const services = await client.services({ signal });
  const stack = services.find(({ name }) => names.includes(name) || errors.has(name))?.stack;
  if (stack) return stateOf(call, stack, errors);
  throw new BerthError('unknown_stack', `${folder} has no services`, {
    hint: 'Write a berth.yaml with `berth init`, or use `register`.',
  });
}

const progress = async (call: ToolCall, { stack }: { stack?: string | undefined }): Promise<string> => {
  if (stack === undefined) return 'bringing the services up';
  const { running, services } = await call.client.stack(stack, { signal: call.signal });
  return `${running} of ${services} services run`;
};

const stackUp = defineTool({
  name: 'stack_up',
  title: 'Bring up a project',
  description:
    'Starts all services of a stack, each after what it depends on. Without `stack`, it does what ' +
    '`berth up` does in the folder: it registers what berth.yaml says (or Procfile, compose file, ' +
    'package.json), starts what is new, restarts what has changed and removes what is gone.',
  effect: 'changes',
  isRepeatable: true,
  operations: ['getStack', 'listServices', 'getService', 'startService'],
  input: inputShape({
    stack: z.string().min(1).optional().describe('A registered stack'),
    folder: z.string().min(1).optional().describe('The folder of a project; default: the current one'),
    timeout: durationMs('How long each service may take to be ready; default: its own'),
  }),
  output: StackState,
  run: async (call, { stack, folder, timeout }) => {
    if (stack === undefined) return bringUp(call, folder);
    const { client, signal } = call;
    const members = await membersOf(call, stack);
    await runCreateHook(call, stack);
    const outcomes = await runInDependencyOrder(members, (member) =>
      startOne(client, member, timeout, signal),
    );
    return stateOf(call, stack, errorsOf(outcomes));
  },
  text: stateText,
  progress,
});

const stackDown = defineTool({
  name: 'stack_down',
  title: 'Stop a project',
  description: 'Stops all services of a stack, each after those that depend on it. They stay registered.',
  effect: 'ends',
  isRepeatable: true,
  operations: ['getStack', 'listServices', 'getService', 'stopService'],
  input: inputShape({ stack: z.string().min(1).describe('The stack, as `list` shows it') }),
  output: StackState,
  run: async (call, { stack }) => {
    const { client, signal } = call;
    const outcomes = await runInDependencyOrder(
      reverseDependencies(await membersOf(call, stack)),
      async ({ name }) => void (await client.stop(name, { signal })),
    );
    return stateOf(call, stack, errorsOf(outcomes));
  },
  text: stateText,
  progress,
});

export const STACK_TOOLS = [stackUp, stackDown];
