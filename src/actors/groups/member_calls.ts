// What groups ask of their members, in the order of their dependencies.
import { serviceAddress } from '../../protocol/address.ts';
import {
  awaited,
  DependencyOrder,
  type DependentService,
  dependantsOf,
  reverseDependencies,
  walkInOrder,
} from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
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
  type Context,
  type Failure,
  isFailure,
  type MessageOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { withTimeout } from '../../runtime/deferred.ts';
import { SERVICE } from '../../settings/limits.ts';
import { dependencyFailure, namingMember, refuseEndless } from './member_failures.ts';

/** Between two attempts that no client makes, while a service or the process host is busy. */
const RETRY_MS = 1_000;
const DEADLINE = { deadlineMs: SERVICE.askDeadlineMs };
/** How many losses of the process host the start of a group survives. */
const HOST_LOSSES = 3;

export type MemberStop = Pick<StopReply, 'name' | 'status' | 'exitCode'>;

export const shuttingDownFailure = (): Failure => fail('daemon_busy', 'the daemon is shutting down');

/** The answers in the order of `members`, which have one each unless they were removed meanwhile. */
export function answersInOrder<A>(members: DependentService[], answers: ReadonlyMap<string, A>): A[] {
  return members.flatMap(({ name }) => answers.get(name) ?? []);
}

export class MemberCalls {
  private readonly context: Context;
  private closing: Promise<null> | undefined;

  constructor(context: Context) {
    this.context = context;
  }

  /** Whether the daemon is shutting down, so that nothing new begins. */
  get isClosing(): boolean {
    return this.closing !== undefined;
  }

  /**
   * Starts `members` in dependsOn order. After a failure nothing new begins. When the process host is lost
   * meanwhile, those that had been started ended with it, and all are started again. Here and below: a member
   * that is removed meanwhile is left out; `isResumed`: for the call of an earlier daemon.
   */
  async startAll(
    members: Member[],
    request: MemberStart,
    isResumed = false,
  ): Promise<Map<string, StartReply>> {
    refuseEndless(members);
    for (let attempts = HOST_LOSSES; ; attempts -= 1) {
      const { answers, isHostLost } = await this.startOnce(members, request, isResumed);
      if (!isHostLost || attempts <= 0) return answers;
    }
  }

  private async startOnce(members: Member[], request: MemberStart, isResumed: boolean) {
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
        const answer = await this.reach(member, start, isResumed, onLost);
        if (answer) answers.set(member, answer);
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

  /**
   * Puts the members with `sleep` to sleep, dependents before their dependencies. `onDone`, here and below:
   * called and awaited after each member.
   */
  async sleepAll(
    members: Member[],
    isResumed: boolean,
    onDone: (member: string) => Promise<void>,
  ): Promise<Map<string, SleepReply>> {
    const answers = new Map<string, SleepReply>();
    const sleepOne = async (member: string): Promise<void> => {
      const sleep = () => this.service(member).ask('sleep', {}, DEADLINE);
      const answer = await this.reach(member, sleep, isResumed);
      if (!answer) return;
      answers.set(member, answer);
      await onDone(member);
    };
    const sleeping = members.filter(({ sleep }) => sleep);
    await walkInOrder(new DependencyOrder(reverseDependencies(sleeping)), namingMember(sleepOne));
    return answers;
  }

  /** Stops `members`, dependents before their dependencies. */
  async stopAll(
    members: DependentService[],
    request: MessageOf<ServiceProtocol, 'stop'>,
    isResumed: boolean,
    onDone: (member: string) => Promise<void>,
  ): Promise<Map<string, MemberStop>> {
    const answers = new Map<string, MemberStop>();
    const stopOne = async (member: string): Promise<void> => {
      const stop = () => this.service(member).ask('stop', request, DEADLINE);
      const answer = await this.reach(member, stop, isResumed);
      if (!answer) return;
      const { name, status, exitCode } = answer;
      answers.set(member, { name, status, exitCode });
      await onDone(member);
    };
    await walkInOrder(new DependencyOrder(reverseDependencies(members)), namingMember(stopOne));
    return answers;
  }

  /** Whether a service is not registered, once a removal of it that is under way has ended. */
  async isRemoved(name: string): Promise<boolean> {
    const asked = this.registry().ask('isRegistered', { name }, DEADLINE);
    const { isRegistered } = await tolerateFailure(asked, () => ({ isRegistered: true }));
    return !isRegistered;
  }

  /** The answer of a member; null: it was removed, before it was asked or since. */
  private async reach<R>(
    member: string,
    ask: () => Promise<R>,
    isResumed: boolean,
    onLost?: () => void,
  ): Promise<R | null> {
    return tolerateFailure(this.insist(ask, isResumed, onLost), async (failure) => {
      if (await this.isRemoved(member)) return null;
      throw failure;
    });
  }

  /**
   * Asks a member, also while the process host is lost. No client repeats the call of an earlier daemon, so
   * this does it while the member is busy.
   */
  private async insist<R>(ask: () => Promise<R>, isResumed: boolean, onLost?: () => void): Promise<R> {
    const { clock } = this.context;
    for (;;) {
      try {
        return await despiteHostLoss(clock, ask, onLost);
      } catch (error) {
        const isBusy = isFailure(error) && error.code === 'daemon_busy';
        if (!isBusy || !isResumed) throw error;
      }
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
      if (this.isClosing) throw shuttingDownFailure();
    }
  }

  /**
   * Restarts what depends on `name` and runs, but no task: its run would begin anew. A service that fails to
   * restart reports that itself; its dependents are restarted all the same.
   */
  async restartDependants(name: string): Promise<null> {
    const { members } = await this.registry().ask('members', { group: null });
    const wanted = dependantsOf(members, name);
    const dependants = members.filter((member) => wanted.has(member.name) && member.kind !== 'task');
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

  /**
   * Stops all services. Always ends within its time limits, because the host completes a stop without a
   * daemon.
   */
  close(): Promise<null> {
    this.closing ??= this.stopEverything();
    return this.closing;
  }

  private async stopEverything(): Promise<null> {
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

  private registry() {
    return this.context.ref('registry');
  }

  private service(name: string) {
    return this.context.ref(serviceAddress(name));
  }
}
