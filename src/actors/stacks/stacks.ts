// State: the record of every stack as it is on disk. Rebuilt from: the store.
import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { unansweredReason } from '../../adapters/answering_path.ts';
import type { Store } from '../../adapters/storage/store_tables.ts';
import { serviceAddress } from '../../protocol/address.ts';
import { DependencyOrder, reverseDependencies, walkInOrder } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import { HOOKS } from '../../protocol/hooks.ts';
import type { ServiceStatus, StartReply } from '../../protocol/service.ts';
import {
  isHookOf,
  nameInStack,
  type StackClaim,
  type StackRow,
  type StacksProtocol,
  type StoredStack,
  slugValueOf,
  stackNames,
} from '../../protocol/stacks.ts';
import {
  actor,
  type Context,
  type DeferredReply,
  Failure,
  isFailure,
  type MessageOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { SERVICE, THREADS } from '../../settings/limits.ts';

export interface StacksConfig {
  store: Pick<Store, 'table' | 'loss'>;
}

const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };
/** Claims run one at a time: which name is free depends on all of them. */
const CLAIMS = 'claims';

/** The statuses of a hook that runs. */
const UNDER_WAY: readonly ServiceStatus[] = ['starting', 'running', 'stopping'];

/** The failure of the hook `remove`, with what can be done about it. */
function withForceHint({ code, message, detail }: Failure, stack: string): Failure {
  const force = `\`berth rm --stack ${stack} --force\` (?force=true) forgets the stack all the same.`;
  const given = detail instanceof Object && 'hint' in detail ? `${detail.hint}\n` : '';
  return new Failure(code, message, { hint: `${given}${force}` });
}

class Stacks {
  private readonly context: Context;
  private readonly store: StacksConfig['store'];
  private readonly stacks: Map<string, StoredStack>;
  private readonly removing = new Set<string>();

  constructor(context: Context, { store }: StacksConfig) {
    this.context = context;
    this.store = store;
    this.stacks = new Map(store.table('stacks').all());
    context.scope.defer(() => {
      for (const name of this.removing) this.openToRegistrations(name);
    });
  }

  /** Checks the folder of each requested stack, which is slow for thousands. */
  async list({ name }: MessageOf<StacksProtocol, 'list'>): Promise<{ stacks: StackRow[] }> {
    const all = [...this.stacks.values()];
    const rows = (name === null ? all : all.filter((stack) => stack.name === name)).map(async (stack) => ({
      ...stack,
      gone: await isGone(stack.path),
    }));
    return { stacks: await Promise.all(rows) };
  }

  claim(claim: StackClaim): DeferredReply<{ stack: StoredStack; created: boolean }> {
    return this.context.turn(CLAIMS, async () => {
      const known = await this.recordOf(claim);
      const name = known?.name ?? claim.name ?? (await this.freeName(claim));
      this.refuseIfRemoving(name);
      if (known) await this.beginAnew(name);
      const { project, path, worktree, branch } = claim;
      if (known && known.branch === branch) return { stack: known, created: false };
      const fresh = { name, project, path, isNamed: claim.name !== null };
      const stack = { ...(known ?? fresh), worktree, branch };
      await this.store.table('stacks').put(name, stack);
      this.stacks.set(name, stack);
      return { stack, created: !known };
    });
  }

  create({ stack, request }: MessageOf<StacksProtocol, 'create'>): DeferredReply<StartReply> {
    return this.context.replyLater(this.startCreate(stack, request));
  }

  private async startCreate(
    stack: string,
    request: MessageOf<StacksProtocol, 'create'>['request'],
  ): Promise<StartReply> {
    this.refuseIfRemoving(stack);
    if (await this.hasRemoved(stack)) await this.undo(nameInStack(stack, HOOKS.remove));
    // A removal that begins from here on stops the hook first.
    this.refuseIfRemoving(stack);
    return this.context.ref(serviceAddress(nameInStack(stack, HOOKS.create))).ask('start', request, DEADLINE);
  }

  /** Safe to repeat: the record is removed last, so the next removal resumes one that was interrupted. */
  remove({ name, force }: MessageOf<StacksProtocol, 'remove'>): DeferredReply<{ services: string[] }> {
    this.refuseIfRemoving(name);
    this.removing.add(name);
    return this.context.replyLater(
      this.removeAll(name, force).finally(() => {
        this.removing.delete(name);
        this.openToRegistrations(name);
      }),
    );
  }

  private async removeAll(name: string, force: boolean): Promise<{ services: string[] }> {
    await this.registry().ask('closeStack', { stack: name, isClosed: true });
    const { services } = await this.removeNow(name, force);
    // Registrations that were under way when the stack was closed.
    const { members } = await this.registry().ask('members', { group: null, stack: name });
    for (const late of members) await this.removeService(late.name);
    return { services: [...services, ...members.map((late) => late.name)] };
  }

  /**
   * Forgets the hooks of a stack that is still there although its hook `remove` has completed: the end of the
   * daemon interrupted its removal. So both run again. Fails daemon_busy while `remove` still runs.
   */
  private async beginAnew(stack: string): Promise<void> {
    if (!(await this.hasRemoved(stack))) return;
    for (const hook of [HOOKS.create, HOOKS.remove]) await this.removeService(nameInStack(stack, hook));
  }

  /** Whether the hook `remove` has completed. Fails daemon_busy while it runs. */
  private async hasRemoved(stack: string): Promise<boolean> {
    const removal = nameInStack(stack, HOOKS.remove);
    const { spec } = await this.registry().ask('specOf', { name: removal });
    if (!spec) return false;
    const status = await this.statusOf(removal);
    if (UNDER_WAY.includes(status)) throw fail('daemon_busy', `the hook remove of ${stack} runs`);
    return status === 'completed';
  }

  private async statusOf(hook: string): Promise<ServiceStatus> {
    return (await this.context.ref(serviceAddress(hook)).ask('explain', {})).status;
  }

  /** Lets a hook that has completed run again. */
  private async undo(hook: string): Promise<void> {
    const { spec } = await this.registry().ask('specOf', { name: hook });
    if (spec) await this.context.ref(serviceAddress(hook)).ask('undo', {});
  }

  private openToRegistrations(stack: string): void {
    this.registry().tell('closeStack', { stack, isClosed: false });
  }

  private async removeNow(name: string, force: boolean): Promise<{ services: string[] }> {
    const { members } = await this.registry().ask('members', { group: null, stack: name });
    if (members.length === 0 && !this.stacks.has(name))
      throw fail('unknown_stack', `there is no stack ${name}`);
    // The hooks would run for a removal that cannot be stored.
    const loss = this.store.loss();
    if (loss) throw loss;
    const isOwn = (member: { name: string }) => !isHookOf(name, member.name);
    const services = members.filter(isOwn);
    const order = new DependencyOrder(reverseDependencies(services));
    await walkInOrder(order, (member) => this.removeService(member));
    const hooks = members.filter((member) => !isOwn(member)).map((hook) => hook.name);
    const removal = nameInStack(name, HOOKS.remove);
    if (hooks.includes(removal) && (await this.hasBegun(name, hooks))) {
      // Stored before, because the end of `remove` may not be seen.
      await this.undo(nameInStack(name, HOOKS.create));
      const run = this.runHook(removal);
      await tolerateFailure(run, (failure) => {
        if (!force) throw withForceHint(failure, name);
      });
    }
    for (const hook of hooks) await this.removeService(hook);
    await this.store.table('stacks').remove(name);
    this.stacks.delete(name);
    return { services: services.map((member) => member.name) };
  }

  /**
   * Whether what the hook `create` makes may be there; without that hook it may always. Stops a run of it, so
   * that nothing more is made.
   */
  private async hasBegun(stack: string, hooks: readonly string[]): Promise<boolean> {
    const creation = nameInStack(stack, HOOKS.create);
    const end = () => this.store.table('ends').get(creation);
    if (!hooks.includes(creation) || end()?.status === 'completed') return true;
    // What it left running is stopped after the hook `remove`, also in a repeated removal.
    if (end()?.undone && !UNDER_WAY.includes(await this.statusOf(creation))) return true;
    await this.context.ref(serviceAddress(creation)).ask('stop', { graceMs: null }, DEADLINE);
    return end() !== undefined;
  }

  /** Runs the hook unless it has completed before; joins one that is under way. Fails as its start does. */
  private async runHook(name: string): Promise<void> {
    if (this.store.table('ends').get(name)?.status === 'completed') return;
    const { spec } = await this.registry().ask('specOf', { name });
    // The folder may have been removed before the stack.
    if (spec && (await isGone(spec.cwd))) {
      const input = { ...spec, cwd: homedir(), env: null };
      await this.registry().ask('register', { input });
    }
    const message = { timeoutMs: SERVICE.hookMs, wait: true, join: true };
    const deadlineMs = SERVICE.hookMs + THREADS.askDeadlineMs;
    await this.context.ref(serviceAddress(name)).ask('start', message, { deadlineMs });
  }

  private async removeService(name: string): Promise<void> {
    try {
      await this.registry().ask('remove', { name, agent: false, graceMs: null }, DEADLINE);
    } catch (error) {
      // The service was removed meanwhile.
      if (!isFailure(error) || error.code !== 'unknown_service') throw error;
    }
  }

  private registry() {
    return this.context.ref('registry');
  }

  private refuseIfRemoving(name: string): void {
    if (this.removing.has(name)) throw fail('daemon_busy', `${name} is being removed`);
  }

  /** The record of the same place. Fails name_in_use when the chosen name is that of another folder. */
  private async recordOf({ project, path, name }: StackClaim): Promise<StoredStack | undefined> {
    if (name === null) {
      const ours = (stack: StoredStack) => stack.path === path && stack.project === project && !stack.isNamed;
      return [...this.stacks.values()].find(ours);
    }
    const found = this.stacks.get(name);
    if (found && !(await this.isFree(name, path)))
      throw fail('name_in_use', `${name} is the stack of the folder ${found.path}`);
    return found?.path === path ? found : undefined;
  }

  private async freeName(claim: StackClaim): Promise<string> {
    const names = stackNames(claim);
    for (const name of names)
      if (!this.sharesSlug(name) && !(await this.isGroup(name)) && (await this.isFree(name, claim.path)))
        return name;
    throw fail('name_in_use', `${names.join(', ')} have the names or slugs of other stacks, or of groups`);
  }

  /**
   * Whether another stack has the slug of `name`. Hooks name databases after it, so one whose folder has been
   * removed counts until its hook `remove` has run.
   */
  private sharesSlug(name: string): boolean {
    const slug = slugValueOf(name);
    return [...this.stacks.keys()].some((other) => other !== name && slugValueOf(other) === slug);
  }

  /** Whether services of other stacks are in a group called `name`. */
  private async isGroup(name: string): Promise<boolean> {
    const all = await this.registry().ask('members', { group: name });
    const own = await this.registry().ask('members', { group: name, stack: name });
    return all.members.length > own.members.length;
  }

  /** A folder that has been removed no longer holds its name. */
  private async isFree(name: string, path: string): Promise<boolean> {
    const found = this.stacks.get(name);
    return !found || found.path === path || isGone(found.path);
  }
}

/** Whether a folder was removed. Nothing is known of one whose file system does not answer. */
async function isGone(path: string): Promise<boolean> {
  if ((await unansweredReason(path)) !== null) return false;
  return stat(path).then(
    () => false,
    () => true,
  );
}

/** Owns the records of stacks: docs/reference.md "Stacks". */
export const stacksActor = actor<StacksProtocol, StacksConfig>('stacks', (context, config) => {
  const stacks = new Stacks(context, config);
  return {
    list: (message) => context.replyLater(stacks.list(message)),
    claim: ({ claim }) => stacks.claim(claim),
    create: (message) => stacks.create(message),
    remove: (message) => stacks.remove(message),
  };
});
