// The conversation of an agent, and its sleep: docs/reference.md "Sessions of agents". A conversation
// outlives processes: every start resumes it, unless forced to begin a new one.
//
// A sleep is stored before the process is stopped, so that whoever finds the run ended knows that the agent
// sleeps. The id is also in the host's ledger, with the run that was given it.
import { randomUUID } from 'node:crypto';
import {
  commandWithSession,
  isSessionId,
  type KeptScreen,
  type SessionFlags,
  type StoredSession,
} from '../../protocol/agent_sessions.ts';
import { codingAgent } from '../../protocol/agent_types.ts';
import { fail } from '../../protocol/errors.ts';
import type { LastEnd, SleepReply, StopReply, StoredService } from '../../protocol/service.ts';
import { type Context, type Failure, tolerateFailure } from '../../runtime/actor.ts';
import { SESSION } from '../../settings/agent_limits.ts';
import { AgentConversations, type AgentConversationsOptions } from './agent_conversations.ts';
import { questionFailure } from './question_failure.ts';
import type { Known } from './reconcile.ts';
import type { RunOutcome } from './restart_policy.ts';
import type { LiveRun, Run } from './run.ts';
import type { Slept } from './run_events.ts';
import { isResting, liveRun } from './state.ts';

export interface AgentSessionOptions extends AgentConversationsOptions {
  context: Context;
  /** What is known of the service. */
  known: () => Known;
  /** The current screen of the run. */
  screen: (run: string) => KeptScreen;
  /** Whether it has just been given a prompt, which its state may not show yet. Called while it is idle. */
  isPrompted: () => boolean;
  /** Ends the process and cancels any restart. */
  stop: () => Promise<StopReply>;
  /** The row in the views must be sent again. */
  onChanged: () => void;
}

/** How the conversations of an agent are continued; null: they cannot be. */
const flagsOf = ({ spec: { agent } }: StoredService): SessionFlags | null =>
  (agent && codingAgent(agent.agentType)?.session) ?? null;

const FORCE_HINT =
  'With force=true (--force) it goes on all the same, and the next start begins a new conversation.';

export class AgentSession {
  private readonly options: AgentSessionOptions;
  private readonly conversations: AgentConversations;
  /** null: no conversation is known. */
  private row: StoredSession | null;
  /** The next process must begin a new conversation. */
  private isForced = false;
  private sleeping: Promise<SleepReply> | null = null;
  /** It is being stopped for the shutdown of the daemon, and is asleep afterwards. */
  private isSuspended = false;
  private searching: Promise<void> = Promise.resolve();
  /** The state change at which the conversation was last searched for. */
  private searchedAt = 0;
  private cancelIdle = (): void => {};
  /** When a sleep last failed, epoch milliseconds: the idle time then begins anew. */
  private refusedAt = 0;

  constructor(options: AgentSessionOptions) {
    this.options = options;
    this.conversations = new AgentConversations(options);
    this.row = options.table.get(options.name) ?? null;
    options.context.scope.defer(() => this.cancelIdle());
  }

  /** The id of the conversation; null: none is known. */
  get id(): string | null {
    return this.row?.id ?? null;
  }

  /** Whether it has no process because it is asleep. */
  get isAsleep(): boolean {
    const { end, state } = this.options.known();
    return isResting(state) && end !== null && this.row?.asleep?.after === end.run;
  }

  /** Whether anything about it is stored. */
  get isKept(): boolean {
    return this.row !== null;
  }

  /** Whether it is being put to sleep. */
  get isFallingAsleep(): boolean {
    return this.sleeping !== null;
  }

  /** Its screen before it fell asleep; null unless it is asleep. */
  get kept(): { run: string; screen: KeptScreen } | null {
    const { asleep } = this.row ?? {};
    return asleep && this.isAsleep ? { run: asleep.after, screen: asleep.screen } : null;
  }

  /** What the journal says about the end of `run` if the agent went to sleep; null: it did not. */
  sleptAfter(run: string): Slept | null {
    if (this.row?.asleep?.after !== run) return null;
    return { type: 'agent.slept', fields: { name: this.options.name, sessionId: this.id } };
  }

  /** Resolves when a sleep under way is over. */
  async settled(): Promise<void> {
    if (this.sleeping) await tolerateFailure(this.sleeping, () => null);
  }

  /**
   * A client requests a start. Fails no_session for a wake that would have to begin a new conversation,
   * unless `isForced`.
   */
  asked(isWake: boolean, isForced: boolean): void {
    const { known, name } = this.options;
    const { state, stored } = known();
    if (!stored?.spec.agent || liveRun(state)) return;
    if (isWake && !isForced && this.id === null && flagsOf(stored))
      throw this.noSession(`${name} cannot be woken`);
    this.isForced = isForced;
  }

  /** The record from which `run` is started: its command continues the conversation, if there is one. */
  async prepared(run: Run, stored: StoredService): Promise<StoredService> {
    const { spec } = stored;
    const flags = flagsOf(stored);
    const isForced = this.isForced;
    this.isForced = false;
    if (!flags) return stored;
    const before = isForced ? null : this.row;
    const id = before?.id ?? (flags.begin === null ? null : randomUUID());
    const { end } = this.options.known();
    const woke = !isForced && end !== null && this.row?.asleep?.after === end.run;
    if (before !== this.row || id !== this.id) await this.note(id === null ? null : { ...before, id });
    if (id === null) return stored;
    run.metadata = { ...run.metadata, session: { id, ...(woke && { woke }) } };
    // Nothing has been said yet, so there is nothing to resume.
    const isNew =
      flags.begin !== null && !this.row?.isBegun && !this.conversations.hasFileOf(id, flags, stored);
    const cmd = commandWithSession(spec.cmd, isNew ? (flags.begin ?? '') : flags.resume, id);
    return { ...stored, spec: { ...spec, cmd } };
  }

  /** The agent has reported the id of its conversation. Invalid ids are ignored. */
  async learn(id: string): Promise<void> {
    if (!isSessionId(id) || (this.id === id && this.row?.isBegun)) return;
    await this.note({ ...this.row, id, isBegun: true });
  }

  /** As `learn`, without waiting for it. */
  learnSoon(id: string): void {
    this.inBackground(this.learn(id));
  }

  /** Must be called after each change of the service, of the agent's state, and of its viewers. */
  follow(): void {
    const { context, known, status } = this.options;
    this.cancelIdle();
    const { state, stored } = known();
    if (state.phase !== 'running' || !stored?.spec.agent) return;
    const { run } = state;
    const { session } = run.metadata;
    // A killed daemon may have had no disk space to store it.
    if (this.row === null && session) this.inBackground(this.note({ id: session.id }));
    // The earlier daemon decided on a sleep but did not stop the process: the agent just goes on.
    const isLeft = !this.sleeping && !this.isSuspended;
    if (this.row?.asleep?.after === run.id && isLeft) this.inBackground(this.ended());
    const { state: doing, since, viewers } = status();
    if (doing !== 'idle' && doing !== 'blocked') return;
    if (since !== this.searchedAt) this.inBackground(this.search(run, false));
    this.searchedAt = since;
    const { sleep } = stored.spec;
    if (!sleep || doing !== 'idle' || viewers > 0 || this.sleeping) return;
    const idleMs = Math.max(SESSION.minIdleMs, Math.round(sleep.afterMinutes * 60_000));
    // At most `idleMs`, even if the clock was set back.
    const from = Math.max(since, this.refusedAt);
    const leftMs = Math.min(idleMs, Math.max(0, from + idleMs - context.clock.now()));
    this.cancelIdle = context.clock.after(leftMs, () => this.inBackground(this.sleep(false)));
  }

  /**
   * Ends the process and keeps the conversation. Harmless when it is asleep. Fails not_running, agent_working
   * and agent_blocked; no_session if the conversation would be lost, unless `isForced`; storage_full; and as
   * a stop does. `onAccepted`: called unless it is refused.
   */
  sleep(isForced: boolean, onAccepted = (): void => {}): Promise<SleepReply> {
    this.sleeping ??= Promise.resolve()
      .then(() => this.sleepNow(isForced, onAccepted))
      .catch((error: unknown) => {
        this.refusedAt = this.options.context.clock.now();
        throw error;
      })
      .finally(() => {
        this.sleeping = null;
        // A change during the sleep may have cancelled the timer.
        this.follow();
      });
    return this.sleeping;
  }

  /**
   * Called before the daemon stops the agent for its own shutdown, so that the next daemon finds it asleep.
   */
  async suspend(): Promise<void> {
    const run = liveRun(this.options.known().state);
    this.isSuspended = true;
    if (run && this.id !== null) await this.note(this.rowAsleep(run));
  }

  /**
   * A run has ended. Returns whether the agent counts as asleep: nobody ended it, and it lost its machine or
   * its host.
   */
  onEnded(run: LiveRun, { cause, exitUnknown }: RunOutcome, isStopped: boolean): boolean {
    if (this.row?.asleep?.after === run.id) return true;
    const isGone = cause === 'reboot' || exitUnknown;
    if (!isGone || isStopped || this.id === null) return false;
    this.row = this.rowAsleep(run);
    return true;
  }

  /** Resolves when the outcome of `onEnded` is on disk. */
  async recorded(end: LastEnd): Promise<void> {
    const { name, table } = this.options;
    if (this.row?.asleep?.after === end.run) await table.put(name, this.row);
  }

  /** A client has stopped it, so it is no longer asleep. */
  async ended(): Promise<void> {
    if (this.row?.asleep) await this.note({ id: this.id, ...(this.row.isBegun && { isBegun: true }) });
  }

  /** A client restarts it, so that it is not asleep after its run has ended. */
  forgoSleep(): void {
    const run = liveRun(this.options.known().state);
    if (run && this.row?.asleep?.after === run.id) this.inBackground(this.ended());
  }

  /** Forgets the conversation of an agent that is removed. */
  async forget(): Promise<void> {
    this.cancelIdle();
    if (this.row) await this.note(null);
  }

  private async sleepNow(isForced: boolean, onAccepted: () => void): Promise<SleepReply> {
    const { known, name, stop, onChanged } = this.options;
    const reply = { name, status: 'sleeping' } as const;
    if (this.isAsleep) {
      onAccepted();
      return reply;
    }
    const run = this.idleRun();
    await this.search(run, true);
    if (this.id === null && !isForced) throw this.noSession(`${name} is not put to sleep`);
    const before = this.row;
    await this.options.table.put(name, this.rowAsleep(run));
    try {
      // Someone may have typed meanwhile.
      if (this.idleRun() !== run) throw fail('daemon_busy', `${name} was started again in the meantime`);
    } catch (error) {
      await this.note(before);
      throw error;
    }
    this.row = this.rowAsleep(run);
    onAccepted();
    await stop();
    if (liveRun(known().state)) throw fail('daemon_busy', `${name} was started again in the meantime`);
    onChanged();
    return reply;
  }

  /** The run of an agent that is idle. Fails not_running, agent_working and agent_blocked. */
  private idleRun(): LiveRun {
    const { isPrompted, known, name, status } = this.options;
    const { state } = known();
    const run = liveRun(state);
    if (!run) throw fail('not_running', `${name} does not run`);
    const { state: doing, question } = status();
    if (doing === 'idle' && state.phase === 'running') {
      if (!isPrompted()) return run;
      throw fail('agent_working', `${name} has just been given a prompt: it is not put to sleep`);
    }
    if (doing === 'blocked')
      throw questionFailure(`${name} waits for an answer, so it is not put to sleep`, question);
    throw fail('agent_working', `${name} is ${doing}: only an idle agent is put to sleep`);
  }

  private rowAsleep(run: LiveRun): StoredSession {
    return { ...this.row, id: this.id, asleep: { after: run.id, screen: this.options.screen(run.id) } };
  }

  private noSession(what: string): Failure {
    return fail('no_session', `${what}: no conversation of it is known`, { hint: FORCE_HINT });
  }

  /** Looks for the id of the conversation of `run`; by a command only if `isThorough` or none is known. */
  private search(run: LiveRun, isThorough: boolean): Promise<void> {
    this.searching = this.searching.then(() => this.searchNow(run, isThorough));
    return this.searching;
  }

  private async searchNow(run: LiveRun, isThorough: boolean): Promise<void> {
    const { known } = this.options;
    const { stored } = known();
    const flags = stored && flagsOf(stored);
    if (!stored || !flags) return;
    const id = await this.conversations.idOf(run, flags, stored, { known: this.id, isThorough });
    if (id !== null && liveRun(known().state)?.id === run.id) await this.learn(id);
  }

  /** Stores the row as soon as there is disk space. Without space, a later daemon will not know it. */
  private async note(row: StoredSession | null): Promise<void> {
    const { name, table, onChanged } = this.options;
    this.row = row;
    onChanged();
    const stored = row ? table.put(name, row) : table.remove(name);
    await tolerateFailure(stored, () => undefined);
  }

  private inBackground(work: Promise<unknown>): void {
    tolerateFailure(work, () => undefined).catch((error: unknown) => this.options.context.crash(error));
  }
}
