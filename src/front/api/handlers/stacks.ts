// The handlers of stacks.
import type { stacks } from '../../../api/stacks.ts';
import type { Stack } from '../../../api/stacks_shapes.ts';
import { fail } from '../../../protocol/errors.ts';
import { projectOfStack, type StackRow, slugOfStack } from '../../../protocol/stacks.ts';
import { SERVICE, THREADS } from '../../../settings/limits.ts';
import type { AppContext } from '../app_context.ts';
import type { HandlersOf } from '../handler.ts';
import { deadline, stopMs } from './service_lookup.ts';

const stacksOf = (app: AppContext) => app.ref('stacks');

/** Stacks with a record, and those that are only named by services. `wanted`: that one only; null: all. */
async function readStacks(app: AppContext, wanted: string | null): Promise<Stack[]> {
  const { stacks: rows } = await stacksOf(app).ask('list', { name: wanted });
  const records = new Map<string, StackRow>(rows.map((row) => [row.name, row]));
  const usage = app.views.stackUsage();
  const used = [...usage.keys()].filter((name) => wanted === null || name === wanted);
  return [...new Set([...records.keys(), ...used])].sort().map((name) => {
    const { branch = null, path = null, gone = false, isNamed = false } = records.get(name) ?? {};
    const { services = 0, running = 0, rssMB = 0 } = usage.get(name) ?? {};
    const place = {
      name,
      project: projectOfStack(name),
      slug: slugOfStack(name),
      branch,
      path,
      gone,
      named: isNamed,
    };
    return { ...place, services, running, rssMB };
  });
}

async function findStack(app: AppContext, name: string): Promise<Stack> {
  const found = (await readStacks(app, name)).find((stack) => stack.name === name);
  if (!found) throw fail('unknown_stack', `there is no stack ${name}`);
  return found;
}

/** Throws unknown_stack unless the stack exists. */
export async function assertStackExists(app: AppContext, name: string): Promise<void> {
  if (app.views.stackMembers(name).length === 0) await findStack(app, name);
}

export const stackHandlers: HandlersOf<typeof stacks> = {
  list: async ({ app, reach }) => {
    const all = await readStacks(app, null);
    return { stacks: reach ? all.filter(({ name }) => name === reach.stack) : all };
  },
  read: ({ app, key: name }) => findStack(app, name),

  register: async ({ app, body }) => {
    const { stack } = await stacksOf(app).ask('claim', { claim: body });
    return findStack(app, stack.name);
  },

  remove: async ({ app, key: name, query }) => {
    const times = app.views.stackMembers(name).map((spec) => stopMs(spec, null));
    const limit = deadline(...times, SERVICE.hookMs, THREADS.askDeadlineMs);
    const message = { name, force: query.force ?? false };
    const { services } = await stacksOf(app).ask('remove', message, limit);
    return { removed: true, name, services };
  },
};
