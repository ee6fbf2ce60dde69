// State: the groups with a call under way, and whether the daemon is shutting down. Rebuilt from: the store,
// which has the calls under way.

import type { Store } from '../../adapters/storage/store_tables.ts';
import { serviceAddress } from '../../protocol/address.ts';
import {
  awaited,
  DependencyOrder,
  type DependentService,
  dependantsOf,
  reverseDependencies,
  walkInOrder,
  withDependencies,
} from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import type { GroupsProtocol, StoredGroupCall } from '../../protocol/groups.ts';
import { despiteHostLoss } from '../../protocol/host_loss.ts';
import type { Member } from '../../protocol/registry.ts';
import {
  type MemberStart,
  type ServiceProtocol,
  type SleepReply,
  type StartReply,
  type StopReply,
  startMember,
} from '../../protocol/service.ts';
import {
  actor,
  type Context,
  type Failure,
  type Handlers,
  isFailure,
  type MessageOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { withTimeout } from '../../runtime/deferred.ts';
import { SERVICE } from '../../settings/limits.ts';
import { dependencyFailure, namingMember, refuseEndless } from './member_failures.ts';

/** Between two attempts to restart a service while the process host does not respond. */
const RETRY_MS = 1_000;
const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };
/** How many losses of the process host the start of a group survives. */
const HOST_LOSSES = 3;

export interface GroupsConfig {
  store: Pick<Store, 'table'>;
  /** When the machine was booted, epoch milliseconds. Calls from before that are not continued. */
  bootedAt: number;
}

class Groups {
  private readonly context: Context;
  private readonly config: GroupsConfig;
  private readonly busy = new Set<string>();
  /** Services being woken for waiting clients. */
  private readonly waking = new Set<string>();
  private isClosing = false;
  private shuttingDown: Promise<null> | undefined;

  constructor(context: Context, config: GroupsConfig) {
    this.context = context;
    this.config = config;
  }

  start({ name, timeoutMs }: MessageOf<GroupsProtocol, 'start'>): Promise<{ services: StartReply[] }> {
    const askedAt = this.context.clock.monotonic();
    return this.kept(name, { verb: 'start', timeoutMs }, async (members) => {
      const answers = await this.startAll(members, { timeoutMs, askedAt });
      return { services: answersInOrder(members, answers) };
    });
  }

  /** Starts `name` and everything it depends on. `askedAt`: when a waiting client asked for it. */
  async wake(
    { name, timeoutMs }: MessageOf<GroupsProtocol, 'wake'>,
    askedAt = this.context.clock.monotonic(),
  ): Promise<StartReply> {
    const { members } = await this.registry().ask('members', { group: null });
    const answers = await this.wakeAll(members, [name], { timeoutMs, askedAt });
    const answer = answers.get(name);
    if (!answer) throw fail('unknown_service', `there is no service ${name}`);
    return answer;
  }

  /** Wakes `name` for a waiting client; once, however many clients there are. */
  knocked({ name, at }: MessageOf<GroupsProtocol, 'knocked'>): null {
    if (this.waking.has(name)) return null;
    this.waking.add(name);
    const woken = this.wake({ name, timeoutMs: null }, at).finally(() => this.waking.delete(name));
    tolerateFailure(woken, () => this.service(name).tell('wakeFailed', {})).catch((error: unknown) =>
      this.context.crash(error),
    );
    return null;
  }

  sleepGroup({ name }: MessageOf<GroupsProtocol, 'sleepGroup'>): Promise<{ services: SleepReply[] }> {
    return this.kept(name, { verb: 'sleep' }, async (members) => {
      const answers = new Map<string, SleepReply>();
      const sleepOne = async (member: string): Promise<void> => {
        const sleep = () => this.service(member).ask('sleep', {}, DEADLINE);
        answers.set(member, await despiteHostLoss(this.context.clock, sleep));
      };
      const sleeping = members.filter(({ sleep }) => sleep);
      await walkInOrder(new DependencyOrder(reverseDependencies(sleeping)), namingMember(sleepOne));
      return { services: answersInOrder(members, answers) };
    });
  }

  wakeGroup({
    name,
    timeoutMs,
  }: MessageOf<GroupsProtocol, 'wakeGroup'>): Promise<{ services: StartReply[] }> {
    const askedAt = this.context.clock.monotonic();
    return this.kept(name, { verb: 'wake', timeoutMs }, async (members) => {
      const { members: all } = await this.registry().ask('members', { group: null });
      const sleeping = members.filter(({ sleep }) => sleep).map((member) => member.name);
      const answers = await this.wakeAll(all, sleeping, { timeoutMs, askedAt });
      return { services: answersInOrder(members, answers) };
    });
  }

  /** Wakes `names` and everything they depend on. */
  private wakeAll(
    all: Member[],
    names: string[],
    request: Pick<MemberStart, 'timeoutMs' | 'askedAt'>,
  ): Promise<Map<string, StartReply>> {
    const wanted = withDependencies(all, names);
    return this.startAll(
      all.filter(({ name }) => wanted.has(name)),
      { ...request, wake: true },
    );
  }

  /**
   * Starts `members` in dependsOn order. After a failure nothing new begins. When the process host is lost
   * meanwhile, those that had been started ended with it, and all are started again.
   */
  private async startAll(members: Member[], request: MemberStart): Promise<Map<string, StartReply>> {
    refuseEndless(members);
    for (let attempts = HOST_LOSSES; ; attempts -= 1) {
      const { answers, isHostLost } = await this.startOnce(members, request);
      if (!isHostLost || attempts <= 0) return answers;
    }
  }

  private async startOnce(members: Member[], request: MemberStart) {
    const early = awaited(members, 'started');
    const answers = new Map<string, StartReply>();
    const begun = new Set<string>();
    const failed: string[] = [];
    let isHostLost = false;
    const onLost = (): void => {
      isHostLost = true;
    };
    const startOne = async (member: string, onStarted: () => void): Promise<void> => {
      begun.add(member);
      const told = early.has(member) ? onStarted : null;
      const start = () => startMember(this.service(member), request, told);
      try {
        answers.set(member, await despiteHostLoss(this.context.clock, start, onLost));
      } catch (error) {
        failed.push(member);
        throw error;
      }
    };
    try {
      await walkInOrder(new DependencyOrder(members), namingMember(startOne), () => this.isClosing);
    } catch (error) {
      const waiting = members.filter(({ name }) => !begun.has(name));
      throw dependencyFailure(members, waiting, failed[0], error) ?? error;
    }
    if (this.isClosing) throw shuttingDownFailure();
    return { answers, isHostLost };
  }

  stop({ name, graceMs }: MessageOf<GroupsProtocol, 'stop'>): ReturnType<Groups['stopMembers']> {
    return this.kept(name, { verb: 'stop', graceMs }, (members) => this.stopMembers(members, { graceMs }));
  }

  private async stopMembers(
    members: DependentService[],
    request: MessageOf<ServiceProtocol, 'stop'>,
  ): Promise<{ services: Pick<StopReply, 'name' | 'status' | 'exitCode'>[] }> {
    const answers = new Map<string, Pick<StopReply, 'name' | 'status' | 'exitCode'>>();
    const stopOne = async (member: string): Promise<void> => {
      try {
        const stop = () => this.service(member).ask('stop', request, DEADLINE);
        const { name, status, exitCode } = await despiteHostLoss(this.context.clock, stop);
        answers.set(member, { name, status, exitCode });
      } catch (error) {
        // A member that was removed meanwhile is already stopped.
        if (!isFailure(error) || error.code !== 'unknown_service') throw error;
      }
    };
    await walkInOrder(new DependencyOrder(reverseDependencies(members)), namingMember(stopOne));
    return { services: answersInOrder(members, answers) };
  }

  /**
   * Restarts a group. Dependents are stopped before their dependencies and started after them, so none sees a
   * dependency end.
   */
  restart({ name, graceMs, timeoutMs }: MessageOf<GroupsProtocol, 'restart'>): ReturnType<Groups['start']> {
    return this.restartFrom(name, { step: 'stop', graceMs, timeoutMs, at: this.context.clock.now() });
  }

  /** No client waits for the calls of an earlier daemon. Failures show in the states of the services. */
  resume(): null {
    for (const [name, stored] of this.config.store.table('restarts').all()) {
      if (this.busy.has(name)) continue;
      const isOwed = stored.at >= this.config.bootedAt;
      const work = isOwed ? this.callAgain(name, stored) : Promise.resolve();
      tolerateFailure<unknown, null>(work, () => null)
        .then(() => this.forgetCall(name))
        .catch((error: unknown) => this.context.crash(error));
    }
    return null;
  }

  private callAgain(name: string, stored: StoredGroupCall): Promise<unknown> {
    const { graceMs, timeoutMs } = stored;
    switch (stored.verb) {
      case undefined:
        return this.restartFrom(name, stored);
      case 'start':
        return this.start({ name, timeoutMs });
      case 'stop':
        return this.stop({ name, graceMs });
      case 'sleep':
        return this.sleepGroup({ name });
      case 'wake':
        return this.wakeGroup({ name, timeoutMs });
    }
  }

  /**
   * Each step is stored before it begins, so that a later daemon can continue. Services that `start` then
   * finds running were started by the restart, and stay.
   */
  private async restartFrom(name: string, restart: StoredGroupCall): ReturnType<Groups['start']> {
    const rows = this.config.store.table('restarts');
    const { graceMs, step, timeoutMs } = restart;
    return this.withGroup(name, async (members) => {
      refuseEndless(members);
      const askedAt = this.context.clock.monotonic();
      try {
        if (step === 'stop') {
          await rows.put(name, restart);
          await this.stopMembers(members, { graceMs, forRestart: true });
          await rows.put(name, { ...restart, step: 'start' });
        }
        const answers = await this.startAll(members, { timeoutMs, askedAt });
        return { services: answersInOrder(members, answers) };
      } finally {
        await this.forgetCall(name);
      }
    });
  }

  /**
   * `call`, which a later daemon makes again if this one is killed: members that it has reached stay as they
   * are. On a full disk a later daemon does not know it.
   */
  private kept<R>(
    name: string,
    { verb, graceMs = null, timeoutMs = null }: Partial<StoredGroupCall>,
    call: (members: Member[]) => Promise<R>,
  ): Promise<R> {
    const row = { verb, step: 'start', graceMs, timeoutMs, at: this.context.clock.now() } as const;
    return this.withGroup(name, async (members) => {
      try {
        await tolerateFailure(this.config.store.table('restarts').put(name, row), () => undefined);
        return await call(members);
      } finally {
        await tolerateFailure(this.forgetCall(name), () => undefined);
      }
    });
  }

  private forgetCall(name: string): Promise<void> {
    return this.config.store.table('restarts').remove(name);
  }

  /** A service that fails to restart reports that itself; its dependents are restarted all the same. */
  async restartDependants(name: string): Promise<null> {
    const { members } = await this.registry().ask('members', { group: null });
    const wanted = dependantsOf(members, name);
    const dependants = members.filter((member) => wanted.has(member.name));
    const ignore = (): null => null;
    await Promise.all(
      dependants.map((one) => tolerateFailure(this.service(one.name).ask('expectRestart', {}), ignore)),
    );
    this.context.ref(serviceAddress(name)).tell('cascadeKnown', {});
    await walkInOrder(new DependencyOrder(dependants), (one) => this.restartDependant(one));
    return null;
  }

  /** Nobody repeats it, so it is repeated here while the process host is away. */
  private async restartDependant(name: string): Promise<void> {
    for (let isBusy = true; isBusy && !this.isClosing; ) {
      const restart = this.service(name).ask('restartRunning', {}, DEADLINE);
      const code = await tolerateFailure(restart, (failure) => failure.code);
      isBusy = code === 'daemon_busy';
      if (isBusy) await new Promise<void>((resolve) => this.context.clock.after(RETRY_MS, resolve));
    }
  }

  shutdown(): Promise<null> {
    this.isClosing = true;
    this.shuttingDown ??= this.stopAll();
    return this.shuttingDown;
  }

  /**
   * Stops all services. Always ends within its time limits, because the host completes a stop without a
   * daemon.
   */
  private async stopAll(): Promise<null> {
    const { members } = await this.registry().ask('members', { group: null });
    const order = new DependencyOrder(reverseDependencies(members));
    const { clock } = this.context;
    const until = clock.monotonic() + SERVICE.shutdown.hostReturnMs;
    const stopOne = async (member: string): Promise<void> => {
      const stopped = this.service(member).ask('stop', { graceMs: null, last: true }, DEADLINE);
      // A member that cannot be stopped must not keep the others running.
      const failed = await tolerateFailure(
        stopped.then(() => null),
        (failure) => failure,
      );
      // A new process host may be starting.
      if (failed?.code !== 'daemon_busy' || clock.monotonic() >= until) return;
      await new Promise<void>((resolve) => clock.after(SERVICE.shutdown.hostRetryMs, resolve));
      await stopOne(member);
    };
    const ordered = walkInOrder(order, stopOne);
    await withTimeout(SERVICE.shutdown.orderedStopMs, ordered, this.context.clock);
    const others = order.takeRemaining().map(stopOne);
    await withTimeout(
      SERVICE.shutdown.remainingStopMs,
      Promise.all([ordered, ...others]),
      this.context.clock,
    );
    return null;
  }

  /** Runs `call` with the members of group `name`, one call per group at a time. */
  private async withGroup<R>(name: string, call: (members: Member[]) => Promise<R>): Promise<R> {
    if (this.isClosing) throw shuttingDownFailure();
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
    return this.context.ref('registry');
  }

  private service(name: string) {
    return this.context.ref(serviceAddress(name));
  }
}

const shuttingDownFailure = (): Failure => fail('daemon_busy', 'the daemon is shutting down');

function answersInOrder<A>(members: DependentService[], answers: ReadonlyMap<string, A>): A[] {
  return members.flatMap(({ name }) => answers.get(name) ?? []);
}

function init(context: Context, config: GroupsConfig): Handlers<GroupsProtocol> {
  const groups = new Groups(context, config);
  return {
    start: (message) => context.replyLater(groups.start(message)),
    stop: (message) => context.replyLater(groups.stop(message)),
    restart: (message) => context.replyLater(groups.restart(message)),
    resume: () => groups.resume(),
    restartDependants: ({ name }) => context.replyLater(groups.restartDependants(name)),
    wake: (message) => context.replyLater(groups.wake(message)),
    knocked: (message) => groups.knocked(message),
    sleepGroup: (message) => context.replyLater(groups.sleepGroup(message)),
    wakeGroup: (message) => context.replyLater(groups.wakeGroup(message)),
    shutdown: () => context.replyLater(groups.shutdown()),
  };
}

export const groupsActor = actor<GroupsProtocol, GroupsConfig>('groups', init);
