// Whether an agent may perform an operation, decided here for all operations. Their column `agentRight` says
// what is checked: docs/reference.md "Agent tokens".
import type { KeyKind, Operation } from '../../api/operation.ts';
import type { SpinupInput } from '../../protocol/agents.ts';
import type { CommandInput } from '../../protocol/commands.ts';
import { dependencyName } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import type { NewEvent } from '../../protocol/events.ts';
import type { ServiceInput } from '../../protocol/service.ts';
import type { StackClaim } from '../../protocol/stacks.ts';
import { isFailure } from '../../runtime/actor.ts';
import type { AppContext } from './app_context.ts';
import { Reach } from './reach.ts';

type KeyCheck = (reach: Reach, key: string, app: AppContext) => void;

/** Each throws forbidden_owner if the key in the path names something of another stack. */
const KEY_CHECKS: Readonly<Record<KeyKind, KeyCheck>> = {
  service: (reach, name) => reach.limitTo(name),
  agent: (reach, name) => reach.limitTo(name),
  stack: (reach, name) => reach.assertStack(name),
  // All agents are in one group, whatever their stack.
  group: (reach, name, { views }) => {
    const stranger = views.members(name).find((spec) => !reach.has(spec));
    if (stranger) throw reach.refusal(`${stranger.name} of the group ${name}`);
  },
  id: () => {
    throw new Error('the id of a path is of no stack');
  },
  policy: () => {
    throw new Error('a policy is of no stack');
  },
  token: () => {
    throw new Error('an API token is of no stack');
  },
};

/** Throws unauthorized for an expired token, and forbidden_owner. */
export function checkAgentRight(route: Operation, key: string, reach: Reach, app: AppContext): void {
  const { agentRight, keyKind, method, path } = route;
  // Before the daemon is ready, it is unknown which agents are running. Until then only operations outside
  // any stack are answered.
  if (!reach.isCurrent && app.phase !== 'starting')
    throw fail('unauthorized', `the token of the agent ${reach.agent} has ended with its process`);
  switch (agentRight) {
    case 'any':
    case 'part':
    case 'body':
      return;
    case 'self':
      if (key !== reach.agent) throw fail('forbidden_owner', `${reach.agent} may do this only for itself`);
      return;
    case 'stack':
      if (keyKind) KEY_CHECKS[keyKind](reach, key, app);
      return;
    case 'never':
      throw fail('forbidden_owner', `no agent may ${method} ${path}: it is a person's alone`);
    default:
      agentRight satisfies never;
  }
}

/**
 * The event to record when a person does, from within the agent `name`, what the agent itself may not do;
 * null: it may, or is not an agent.
 */
export function forcedEvent(route: Operation, key: string, name: string, app: AppContext): NewEvent | null {
  const { agentRight, keyKind, id, method } = route;
  if (!app.views.spec(name)?.agent || agentRight !== 'stack' || !keyKind || method === 'GET') return null;
  try {
    KEY_CHECKS[keyKind](new Reach(app.views, { name, run: '' }), key, app);
    return null;
  } catch (error) {
    if (!isFailure(error)) throw error;
    const data = JSON.stringify({ name: key, agent: name, operation: id });
    return { type: 'agent.forced', name: key, run: null, data };
  }
}

/** Checks whose object a body names. Throws forbidden_owner. */
type BodyCheck<B> = (reach: Reach, body: B, app: AppContext) => void | Promise<void>;

function checkPlace(reach: Reach, { name, stack }: { name: string; stack: string | null }): void {
  reach.assertName(name);
  if (stack === reach.stack && reach.isOwnName(name)) return;
  const hint =
    reach.stack === null
      ? 'Give a name without --, and no stack.'
      : `Give the stack ${reach.stack}, and a name that begins with ${reach.stack}--.`;
  throw fail('forbidden_owner', `${reach.agent} may register only in its own stack`, { hint });
}

/** A group without members belongs to the stack with its name. */
async function isOfAnotherStack(reach: Reach, group: string, app: AppContext): Promise<boolean> {
  if (!reach.hasGroup(group)) return true;
  if (group === reach.stack) return false;
  const { stacks } = await app.ref('stacks').ask('list', { name: group });
  return stacks.length > 0;
}

const checkRegistration: BodyCheck<ServiceInput> = async (reach, input, app) => {
  checkPlace(reach, input);
  const { group, dependsOn } = input;
  if (group !== null && (await isOfAnotherStack(reach, group, app)))
    throw reach.refusal(`the group ${group}`);
  for (const dependency of dependsOn) reach.assertName(dependencyName(dependency));
};

const checkSpinup: BodyCheck<SpinupInput> = checkPlace;

const checkCommand: BodyCheck<CommandInput> = (reach, { service }) => {
  if (service !== null) reach.assertName(service);
};

/** An agent may claim its own folder's stack again, and no other. */
const checkClaim: BodyCheck<StackClaim> = async (reach, { project, path, name }, app) => {
  const { stacks } = await app.ref('stacks').ask('list', { name: reach.stack });
  const own = stacks.find((stack) => stack.name === reach.stack);
  const isSame = own?.project === project && own.path === path && name === (own.isNamed ? own.name : null);
  if (!isSame) throw reach.refusal(`the stack of ${path}`);
};

const BODY_CHECKS: Readonly<Record<string, (reach: Reach, body: never, app: AppContext) => unknown>> = {
  registerService: checkRegistration,
  spinUpAgent: checkSpinup,
  prepareCommand: checkCommand,
  registerStack: checkClaim,
};

/**
 * Throws forbidden_owner for a body that names something of another stack. Its shape has been checked before.
 */
export async function checkAgentBody(
  { id, agentRight }: Operation,
  body: unknown,
  reach: Reach,
  app: AppContext,
): Promise<void> {
  if (agentRight !== 'body') return;
  const check = BODY_CHECKS[id];
  if (!check) throw new Error(`nothing says whose the body of ${id} is`);
  // The table's entry for this id takes the body of the same operation.
  await check(reach, body as never, app);
}
