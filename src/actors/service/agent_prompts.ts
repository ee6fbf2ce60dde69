// The prompts of one agent: typed one after another, as a person would, and never over a question.
// docs/reference.md "Prompt". Nothing about them is stored, so no later daemon types one again.
import type { AgentStatus } from '../../protocol/agent_state.ts';
import { fail } from '../../protocol/errors.ts';
import { appearedLines, isTextShown } from '../../protocol/prompt_text.ts';
import type { PromptMessage, PromptReply } from '../../protocol/prompts.ts';
import { type Clock, type Failure, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT_STATE, PROMPT } from '../../settings/agent_limits.ts';
import { cancelled, NOT_YET, type OpenPrompt, type PromptLook, PromptLooks } from './prompt_looks.ts';
import { type PromptTerminal, PromptTypist } from './prompt_typist.ts';
import { questionFailure } from './question_failure.ts';
import type { ServiceLog } from './service_log.ts';

export interface AgentPromptsOptions {
  name: string;
  clock: Clock;
  log: Pick<ServiceLog, 'watch' | 'end' | 'read'>;
  status(): AgentStatus;
  /** See `AgentState.actedAt`. */
  actedAt(): number;
  /** Calls `onChange` after every change of the agent's state. Returns a function that unsubscribes. */
  watchState(onChange: () => void): () => void;
  /** Fails not_running without a terminal, and no_prompt for an agent that takes none. */
  terminal(): PromptTerminal;
  /** Types into the terminal. Resolves when the program has room. */
  type(data: Uint8Array): Promise<void>;
  /** The lines of the scrollback, then those of the screen. Fails not_running. */
  readLines(): Promise<string[]>;
  /** Those of the run whose terminal was used last, also after its end. Fails not_running for another run. */
  readLinesOf(run: string): Promise<string[]>;
}

/** A prompt that was submitted. */
interface SubmittedPrompt {
  run: string;
  /** Epoch milliseconds. */
  at: number;
  /** The time of submission as monotonic milliseconds, because the wall clock may be set. */
  since: number;
  /** The lines shown before; null: the client does not want new lines. */
  before: string[] | null;
  /** Whether the program may still resume a conversation, and queue the prompt meanwhile. */
  mayBeQueued: boolean;
}

/** Whether the agent has no process. */
const hasEnded = ({ state }: AgentStatus): boolean => state === 'exited' || state === 'asleep';

export class AgentPrompts {
  private readonly options: AgentPromptsOptions;
  private readonly open = new Map<string, OpenPrompt>();
  /** Settles when the previous prompt has been submitted or has failed. */
  private turn: Promise<unknown> = Promise.resolve();
  private entering = 0;
  private submitted: SubmittedPrompt | null = null;
  private readonly looks: PromptLooks;
  private readonly typist: PromptTypist;

  constructor(options: AgentPromptsOptions) {
    this.options = options;
    this.looks = new PromptLooks(options);
    this.typist = new PromptTypist({ ...options, looks: this.looks });
  }

  /** See `PromptProtocol.prompt`. */
  async prompt(message: PromptMessage): Promise<PromptReply> {
    const { clock, log, name } = this.options;
    const { pid, run } = this.options.terminal();
    if (message.pid !== null && message.pid !== pid) {
      const what = `${name} does not run as process ${message.pid}, and nothing was typed`;
      throw fail('not_running', what, { hint: 'Send it again if it is for the present process.' });
    }
    if (this.entering > (message.queue ? PROMPT.maxQueued : 0))
      throw fail('agent_working', `another prompt is being typed to ${name} or is waiting`);
    const until = clock.monotonic() + message.timeoutMs;
    const prompt: OpenPrompt = { ...message, run, until, isCancelled: false, onChange: () => {} };
    this.open.set(prompt.id, prompt);
    // Starts before typing, so that no output is missed.
    const unwatch = log.watch(() => {});
    try {
      const submitted = await this.inTurn(() => this.enter(prompt));
      return await this.answer(prompt, submitted);
    } finally {
      unwatch();
      this.open.delete(prompt.id);
    }
  }

  /**
   * Whether an idle agent is about to work: a prompt is being typed or waits, or one was submitted so
   * recently that the state may not show it yet. Fails not_running without a terminal.
   */
  get isUnderWay(): boolean {
    return this.entering > 0 || !('found' in this.lookIdle(this.options.status()));
  }

  /** The client has disconnected: a prompt that is still waiting is not typed. */
  cancel(id: string): null {
    const prompt = this.open.get(id);
    if (!prompt) return null;
    prompt.isCancelled = true;
    prompt.onChange();
    return null;
  }

  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    this.entering += 1;
    const before = this.turn;
    const mine = (async () => {
      await before;
      return work();
    })();
    this.turn = mine.then(
      () => {},
      () => {},
    );
    try {
      return await mine;
    } finally {
      this.entering -= 1;
    }
  }

  /** Waits until the prompt may be typed, then types and submits it. */
  private async enter(prompt: OpenPrompt): Promise<SubmittedPrompt> {
    await this.untilReady(prompt);
    const terminal = this.options.terminal();
    const { run, typing } = terminal;
    const isAnswered = prompt.wait !== null;
    const before = isAnswered || typing.pauseMs > 0 ? await this.options.readLines() : [];
    const bytes = await this.typist.bytesOf(prompt.text, terminal);
    // The state may have changed while the screen was read.
    this.assertTypable(prompt);
    const from = await this.typist.type(prompt, bytes, typing, before, () => this.assertUnasked(run));
    const { clock } = this.options;
    const times = { at: clock.now(), since: clock.monotonic() };
    const mayBeQueued = typing.maySubmitLate === true && this.isNew(terminal);
    const submitted = { run, ...times, before: isAnswered ? before : null, mayBeQueued };
    this.submitted = submitted;
    await this.typist.untilMoved(prompt, from, typing);
    return submitted;
  }

  /** Fails agent_blocked when the agent has begun to ask, and not_running when `run` has ended. */
  private async assertUnasked(run: string): Promise<void> {
    const status = this.assertRuns(run);
    const what = `${this.options.name} asks something since the prompt was typed, so it was not submitted`;
    if (status.state === 'blocked') throw await this.blocked(status, what);
  }

  /** Resolves when a prompt may be typed. Fails as `assertTypable` does, and with wait_timeout. */
  private async untilReady(prompt: OpenPrompt): Promise<void> {
    const { name } = this.options;
    const { run } = prompt;
    const ready = await this.looks.until(prompt, prompt.until, (): PromptLook<true> => {
      const status = this.assertRuns(run);
      const againMs = this.unsettledMs(status);
      if (againMs > 0) return { againMs };
      if (status.state === 'blocked' || !prompt.queue) return { found: true };
      return this.lookIdle(status);
    });
    if (ready === null) throw fail('wait_timeout', `${name} was not idle in time, and nothing was typed`);
    const status = this.assertRuns(run);
    if (status.state === 'blocked') throw await this.blocked(status, `${name} waits for an answer`);
    this.assertTypable(prompt);
  }

  /**
   * How long to wait for a program that has just started to settle. It may show its prompt before it accepts
   * one, for example while it draws a long conversation.
   */
  private unsettledMs({ lastOutputAt, since, state }: AgentStatus): number {
    const terminal = this.options.terminal();
    if (state !== 'idle' || terminal.typing.pauseMs === 0 || !this.isNew(terminal)) return 0;
    return Math.max(0, Math.max(since, lastOutputAt ?? 0) + PROMPT.settleMs - this.options.clock.now());
  }

  private isNew({ startedAt }: PromptTerminal): boolean {
    const now = this.options.clock.now();
    // A start in the future means that the clock was set back.
    return now >= startedAt && now < startedAt + PROMPT.newMs;
  }

  /** Throws agent_working, not_running, and daemon_busy for a client that has disconnected. */
  private assertTypable(prompt: OpenPrompt): void {
    const { name } = this.options;
    if (prompt.isCancelled) throw cancelled();
    const status = this.assertRuns(prompt.run);
    if ('found' in this.lookIdle(status)) return;
    const doing = status.state === 'idle' ? 'has just been given a prompt' : `is ${status.state}`;
    throw fail('agent_working', `${name} ${doing}`);
  }

  /** Throws not_running when the run has ended. */
  private assertRuns(run: string): AgentStatus {
    const { name } = this.options;
    if (this.options.terminal().run !== run) throw fail('not_running', `${name} was started again`);
    return this.options.status();
  }

  /**
   * Whether the agent accepts a prompt. Unless the agent has acted since the last prompt, an `idle` is only
   * trusted after a quiet period, because the state may lag behind the next client.
   */
  private lookIdle(
    { lastOutputAt, state }: AgentStatus,
    restMs: number = AGENT_STATE.outputMs,
  ): PromptLook<true> {
    if (state !== 'idle') return NOT_YET;
    const { submitted } = this;
    const isOther = submitted?.run !== this.options.terminal().run;
    if (!submitted || isOther || this.options.actedAt() > submitted.at) return { found: true };
    const { clock } = this.options;
    const sinceOutput = clock.now() - (lastOutputAt ?? 0);
    const sinceSubmitted = clock.monotonic() - submitted.since;
    // Output in the future means that the clock was set back.
    const quietMs = sinceOutput < 0 ? sinceSubmitted : Math.min(sinceOutput, sinceSubmitted);
    return quietMs >= restMs ? { found: true } : { againMs: restMs - quietMs };
  }

  /**
   * How long to wait before trusting a `blocked` that is inferred only from an unknown, quiet screen, or
   * whose question is not shown yet, so that the program would not take an answer.
   */
  private guessedMs({ question, reason, since, state }: AgentStatus): number {
    if (state !== 'blocked') return 0;
    const unseenMs = question.length === 0 ? PROMPT.unseenMs : 0;
    const maxMs = reason.authority === 'output' ? PROMPT.guessMs : unseenMs;
    const lastedMs = this.options.clock.now() - since;
    // A time in the future means that the clock was set back.
    return lastedMs < 0 ? 0 : maxMs - lastedMs;
  }

  private async answer(prompt: OpenPrompt, submitted: SubmittedPrompt): Promise<PromptReply> {
    const { clock, log, name } = this.options;
    if (prompt.wait === null) return { status: this.options.status(), lines: null };
    // Up to this log offset the output has not shown the prompt: a busy program has not taken it yet.
    let untaken: number | null = null;
    const isOver = (): PromptLook<AgentStatus> => {
      const status = this.options.status();
      // Its end may come before the answer to the submitting key, and then counts as earlier.
      if (hasEnded(status)) return { found: status };
      const hasChanged = status.since > submitted.at;
      // A program that takes the prompt from its own queue is idle for a moment.
      const briefMs = submitted.mayBeQueued ? this.unsettledMs(status) : 0;
      const doubtMs = Math.max(briefMs, this.guessedMs(status));
      if (doubtMs > 0 && prompt.wait === 'idle') return { againMs: doubtMs };
      const isEnd = prompt.wait === 'change' || !['working', 'idle'].includes(status.state);
      if (hasChanged && isEnd) return status.state === 'starting' ? NOT_YET : { found: status };
      const restMs = untaken === log.end() ? PROMPT.untakenMs : AGENT_STATE.outputMs;
      const idle = this.lookIdle(status, restMs);
      return 'found' in idle ? { found: status } : idle;
    };
    for (;;) {
      const status = await this.looks.until(prompt, prompt.until, isOver);
      if (!status) {
        const { state } = this.options.status();
        throw fail('wait_timeout', `the prompt was typed, and ${name} is ${state}`);
      }
      const lines = await this.linesSince(submitted);
      if (this.isTaken(prompt, submitted, status, lines) || untaken === log.end()) return { status, lines };
      untaken = log.end();
      // The program was busy with something else until now.
      submitted.at = clock.now();
    }
  }

  /** Whether `status` can be the result of the prompt. `lines`: those that are new on the screen. */
  private isTaken(
    { text }: OpenPrompt,
    { at, mayBeQueued }: SubmittedPrompt,
    status: AgentStatus,
    lines: readonly string[],
  ): boolean {
    const { since, state } = status;
    if (hasEnded(status)) return true;
    if (mayBeQueued && state === 'idle') return isTextShown(text, [], lines);
    return since > at || lines.length > 0;
  }

  /** The lines shown now that were not there before; none when another run has begun. */
  private linesSince({ before, run }: SubmittedPrompt): Promise<string[]> {
    return tolerateFailure(
      this.options.readLinesOf(run).then((after) => appearedLines(before ?? [], after)),
      () => [],
    );
  }

  /** The refusal of a prompt while the agent waits for an answer, with the lines of its question. */
  private async blocked({ question }: AgentStatus, message: string): Promise<Failure> {
    const shown = await tolerateFailure(this.options.readLines(), () => []);
    const lines =
      question.length > 0 ? question : shown.filter((line) => line !== '').slice(-PROMPT.questionLines);
    return questionFailure(message, lines);
  }
}
