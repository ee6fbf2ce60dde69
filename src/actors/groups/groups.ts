// State: the groups with a call under way, and whether the daemon is shutting down, with or without its
// services. Rebuilt from: the store, which has the calls under way.

import type { Store } from '../../adapters/storage/store_tables.ts';
import { serviceAddress } from '../../protocol/address.ts';
import { dependantsOf, withDependencies } from '../../protocol/dependency_order.ts';
import { fail } from '../../protocol/errors.ts';
import type { GroupsProtocol, StoredGroupCall } from '../../protocol/groups.ts';
import type { Member } from '../../protocol/registry.ts';
import { refuseSealed } from '../../protocol/sealed_record.ts';
import type { MemberStart, SleepReply, StartReply } from '../../protocol/service.ts';
import { refuseUncreated } from '../../protocol/stack_creation.ts';
import {
  actor,
  type Context,
  type Handlers,
  isFailure,
  type MessageOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { answersInOrder, MemberCalls, type MemberStop, shuttingDownFailure } from './member_calls.ts';
import { refuseEndless } from './member_failures.ts';

export interface GroupsConfig {
  store: Pick<Store, 'table'>;
  /** When the machine was booted, epoch milliseconds. Calls from before that are not continued. */
  bootedAt: number;
}

/** Between two attempts to start what a restart has stopped, while the disk is full. */
const FULL_DISK_RETRY_MS = 1_000;

/** A restart that has stopped its members. `askedAt`: monotonic. */
interface OwedStart {
  call: StoredGroupCall;
  askedAt: number;
}

const namesOf = (members: readonly Member[]): string[] => members.map(({ name }) => name);

class Groups {
  private readonly context: Context;
  private readonly config: GroupsConfig;
  private readonly calls: MemberCalls;
  private readonly busy = new Set<string>();
  /** Services being woken for waiting clients. */
  private readonly waking = new Set<string>();
  /** What waits for room on the disk, by group. */
  private readonly owed = new Map<string, OwedStart>();
  /** Stops and sleeps of groups that are under way, with the members that they end. */
  private readonly ending = new Set<{ names: ReadonlySet<string>; over: Promise<unknown> }>();
  private isLeft = false;

  constructor(context: Context, config: GroupsConfig, calls: MemberCalls) {
    this.context = context;
    this.config = config;
    this.calls = calls;
  }

  /** `resumed`, here and below: the call of an earlier daemon, which is continued. */
  start(
    { name, timeoutMs }: MessageOf<GroupsProtocol, 'start'>,
    resumed?: StoredGroupCall,
  ): Promise<{ services: StartReply[] }> {
    const askedAt = this.context.clock.monotonic();
    return this.kept(name, { verb: 'start', timeoutMs, members: resumed?.members }, async (members) => {
      const wanted = resumed ? await this.notOverridden(members) : members;
      const answers = await this.calls.startAll(wanted, { timeoutMs, askedAt }, resumed !== undefined);
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
    const service = this.context.ref(serviceAddress(name));
    tolerateFailure(woken, ({ message }) => service.tell('wakeFailed', { reason: message })).catch(
      (error: unknown) => this.context.crash(error),
    );
    return null;
  }

  sleepGroup(
    { name }: MessageOf<GroupsProtocol, 'sleepGroup'>,
    resumed?: StoredGroupCall,
  ): Promise<{ services: SleepReply[] }> {
    return this.kept(name, { ...resumed, verb: 'sleep' }, async (members, row) => {
      const [left, onDone] = this.notDone(name, row, members);
      const answers = await this.end(left, this.calls.sleepAll(left, resumed !== undefined, onDone));
      return { services: answersInOrder(members, answers) };
    });
  }

  wakeGroup(
    { name, timeoutMs }: MessageOf<GroupsProtocol, 'wakeGroup'>,
    resumed?: StoredGroupCall,
  ): Promise<{ services: StartReply[] }> {
    const askedAt = this.context.clock.monotonic();
    return this.kept(name, { verb: 'wake', timeoutMs, members: resumed?.members }, async (members) => {
      const { members: all } = await this.registry().ask('members', { group: null });
      const wanted = resumed ? await this.notOverridden(members) : members;
      const sleeping = wanted.filter(({ sleep }) => sleep).map((member) => member.name);
      const answers = await this.wakeAll(all, sleeping, { timeoutMs, askedAt }, resumed !== undefined);
      return { services: answersInOrder(members, answers) };
    });
  }

  /**
   * Wakes `names` and everything they depend on. Waits for the stop or sleep of a group first: it would take
   * away what they depend on.
   */
  private async wakeAll(
    all: Member[],
    names: string[],
    { timeoutMs, askedAt: since }: Pick<MemberStart, 'timeoutMs' | 'askedAt'>,
    isResumed = false,
  ): Promise<Map<string, StartReply>> {
    const wanted = withDependencies(all, names);
    const endingSome = () =>
      [...this.ending].filter((one) => [...one.names].some((name) => wanted.has(name)));
    let askedAt = since;
    for (let waiting = endingSome(); waiting.length > 0; waiting = endingSome()) {
      await Promise.allSettled(waiting.map(({ over }) => over));
      askedAt = this.context.clock.monotonic();
    }
    return this.calls.startAll(
      all.filter(({ name }) => wanted.has(name)),
      { timeoutMs, ...(askedAt !== undefined && { askedAt }), wake: true },
      isResumed,
    );
  }

  /** Returns the end of `members`, which wakes wait for. */
  private async end<A>(members: Member[], over: Promise<A>): Promise<A> {
    const ending = { names: new Set(namesOf(members)), over };
    this.ending.add(ending);
    try {
      return await over;
    } finally {
      this.ending.delete(ending);
    }
  }

  stop(
    { name, graceMs }: MessageOf<GroupsProtocol, 'stop'>,
    resumed?: StoredGroupCall,
  ): Promise<{ services: MemberStop[] }> {
    return this.kept(name, { ...resumed, verb: 'stop', graceMs }, async (members, row) => {
      const [left, onDone] = this.notDone(name, row, members);
      const stopped = this.calls.stopAll(left, { graceMs }, resumed !== undefined, onDone);
      const answers = await this.end(left, stopped);
      return { services: answersInOrder(members, answers) };
    });
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

  /** What this daemon does not finish from now on stays in the store for the next one. */
  leave(): null {
    this.isLeft = true;
    return null;
  }

  /** Stops all services; a restart that waits for room on the disk is over too. */
  async shutdown(): Promise<null> {
    const waiting = [...this.owed.keys()];
    this.owed.clear();
    await Promise.all(waiting.map((name) => tolerateFailure(this.forgetCall(name), () => undefined)));
    return this.calls.close();
  }

  private callAgain(name: string, stored: StoredGroupCall): Promise<unknown> {
    const { graceMs, timeoutMs } = stored;
    switch (stored.verb) {
      case undefined:
        return this.restartFrom(name, stored, true);
      case 'start':
        return this.start({ name, timeoutMs }, stored);
      case 'stop':
        return this.stop({ name, graceMs }, stored);
      case 'sleep':
        return this.sleepGroup({ name }, stored);
      case 'wake':
        return this.wakeGroup({ name, timeoutMs }, stored);
    }
  }

  /**
   * Each step is stored before it begins, so that a later daemon can continue. Services that `start` then
   * finds running were started by the restart, and stay.
   */
  private async restartFrom(
    name: string,
    restart: StoredGroupCall,
    isResumed = false,
    askedAt = this.context.clock.monotonic(),
  ): ReturnType<Groups['start']> {
    const rows = this.config.store.table('restarts');
    const { graceMs, step, timeoutMs } = restart;
    return this.withMembers(name, restart.members, async (members) => {
      refuseEndless(members);
      const row = { ...restart, members: namesOf(members) };
      const next: StoredGroupCall = { ...row, step: 'start' };
      let isStopped = step === 'start';
      try {
        if (!isStopped) {
          this.refuseFutile(members);
          await rows.put(name, row);
          const [left, onDone] = this.notDone(name, row, members);
          const request = { graceMs, forRestart: askedAt };
          await this.calls.stopAll(left, request, isResumed, onDone);
          isStopped = true;
          await rows.put(name, next);
        }
        const wanted = isResumed ? await this.notOverridden(members) : members;
        const answers = await this.calls.startAll(wanted, { timeoutMs, askedAt }, isResumed);
        return { services: answersInOrder(members, answers) };
      } catch (error) {
        if (isStopped && isFailure(error) && error.code === 'storage_full')
          this.startLater(name, { call: next, askedAt });
        throw error;
      } finally {
        await this.forgetCall(name);
      }
    });
  }

  /** Tries again, as a single service does, until the start has room or another call of the group comes. */
  private startLater(name: string, owed: OwedStart): void {
    const { clock } = this.context;
    this.owed.set(name, owed);
    clock.after(FULL_DISK_RETRY_MS, () => {
      if (this.owed.get(name) !== owed) return;
      const again = this.restartFrom(name, owed.call, true, owed.askedAt);
      tolerateFailure<unknown, null>(again, () => null).catch((error: unknown) => this.context.crash(error));
    });
  }

  /** Fails hook_refused, key_unusable if a member could not be started again after its stop. */
  private refuseFutile(members: Member[]): void {
    const { store } = this.config;
    for (const { name } of members) {
      const stored = store.table('services').get(name);
      if (!stored) continue;
      refuseUncreated(stored.spec, store);
      refuseSealed(stored);
    }
  }

  /**
   * `call`, which a later daemon makes again if this one does not finish it: members that it has reached
   * stay as they are. On a full disk a later daemon does not know it.
   */
  private kept<R>(
    name: string,
    { verb, graceMs = null, timeoutMs = null, members: known, done }: Partial<StoredGroupCall>,
    call: (members: Member[], row: StoredGroupCall) => Promise<R>,
  ): Promise<R> {
    const given = { verb, step: 'start', graceMs, timeoutMs, at: this.context.clock.now() } as const;
    return this.withMembers(name, known, async (members) => {
      const row = { ...given, members: namesOf(members), ...(done && { done }) };
      try {
        await tolerateFailure(this.config.store.table('restarts').put(name, row), () => undefined);
        return await call(members, row);
      } finally {
        await tolerateFailure(this.forgetCall(name), () => undefined);
      }
    });
  }

  /**
   * The members that the call in `row` has still to stop or put to sleep, and a function that stores that it
   * has. Without room on the disk, a later daemon does so again.
   */
  private notDone(
    group: string,
    row: StoredGroupCall,
    members: Member[],
  ): [members: Member[], onDone: (member: string) => Promise<void>] {
    const rows = this.config.store.table('restarts');
    const done = new Set(row.done);
    const left = members.filter(({ name }) => !done.has(name));
    const onDone = async (member: string): Promise<void> => {
      done.add(member);
      await tolerateFailure(rows.put(group, { ...row, done: [...done] }), () => undefined);
    };
    return [left, onDone];
  }

  /** The members that a client has not stopped or put to sleep since, and that depend on no such member. */
  private async notOverridden(members: Member[]): Promise<Member[]> {
    const overrides = this.config.store.table('overrides');
    const left = new Set<string>();
    for (const { name } of members) {
      // A removal stops the service too, but keeps nothing else from starting.
      if (!overrides.get(name) || (await this.calls.isRemoved(name))) continue;
      for (const one of [name, ...dependantsOf(members, name)]) left.add(one);
    }
    return members.filter(({ name }) => !left.has(name));
  }

  /**
   * For a call that is over, which it is not if only this actor is over, because the daemon shuts down, or
   * while it waits for room on the disk.
   */
  private async forgetCall(name: string): Promise<void> {
    if (this.owed.has(name) || (this.isLeft && this.context.scope.signal.aborted)) return;
    const { store } = this.config;
    const overrides = store.table('overrides');
    const over = overrides.all().filter(([, { group }]) => group === name);
    await Promise.all([store.table('restarts').remove(name), ...over.map(([one]) => overrides.remove(one))]);
  }

  /**
   * Runs `call` with the members of group `name`, one call per group at a time. `known`: the names of its
   * members when an earlier daemon began it; those removed since are left out.
   */
  private async withMembers<R>(
    name: string,
    known: readonly string[] | undefined,
    call: (members: Member[]) => Promise<R>,
  ): Promise<R> {
    if (this.calls.isClosing) throw shuttingDownFailure();
    if (this.busy.has(name)) throw fail('daemon_busy', `group ${name} is being started or stopped already`);
    this.busy.add(name);
    this.owed.delete(name);
    try {
      const { members: found } = await this.registry().ask('members', { group: known ? null : name });
      const names = known && new Set(known);
      const members = names ? found.filter((member) => names.has(member.name)) : found;
      if (members.length === 0) throw fail('unknown_group', `there is no group ${name}`);
      return await call(members);
    } finally {
      this.busy.delete(name);
    }
  }

  private registry() {
    return this.context.ref('registry');
  }
}

function init(context: Context, config: GroupsConfig): Handlers<GroupsProtocol> {
  const calls = new MemberCalls(context);
  const groups = new Groups(context, config, calls);
  return {
    start: (message) => context.replyLater(groups.start(message)),
    stop: (message) => context.replyLater(groups.stop(message)),
    restart: (message) => context.replyLater(groups.restart(message)),
    resume: () => groups.resume(),
    leave: () => groups.leave(),
    restartDependants: ({ name }) => context.replyLater(calls.restartDependants(name)),
    wake: (message) => context.replyLater(groups.wake(message)),
    knocked: (message) => groups.knocked(message),
    sleepGroup: (message) => context.replyLater(groups.sleepGroup(message)),
    wakeGroup: (message) => context.replyLater(groups.wakeGroup(message)),
    shutdown: () => context.replyLater(groups.shutdown()),
  };
}

export const groupsActor = actor<GroupsProtocol, GroupsConfig>('groups', init);
