// The prompts of one agent: typed one after another, as a person would, and never over a question.
// docs/reference.md "Prompt". Nothing about them is stored, so no later daemon types one again.
import type { AgentStatus } from '../../protocol/agent_state.ts';
import type { PromptTyping } from '../../protocol/coding_agents.ts';
import { fail } from '../../protocol/errors.ts';
import { appearedLines, typedPrompt } from '../../protocol/prompt_text.ts';
import type { PromptMessage, PromptReply } from '../../protocol/prompts.ts';
import { keyBytes } from '../../protocol/terminal_keys.ts';
import { type Clock, type Failure, tolerateFailure } from '../../runtime/actor.ts';
import { AGENT_STATE, PROMPT } from '../../settings/agent_limits.ts';

import { PasteMode } from './paste_mode.ts';
import type { ServiceLog } from './service_log.ts';

/** The terminal that prompts are typed into. */
export interface PromptTerminal {
  run: string;
  /** Epoch milliseconds. */
  startedAt: number;
  /** The offset in the log from which the output of the run begins. */
  logFrom: number;
  typing: PromptTyping;
}

export interface AgentPromptsOptions {
  name: string;
  clock: Clock;
  log: Pick<ServiceLog, 'watch' | 'end' | 'read'>;
  status(): AgentStatus;
  /** Calls `onChange` after every change of what the agent is doing. Returns a function that ends it. */
  watchState(onChange: () => void): () => void;
  /** Fails not_running without a terminal, and no_prompt for an agent that takes none. */
  terminal(): PromptTerminal;
  /** Types into the terminal. Resolves when the program has room. */
  type(data: Uint8Array): Promise<void>;
  /** The lines of the screen, after those that have left it upwards. */
  readLines(): Promise<string[]>;
}

/** A prompt that has not been answered yet. */
interface OpenPrompt extends PromptMessage {
  /** Monotonic time at which its client no longer waits. */
  until: number;
  isCancelled: boolean;
  /** Looks again at what it waits for. */
  onChange: () => void;
}

/** A prompt that was submitted. */
interface SubmittedPrompt {
  run: string;
  /** Epoch milliseconds. */
  at: number;
  /** The lines that were there before; null: the client does not want any. */
  before: string[] | null;
}

/** What a look has found; or that there is nothing yet, and the ms after which time may change that. */
type Look<T> = { found: T } | { againMs: number | null };
const NOT_YET = { againMs: null } as const;

const textBytes = (key: string): string => keyBytes(key) ?? '';

export class AgentPrompts {
  private readonly options: AgentPromptsOptions;
  private readonly open = new Map<string, OpenPrompt>();
  /** Ends when the prompt before has been submitted, or has failed. */
  private turn: Promise<unknown> = Promise.resolve();
  private entering = 0;
  private submitted: SubmittedPrompt | null = null;
  private paste: { run: string; mode: PasteMode } | null = null;

  constructor(options: AgentPromptsOptions) {
    this.options = options;
  }

  /** See `PromptProtocol.prompt`. */
  async prompt(message: PromptMessage): Promise<PromptReply> {
    const { clock, log, name } = this.options;
    this.options.terminal();
    if (this.entering > (message.queue ? PROMPT.maxQueued : 0))
      throw fail('agent_working', `another prompt is being typed to ${name}, or waits for it`);
    const until = clock.monotonic() + message.timeoutMs;
    const prompt: OpenPrompt = { ...message, until, isCancelled: false, onChange: () => {} };
    this.open.set(prompt.id, prompt);
    // Before it is typed, so that no output of it is missed.
    const unwatch = log.watch(() => {});
    try {
      const submitted = await this.inTurn(() => this.enter(prompt));
      return await this.answer(prompt, submitted);
    } finally {
      unwatch();
      this.open.delete(prompt.id);
    }
  }

  /** The client has gone: a prompt that waits is not typed. */
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

  /** Types a prompt when it may be typed, and submits it. */
  private async enter(prompt: OpenPrompt): Promise<SubmittedPrompt> {
    await this.untilReady(prompt);
    const { run, typing, logFrom } = this.options.terminal();
    const before = prompt.wait === null ? null : await this.options.readLines();
    const isPasted = typing.bracketedPaste && (await this.pasteMode(run, logFrom).read());
    const newline = typing.newline === null ? null : textBytes(typing.newline);
    const typed = typedPrompt(prompt.text, { isPasted, newline });
    if ('fault' in typed) throw textFault(typed.fault);
    // Reading took a moment.
    this.assertTypable(prompt, run);
    const from = await this.typeAll(prompt, run, typed.bytes, typing);
    const submitted = { run, at: this.options.clock.now(), before };
    this.submitted = submitted;
    await this.untilMoved(prompt, from);
    return submitted;
  }

  /** Types text and submitting key. Resolves with the log offset from which output answers it. */
  private async typeAll(
    prompt: OpenPrompt,
    run: string,
    text: Uint8Array,
    { pauseMs, submit }: PromptTyping,
  ): Promise<number> {
    const { log, name } = this.options;
    const from = log.end();
    const enter = Buffer.from(textBytes(submit));
    // In one piece: there is no moment at which half of it is typed.
    if (pauseMs === 0) {
      await this.options.type(Buffer.concat([text, enter]));
      return from;
    }
    await this.options.type(text);
    await this.untilTaken(prompt, from, pauseMs);
    const status = this.options.status();
    if (status.state === 'blocked')
      throw await this.blocked(
        status,
        `${name} asks something since the prompt was typed, so it was not submitted`,
      );
    this.assertRuns(run);
    const end = log.end();
    await this.options.type(enter);
    return end;
  }

  /** Resolves when a prompt may be typed. Fails as `assertTypable` does, and with wait_timeout. */
  private async untilReady(prompt: OpenPrompt): Promise<void> {
    const { run } = this.options.terminal();
    const { name } = this.options;
    const ready = await this.until(prompt, prompt.until, (): Look<true> => {
      const status = this.assertRuns(run);
      const againMs = this.unsettledMs(status);
      if (againMs > 0) return { againMs };
      if (status.state === 'blocked' || !prompt.queue) return { found: true };
      return this.lookIdle(status);
    });
    if (ready === null) throw fail('wait_timeout', `${name} was not idle in time, and nothing was typed`);
    const status = this.assertRuns(run);
    if (status.state === 'blocked') throw await this.blocked(status, `${name} waits for an answer`);
    this.assertTypable(prompt, run);
  }

  /**
   * How long to wait for a program that has just started to come to a rest: it may show its prompt and not
   * take one yet, as while it draws a long conversation.
   */
  private unsettledMs({ lastOutputAt, since, state }: AgentStatus): number {
    const now = this.options.clock.now();
    const { startedAt, typing } = this.options.terminal();
    const isNew = typing.pauseMs > 0 && now < startedAt + PROMPT.newMs;
    if (state !== 'idle' || !isNew) return 0;
    return Math.max(0, Math.max(since, lastOutputAt ?? 0) + PROMPT.settleMs - now);
  }

  /** Throws agent_working, not_running, and for a client that has gone. */
  private assertTypable(prompt: OpenPrompt, run: string): void {
    const { name } = this.options;
    if (prompt.isCancelled) throw cancelled();
    const status = this.assertRuns(run);
    if ('found' in this.lookIdle(status)) return;
    const doing = status.state === 'idle' ? 'has just been given a prompt' : `is ${status.state}`;
    throw fail('agent_working', `${name} ${doing}`);
  }

  /** Throws not_running when the run has ended. */
  private assertRuns(run: string): AgentStatus {
    const { name } = this.options;
    if (this.options.terminal().run !== run) throw fail('not_running', `${name} was started anew`);
    return this.options.status();
  }

  /**
   * Whether the agent takes a prompt. An `idle` from before the last prompt is believed only when nothing has
   * moved for a while: what tells the state may be slower than the next client.
   */
  private lookIdle({ lastOutputAt, since, state }: AgentStatus): Look<true> {
    if (state !== 'idle') return NOT_YET;
    const { submitted } = this;
    const isOther = submitted?.run !== this.options.terminal().run;
    if (!submitted || isOther || since > submitted.at) return { found: true };
    const quietMs = this.options.clock.now() - Math.max(submitted.at, lastOutputAt ?? 0);
    return quietMs >= AGENT_STATE.outputMs ? { found: true } : { againMs: AGENT_STATE.outputMs - quietMs };
  }

  /**
   * Resolves when the program has shown that it has the text, has had its pause since, and what it prints has
   * come to a rest; or when that takes too long. A busy program would read text and Enter as one.
   */
  private async untilTaken(prompt: OpenPrompt, from: number, pauseMs: number): Promise<void> {
    const { clock, log } = this.options;
    const latest = clock.monotonic() + PROMPT.maxEchoMs;
    let end = from;
    let shownAt: number | null = null;
    let restsFrom = 0;
    await this.until({ ...prompt, isCancelled: false }, latest, (): Look<true> => {
      const now = clock.monotonic();
      if (log.end() !== end) restsFrom = now;
      end = log.end();
      if (end === from) return NOT_YET;
      shownAt ??= now;
      const due = Math.max(shownAt + pauseMs, restsFrom + PROMPT.echoRestMs);
      return now >= due ? { found: true } : { againMs: due - now };
    });
  }

  /** Fails agent_stalled when the program prints nothing. */
  private async untilMoved(prompt: OpenPrompt, from: number): Promise<void> {
    const { clock, log, name } = this.options;
    const latest = clock.monotonic() + PROMPT.stalledMs;
    const hasMoved = (): Look<true> => (log.end() > from ? { found: true } : NOT_YET);
    if ((await this.until(prompt, latest, hasMoved)) === null)
      throw fail('agent_stalled', `${name} has printed nothing since the prompt was typed`);
  }

  private async answer(prompt: OpenPrompt, { at, before, run }: SubmittedPrompt): Promise<PromptReply> {
    const { name } = this.options;
    if (prompt.wait === null) return { status: this.options.status(), lines: null };
    const isOver = (): Look<AgentStatus> => {
      const status = this.options.status();
      const hasChanged = status.since > at;
      if (prompt.wait === 'change' ? hasChanged : hasChanged && status.state !== 'working')
        return status.state === 'starting' ? NOT_YET : { found: status };
      const idle = prompt.wait === 'change' ? NOT_YET : this.lookIdle(status);
      return 'found' in idle ? { found: status } : idle;
    };
    const status = await this.until(prompt, prompt.until, isOver);
    if (!status) {
      const { state } = this.options.status();
      throw fail('wait_timeout', `the prompt was typed, and ${name} is ${state}`);
    }
    return { status, lines: await this.linesSince(before ?? [], run) };
  }

  /** The lines that are there now and were not before; none when the run is over. */
  private linesSince(before: readonly string[], run: string): Promise<string[]> {
    const { readLines, status, terminal } = this.options;
    const hasEnded = ['exited', 'asleep'].includes(status().state) || terminal().run !== run;
    if (hasEnded) return Promise.resolve([]);
    return tolerateFailure(
      readLines().then((after) => appearedLines(before, after)),
      () => [],
    );
  }

  /** The refusal of a prompt while the agent waits for an answer, with the lines of its question. */
  private async blocked({ question }: AgentStatus, message: string): Promise<Failure> {
    const shown = await tolerateFailure(this.options.readLines(), () => []);
    const lines =
      question.length > 0 ? question : shown.filter((line) => line !== '').slice(-PROMPT.questionLines);
    return fail('agent_blocked', message, {
      details: lines.map((line) => ({ path: 'question', message: line })),
    });
  }

  private pasteMode(run: string, logFrom: number): PasteMode {
    const { log } = this.options;
    if (this.paste?.run !== run) {
      const read = (offset: number, limit: number) => log.read(offset, limit, run);
      this.paste = { run, mode: new PasteMode({ read, end: () => log.end() }, logFrom) };
    }
    return this.paste.mode;
  }

  /** Looks until something is found; null at the monotonic time `latest`. Fails when the client has gone. */
  private until<T>(prompt: OpenPrompt, latest: number, look: () => Look<T>): Promise<T | null> {
    const { clock, log, watchState } = this.options;
    let again = (): void => {};
    const ends = [watchState(() => again()), log.watch(() => again())];
    prompt.onChange = () => again();
    const found = new Promise<T | null>((resolve, reject) => {
      let cancel = (): void => {};
      let isOver = false;
      const done = (settle: () => void): void => {
        isOver = true;
        cancel();
        settle();
      };
      again = () => {
        if (isOver) return;
        cancel();
        try {
          if (prompt.isCancelled) throw cancelled();
          const seen = look();
          const left = latest - clock.monotonic();
          if ('found' in seen) done(() => resolve(seen.found));
          else if (left <= 0) done(() => resolve(null));
          else cancel = clock.after(Math.min(left, seen.againMs ?? left), again);
        } catch (error) {
          done(() => reject(error));
        }
      };
      again();
    });
    return found.finally(() => {
      for (const end of ends) end();
    });
  }
}

const cancelled = (): Failure => fail('daemon_busy', 'its client has gone');

/** The refusal of a text. */
function textFault(fault: string): Failure {
  const message = `text cannot arrive exactly: ${fault}`;
  return fail('invalid_spec', message, { details: [{ path: 'text', message }] });
}
