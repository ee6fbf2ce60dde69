// Types a prompt into a terminal as a person would: the text and then, once the program shows it and has
// paused, the key that submits it. docs/reference.md "Prompt".
import type { PromptTyping } from '../../protocol/coding_agents.ts';
import { fail } from '../../protocol/errors.ts';
import { isBlankAdded, isStillTyped, isTextShown, typedPrompt } from '../../protocol/prompt_text.ts';
import { keyBytes } from '../../protocol/terminal_keys.ts';
import { type Clock, tolerateFailure } from '../../runtime/actor.ts';
import { PROMPT } from '../../settings/agent_limits.ts';
import { PasteMode } from './paste_mode.ts';
import { NOT_YET, type OpenPrompt, type PromptLook, type PromptLooks } from './prompt_looks.ts';
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

export interface PromptTypistOptions {
  name: string;
  clock: Clock;
  log: Pick<ServiceLog, 'end' | 'read'>;
  looks: PromptLooks;
  /** Types into the terminal. Resolves when the program has room. */
  type(data: Uint8Array): Promise<void>;
  /** The lines of the screen, after those that have left it upwards. */
  readLines(): Promise<string[]>;
}

const textBytes = (key: string): string => keyBytes(key) ?? '';

export class PromptTypist {
  private readonly options: PromptTypistOptions;
  private paste: { run: string; mode: PasteMode } | null = null;

  constructor(options: PromptTypistOptions) {
    this.options = options;
  }

  /**
   * The bytes that type `text` in the terminal's current mode. Fails invalid_spec if it would not arrive
   * exactly.
   */
  async bytesOf(text: string, { run, logFrom, typing }: PromptTerminal): Promise<Uint8Array> {
    const isPasted = typing.bracketedPaste && (await this.pasteMode(run, logFrom).read());
    const newline = typing.newline === null ? null : textBytes(typing.newline);
    const typed = typedPrompt(text, { isPasted, newline });
    if ('bytes' in typed) return typed.bytes;
    const message = `text cannot arrive exactly: ${typed.fault}`;
    throw fail('invalid_spec', message, { details: [{ path: 'text', message }] });
  }

  /**
   * Types `bytes`, the text of the prompt, and the submitting key, unless `assertOpen` rejects after the
   * text. `before`: the lines shown before. Resolves with the log offset from which output responds to the
   * prompt.
   */
  async type(
    prompt: OpenPrompt,
    bytes: Uint8Array,
    { maySubmitLate, pauseMs, submit }: PromptTyping,
    before: readonly string[],
    assertOpen: () => Promise<void>,
  ): Promise<number> {
    const { log, name, type } = this.options;
    const from = log.end();
    const enter = Buffer.from(textBytes(submit));
    // In one write, so that the prompt is never half typed.
    if (pauseMs === 0) {
      await type(Buffer.concat([bytes, enter]));
      return from;
    }
    await type(bytes);
    // Once typed, the prompt must be submitted even if its client disconnects.
    const owned = { ...prompt, isCancelled: false };
    let typed = await this.untilShown(owned, from, before);
    for (let left: number = PROMPT.maxSubmits; left > 0; left -= 1) {
      await this.untilRest(owned, log.end(), pauseMs);
      await assertOpen();
      const shown = maySubmitLate ? await this.shownLines() : null;
      // A program that begins to resume a conversation hides the text for a while.
      if (!typed || (shown && isTextShown(prompt.text, before, shown))) typed = shown;
      const end = log.end();
      await type(enter);
      if (!shown || !typed || (await this.isSubmitted(owned, end, before, typed))) return end;
    }
    throw fail('agent_stalled', `${name} still shows the prompt as it was typed`);
  }

  /**
   * Whether the program has taken the text. It has not if the submitting key became a newline, or if the text
   * is still there as typed after something else was drawn: a program that resumes a conversation may show
   * its prompt before it takes keys. `typed`: the last lines that showed the text before the key was pressed
   * at the log offset `from`; `before`: those before the text was typed. Unclear cases count as taken.
   */
  private async isSubmitted(
    prompt: OpenPrompt,
    from: number,
    before: readonly string[],
    typed: readonly string[],
  ): Promise<boolean> {
    const { clock, log } = this.options;
    const latest = clock.monotonic() + PROMPT.maxDeafMs;
    let isTyped = false;
    for (let seen = from; clock.monotonic() < latest; ) {
      await this.untilRest(prompt, seen, 0);
      const end = log.end();
      const lines = await this.shownLines();
      if (!lines) return true;
      if (isBlankAdded(typed, lines)) return false;
      isTyped = isStillTyped(prompt.text, before, typed, lines);
      if (!isTyped) {
        if (isTextShown(prompt.text, before, lines)) return true;
      } else if (end === seen) return end === from;
      seen = end;
    }
    return !isTyped;
  }

  /** null: the screen takes too long to draw. */
  private shownLines(): Promise<string[] | null> {
    return tolerateFailure(this.options.readLines(), () => null);
  }

  /** Fails agent_stalled when the program prints nothing after the log offset `from`. */
  async untilMoved(prompt: OpenPrompt, from: number): Promise<void> {
    const { clock, log, looks, name } = this.options;
    const hasMoved = (): PromptLook<true> => (log.end() > from ? { found: true } : NOT_YET);
    if ((await looks.until(prompt, clock.monotonic() + PROMPT.stalledMs, hasMoved)) === null)
      throw fail('agent_stalled', `${name} has printed nothing since the prompt was typed`);
  }

  /**
   * Resolves when the screen shows the text, because a busy program would read text and Enter as one and may
   * print unrelated output. Resolves with the lines; with null when that cannot be seen: when the program has
   * printed something and gone quiet, or after too long a wait.
   */
  private async untilShown(
    prompt: OpenPrompt,
    from: number,
    before: readonly string[],
  ): Promise<string[] | null> {
    const { clock, log } = this.options;
    const began = clock.monotonic();
    for (let seen = from; clock.monotonic() < began + PROMPT.maxEchoMs; ) {
      await this.untilRest(prompt, seen, 0);
      const end = log.end();
      const isQuiet = end === seen;
      if (isQuiet && (end > from || clock.monotonic() >= began + PROMPT.maxDeafMs)) return null;
      const lines = isQuiet ? null : await this.shownLines();
      if (lines && isTextShown(prompt.text, before, lines)) return lines;
      seen = end;
    }
    return null;
  }

  /**
   * Resolves when output has appeared after the log offset `from` or `pauseMs` have passed, and the output
   * has paused; or after a while.
   */
  private async untilRest(prompt: OpenPrompt, from: number, pauseMs: number): Promise<void> {
    const { clock, log, looks } = this.options;
    const began = clock.monotonic();
    let end = from;
    let restsFrom = Number.NEGATIVE_INFINITY;
    await looks.until(prompt, began + PROMPT.quietMs, (): PromptLook<true> => {
      const now = clock.monotonic();
      if (log.end() !== end) restsFrom = now;
      end = log.end();
      if (end === from && pauseMs === 0) return NOT_YET;
      const due = Math.max(began + pauseMs, restsFrom + PROMPT.echoRestMs);
      return now >= due ? { found: true } : { againMs: due - now };
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
}
