// State: the groups that a call is under way on, and whether the daemon is shutting down. Rebuilt from: nothing, a call
// ends with the incarnation that took it.
import { SERVICE } from '../../limits.ts';
import { fail } from '../../protocol/errors.ts';
import type { GroupsProtocol } from '../../protocol/groups.ts';
import type { RegistryProtocol } from '../../protocol/registry.ts';
import type { ServiceProtocol, StartAnswer, StopAnswer } from '../../protocol/service.ts';
import { actor, type Context, Failure, type Handlers, isFailure, type Message } from '../../runtime/actor.ts';
import { within } from '../../runtime/deferred.ts';
import { type Member, Order, walk } from './order.ts';

const DEADLINE = { deadlineMs: SERVICE.askMs };

class Groups {
  private readonly context: Context;
  private readonly busy = new Set<string>();
  private closing = false;
  private shuttingDown: Promise<{ stopped: number }> | undefined;

  constructor(context: Context) {
    this.context = context;
  }

  start({ name, timeoutMs }: Message<GroupsProtocol, 'start'>): Promise<{ services: StartAnswer[] }> {
    return this.alone(name, async (members) => {
      const answers = new Map<string, StartAnswer>();
      const startOne = async (member: string): Promise<void> => {
        const message = { timeoutMs, wait: true, join: true };
        answers.set(member, await this.service(member).ask('start', message, DEADLINE));
      };
      await walk(new Order(members), named(startOne), () => this.closing);
      if (this.closing) throw shuttingDown();
      return { services: inOrder(members, answers) };
    });
  }

  stop({ name, graceMs }: Message<GroupsProtocol, 'stop'>): ReturnType<Groups['stopMembers']> {
    return this.alone(name, (members) => this.stopMembers(members, graceMs));
  }

  private async stopMembers(
    members: Member[],
    graceMs: number | null,
  ): Promise<{ services: Pick<StopAnswer, 'name' | 'status' | 'exitCode'>[] }> {
    const answers = new Map<string, Pick<StopAnswer, 'name' | 'status' | 'exitCode'>>();
    const stopOne = async (member: string): Promise<void> => {
      try {
        const { name, status, exitCode } = await this.service(member).ask('stop', { graceMs }, DEADLINE);
        answers.set(member, { name, status, exitCode });
      } catch (error) {
        // One that was removed meanwhile runs no more.
        if (!isFailure(error) || error.code !== 'unknown_service') throw error;
      }
    };
    await walk(new Order(members, true), named(stopOne));
    return { services: inOrder(members, answers) };
  }

  shutdown(): Promise<{ stopped: number }> {
    this.closing = true;
    this.shuttingDown ??= this.stopAll();
    return this.shuttingDown;
  }

  /** Never waits longer than its limits: the host finishes a stop without a daemon. */
  private async stopAll(): Promise<{ stopped: number }> {
    const { members } = await this.registry().ask('members', { group: null });
    const order = new Order(members, true);
    let stopped = 0;
    const stopOne = async (member: string): Promise<void> => {
      try {
        const { reaped } = await this.service(member).ask('stop', { graceMs: null, last: true }, DEADLINE);
        if (reaped > 0) stopped += 1;
      } catch (error) {
        // One that cannot be stopped must not keep the others up.
        if (!isFailure(error)) throw error;
      }
    };
    const ordered = walk(order, stopOne);
    await within(SERVICE.shutdown.orderedMs, ordered, this.context.clock);
    const others = order.rest().map(stopOne);
    await within(SERVICE.shutdown.restMs, Promise.all([ordered, ...others]), this.context.clock);
    return { stopped };
  }

  /** Runs `call` with the members of group `name`, and no other call on it meanwhile. */
  private async alone<R>(name: string, call: (members: Member[]) => Promise<R>): Promise<R> {
    if (this.closing) throw shuttingDown();
    if (this.busy.has(name)) throw fail('daemon_busy', `group ${name} is being started or stopped already`);
    this.busy.add(name);
    try {
      const { members } = await this.registry().ask('members', { group: name });
      if (members.length === 0) throw fail('unknown_group', `there is no group ${name}`);
      return await call(members);
    } finally {
      this.busy.delete(name);
    }
  }

  private registry() {
    return this.context.ref<RegistryProtocol>('registry');
  }

  private service(name: string) {
    return this.context.ref<ServiceProtocol>(`service:${name}`);
  }
}

const shuttingDown = (): Failure => fail('daemon_busy', 'the daemon is shutting down');

function inOrder<A>(members: Member[], answers: ReadonlyMap<string, A>): A[] {
  return members.flatMap(({ name }) => answers.get(name) ?? []);
}

/** The same, with the member named in the message of what it throws. */
function named(act: (name: string) => Promise<void>): (name: string) => Promise<void> {
  return async (name) => {
    try {
      await act(name);
    } catch (error) {
      if (!isFailure(error) || error.message.startsWith(`${name} `)) throw error;
      throw new Failure(error.code, `${name}: ${error.message}`, error.detail);
    }
  };
}

function init(context: Context): Handlers<GroupsProtocol> {
  const groups = new Groups(context);
  return {
    start: (message) => context.later(groups.start(message)),
    stop: (message) => context.later(groups.stop(message)),
    shutdown: () => context.later(groups.shutdown()),
  };
}

export const groups = actor<GroupsProtocol, null>('groups', init);
