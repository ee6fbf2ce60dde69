// Types a prompt into a terminal as a person would: the text and then, once the program shows it and has
// paused, the key that submits it. docs/reference.md "Prompt".
import type { PromptTyping } from '../../protocol/coding_agents.ts';
import { fail } from '../../protocol/errors.ts';
import {
  isBlankAdded,
  isPartTyped,
  isStillTyped,
  isTextShown,
  typedPrompt,
  withPlainEnd,
} from '../../protocol/prompt_text.ts';
import { keyBytes } from '../../protocol/terminal_keys.ts';
import { type Clock, type Failure, tolerateFailure } from '../../runtime/actor.ts';
import { PROMPT } from '../../settings/agent_limits.ts';
import { PasteMode } from './paste_mode.ts';
import { NOT_YET, type OpenPrompt, type PromptLook, type PromptLooks } from './prompt_looks.ts';
import type { ServiceLog } from './service_log.ts';

/** The terminal that prompts are typed into. */
export interface PromptTerminal {
  run: string;
  pid: number;
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

/** Programs show a placeholder in one line for a text of more lines. */
const MAX_DELETED_LINES = 1_000;

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
    const typed = typedPrompt(withPlainEnd(text, typing), { isPasted, newline });
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
    typing: PromptTyping,
    before: readonly string[],
    assertOpen: () => Promise<void>,
  ): Promise<number> {
    const { log, type } = this.options;
    const { deletes, maySubmitLate, pauseMs, submit } = typing;
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
    for (let left: number = maySubmitLate ? PROMPT.maxSubmits : 1; left > 0; left -= 1) {
      await this.untilRest(owned, log.end(), pauseMs);
      await assertOpen();
      const shown = maySubmitLate || deletes ? await this.shownLines() : null;
      // A program that begins to resume a conversation hides the text for a while.
      if (!typed || (shown && isTextShown(prompt.text, before, shown))) typed = shown;
      const end = log.end();
      await type(enter);
      if (!shown || !typed || (await this.isSubmitted(owned, end, before, typed, typing))) return end;
    }
    throw await this.stalled(owned, typing, 'still shows the prompt as it was typed');
  }

  /**
   * The failure of a prompt that was typed and not taken. Clears the program's input, so that the next prompt
   * is not added to this one, if the keys for that are known.
   */
  private async stalled(prompt: OpenPrompt, { deletes }: PromptTyping, what: string): Promise<Failure> {
    const { log, name, type } = this.options;
    if (!deletes) return fail('agent_stalled', `${name} ${what}`);
    // A line needs one key for its text and one for its end. The keys come after the submitting key, and do
    // nothing if the program takes the prompt after all.
    const presses = 2 * Math.min(prompt.text.split('\n').length, MAX_DELETED_LINES);
    const from = log.end();
    await type(Buffer.from(deletes.map((key) => textBytes(key).repeat(presses)).join('')));
    await this.untilRest({ ...prompt, isCancelled: false }, from, 0);
    return fail('agent_stalled', `${name} ${what}; the keys that clear its input were pressed`);
  }

  /**
   * Whether the program has taken the text. It has not if the submitting key became a newline, or if the text
   * is still there as typed after something else was drawn: a program may refuse it, and one that resumes a
   * conversation may show its prompt before it takes keys. `typed`: the last lines that showed the text
   * before the key was pressed at the log offset `from`; `before`: those before the text was typed. Unclear
   * cases count as taken.
   */
  private async isSubmitted(
    prompt: OpenPrompt,
    from: number,
    before: readonly string[],
    typed: readonly string[],
    { maySubmitLate }: PromptTyping,
  ): Promise<boolean> {
    const { clock, log } = this.options;
    // A text that would be deleted gets more time, because the key may still be on its way.
    const latest = clock.monotonic() + (maySubmitLate ? PROMPT.maxDeafMs : PROMPT.stalledMs);
    let isTyped = false;
    for (let seen = from; clock.monotonic() < latest; ) {
      await this.untilRest(prompt, seen, 0);
      const end = log.end();
      const lines = await this.shownLines();
      if (!lines) return true;
      if (maySubmitLate && isBlankAdded(typed, lines)) return false;
      isTyped = isStillTyped(prompt.text, before, typed, lines) || isPartTyped(prompt.text, typed, lines);
      if (!isTyped) {
        if (!maySubmitLate || isTextShown(prompt.text, before, lines)) return true;
      } else if (end === seen && (maySubmitLate || end === from)) return end === from;
      seen = end;
    }
    return !isTyped;
  }

  /** null: the screen takes too long to draw. */
  private shownLines(): Promise<string[] | null> {
    return tolerateFailure(this.options.readLines(), () => null);
  }

  /** Fails agent_stalled when the program prints nothing after the log offset `from`. */
  async untilMoved(prompt: OpenPrompt, from: number, typing: PromptTyping): Promise<void> {
    const { clock, log, looks } = this.options;
    const hasMoved = (): PromptLook<true> => (log.end() > from ? { found: true } : NOT_YET);
    if ((await looks.until(prompt, clock.monotonic() + PROMPT.stalledMs, hasMoved)) === null)
      throw await this.stalled(prompt, typing, 'has printed nothing since the prompt was typed');
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
