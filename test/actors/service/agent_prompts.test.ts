// When prompts are typed, and what their clients are told, in virtual time: docs/reference.md "Prompt".
import { describe, expect, it } from 'vitest';
import { AgentPrompts } from '../../../src/actors/service/agent_prompts.ts';
import type { AgentStateName, AgentStatus } from '../../../src/protocol/agent_state.ts';
import type { PromptTyping } from '../../../src/protocol/coding_agents.ts';
import type { PromptMessage } from '../../../src/protocol/prompts.ts';
import { AGENT_STATE, PROMPT } from '../../../src/settings/agent_limits.ts';

import { type TestClock, virtualClock } from '../../kit/actors.ts';
import { quiet } from '../../kit/service.ts';

/** A program in a terminal. By default it echoes what is typed. */
class Program {
  readonly clock: TestClock = virtualClock();
  readonly written: string[] = [];
  output = '';
  state: AgentStateName = 'idle';
  since = 0;
  actedAt = 0;
  isDeaf = false;
  question: string[] = [];
  authority: 'output' | 'screen' = 'screen';
  run = 'r1';
  pid = 1;
  startedAt = 0;
  maySubmitLate = false;
  typing: Partial<PromptTyping> = {};
  /** Called with everything that is typed. */
  onTyped: (text: string) => void = () => {};
  private readonly watchers = new Set<() => void>();
  private lastOutputAt: number | null = null;

  readonly prompts = new AgentPrompts({
    name: 'bot',
    clock: this.clock,
    log: {
      end: () => this.output.length,
      read: (offset) => ({
        start: offset,
        end: this.output.length,
        bytes: Buffer.from(this.output.slice(offset)),
      }),
      watch: (onChange) => this.watch(onChange),
    },
    status: () => this.status(),
    actedAt: () => this.actedAt,
    watchState: (onChange) => this.watch(onChange),
    terminal: () => ({
      run: this.run,
      pid: this.pid,
      startedAt: this.startedAt,
      logFrom: 0,
      typing: {
        ...{ bracketedPaste: true, pauseMs: 100, submit: 'Enter', newline: 'Enter' },
        ...(this.maySubmitLate && { maySubmitLate: true }),
        ...this.typing,
      },
    }),
    type: async (data) => {
      const text = Buffer.from(data).toString();
      this.written.push(text);
      if (!this.isDeaf) this.print(text);
      this.onTyped(text);
    },
    readLines: async () => this.lines(),
    readLinesOf: async () => this.lines(),
  });

  get watching(): number {
    return this.watchers.size;
  }

  print(text: string): void {
    this.output += text;
    this.lastOutputAt = this.clock.now();
    this.tell();
  }

  /** Shows `text` in place of all output so far, at a later offset. */
  draw(text: string): void {
    this.output = `${' '.repeat(this.output.length)}\n${text}`;
    this.print('');
  }

  become(state: AgentStateName, question: string[] = []): void {
    const isActing = [this.state, state].some((either) => either === 'working' || either === 'blocked');
    if (isActing && this.authority !== 'output') this.actedAt = this.clock.now();
    if (this.state !== state) this.since = this.clock.now();
    this.state = state;
    this.question = question;
    this.tell();
  }

  prompt(text: string, more: Partial<PromptMessage> = {}): Promise<string> {
    const message = { id: text, text, pid: null, queue: false, wait: null, timeoutMs: 600_000, ...more };
    return this.prompts.prompt(message).then(
      ({ status, lines }) => [status.state, ...(lines ?? [])].join('|'),
      ({ code, message: why, detail }) =>
        [code, why, ...(detail?.details ?? []).map((row: { message: string }) => row.message)].join('|'),
    );
  }

  /** Everything typed, with Enter as `!`. */
  typed(): string {
    return this.written.join('').replaceAll('\r', '!');
  }

  private lines(): string[] {
    return this.output.split(this.maySubmitLate ? '\n' : /[\r\n]+/);
  }

  private watch(onChange: () => void): () => void {
    this.watchers.add(onChange);
    return () => void this.watchers.delete(onChange);
  }

  private tell(): void {
    for (const onChange of [...this.watchers]) onChange();
  }

  private status(): AgentStatus {
    const { authority, lastOutputAt, question, since, state } = this;
    const reason = { authority, rule: 'some' } as const;
    return {
      name: 'bot',
      state,
      since,
      reason,
      question,
      title: '',
      lastOutputAt,
      viewers: 0,
      sessionId: null,
    };
  }

  async pass(ms: number): Promise<void> {
    await quiet();
    await this.clock.advance(ms);
    await quiet();
  }
}

/** Time in which a text and its Enter are typed. */
const TYPING_MS = 150;

/** A program that may not take Enter at first, and shows nothing by itself. */
function deafProgram(): Program {
  const bot = new Program();
  bot.maySubmitLate = true;
  bot.isDeaf = true;
  return bot;
}

/** A program that keeps what it refuses in its box, as codex and opencode do. It takes what begins with `a`. */
class KeepingProgram extends Program {
  readonly taken: string[] = [];
  isSilent = false;
  private input = '';
  private rows = '';
  /** The most lines of the input that are shown: the last ones, or the first ones of a refused text. */
  maxRows = 100;
  private isRefused = false;

  constructor() {
    super();
    this.isDeaf = true;
    this.typing = { completes: '@', continuesLines: true, deletes: ['C-u', 'C-k'] };
    this.onTyped = (text) => this.take(text);
    this.show();
  }

  private take(text: string): void {
    if (text === '\r' && !this.input.startsWith('a')) {
      if (this.isSilent) return;
      this.rows += 'unknown command\n';
      this.isRefused = true;
    } else if (text === '\r') {
      this.taken.push(this.input);
      this.rows += `> ${this.input}\n* heard\n`;
      this.input = '';
    } else if (/^[\x15\x0b]+$/.test(text)) this.input = '';
    else this.input += text;
    this.show();
  }

  /** The footer is shorter from the first text on. */
  private show(): void {
    const lines = this.input.split(/[\r\n]/);
    if (lines.length > this.maxRows) {
      const { isRefused, maxRows } = this;
      const part = (isRefused ? lines.slice(0, maxRows) : lines.slice(-maxRows)).join('\n  ');
      this.draw(`${this.rows}› ${isRefused ? `${part}  ↓` : part.replace('\n', '  ↑\n')}\n\n`);
      return;
    }
    this.draw(`${this.rows}> ${this.input}\n${this.written.length === 0 ? '? for keys, ' : ''}a warning`);
  }
}

/** The text is back in the box as typed: Enter is pressed once more, and the prompt is answered. */
async function expectSecondEnter(bot: Program, answer: Promise<string>): Promise<void> {
  bot.draw('* hello\n> late\nfooter');
  await bot.pass(PROMPT.quietMs + 1_000);
  expect(bot.typed()).toBe('late!!');
  expect(await answer).toBe('idle');
  expect(bot.watching).toBe(0);
}

describe('a prompt', () => {
  it('is typed, then submitted after a pause, and answered when output follows', async () => {
    const bot = new Program();
    const answer = bot.prompt('hello\nyou');
    await bot.pass(50);
    expect(bot.typed()).toBe('hello!you');
    await bot.pass(TYPING_MS);
    expect(bot.typed()).toBe('hello!you!');
    expect(await answer).toBe('idle');
    expect(bot.watching).toBe(0);
  });

  it('is under way until the state of the agent shows it, or long enough after', async () => {
    const bot = new Program();
    expect(bot.prompts.isUnderWay).toBe(false);
    const answer = bot.prompt('one');
    expect(bot.prompts.isUnderWay).toBe(true);
    await bot.pass(TYPING_MS);
    expect(await answer).toBe('idle');
    expect(bot.prompts.isUnderWay).toBe(true);
    await bot.pass(AGENT_STATE.outputMs);
    expect(bot.prompts.isUnderWay).toBe(false);
    await Promise.all([bot.prompt('two'), bot.pass(TYPING_MS)]);
    await bot.pass(1);
    bot.become('working');
    bot.become('idle');
    expect(bot.prompts.isUnderWay).toBe(false);
  });

  it('is pasted while bracketed paste is on, however long ago the program enabled it', async () => {
    const bot = new Program();
    bot.output = `\x1b[?25l\x1b[?1;2004h${'x'.repeat(600_000)}`;
    await Promise.all([bot.prompt('one'), bot.pass(TYPING_MS)]);
    bot.print('\x1b[?20');
    bot.print('04l');
    bot.become('working');
    bot.become('idle');
    await bot.pass(1);
    await Promise.all([bot.prompt('two', { queue: true }), bot.pass(AGENT_STATE.outputMs + TYPING_MS)]);
    expect(bot.typed()).toBe('\x1b[200~one\x1b[201~!two!');
  });

  it('is accepted as soon as usual when the clock was set back since the last prompt', async () => {
    const bot = new Program();
    await Promise.all([bot.prompt('one'), bot.pass(TYPING_MS)]);
    const { now } = bot.clock;
    bot.clock.now = () => now() - 3_600_000;
    await bot.pass(AGENT_STATE.outputMs);
    const answer = bot.prompt('two');
    await bot.pass(TYPING_MS);
    expect(await answer).toBe('idle');
    expect(bot.typed()).toBe('one!two!');
  });

  it('is submitted once the output that its text causes has settled', async () => {
    const bot = new Program();
    const answer = bot.prompt('long');
    for (let turn = 0; turn < 20; turn += 1) {
      await bot.pass(PROMPT.echoRestMs - 10);
      bot.print('.');
    }
    expect(bot.typed()).toBe('long');
    await bot.pass(PROMPT.echoRestMs);
    await bot.pass(99);
    expect(bot.typed()).toBe('long');
    await bot.pass(1);
    expect(bot.typed()).toBe('long!');
    expect(await answer).toBe('idle');
  });

  it('is submitted to a busy program once that has shown the text, and after a pause', async () => {
    const bot = new Program();
    bot.isDeaf = true;
    const answer = bot.prompt('late');
    await bot.pass(PROMPT.quietMs - 2 * PROMPT.echoRestMs);
    bot.print('a clock\r\n');
    await bot.pass(PROMPT.quietMs - PROMPT.echoRestMs);
    expect(bot.typed()).toBe('late');
    bot.isDeaf = false;
    bot.print('│ la │\r\n│ te │');
    await bot.pass(PROMPT.echoRestMs);
    await bot.pass(99);
    expect(bot.typed()).toBe('late');
    await bot.pass(1);
    expect(bot.typed()).toBe('late!');
    expect(await answer).toBe('idle');
  });

  it('is submitted after a limited time if the text is not shown', async () => {
    const bot = new Program();
    bot.isDeaf = true;
    bot.onTyped = (text) => bot.print('*'.repeat(text.length));
    const answer = bot.prompt('secret');
    await bot.pass(PROMPT.echoRestMs);
    await bot.pass(PROMPT.quietMs - 1);
    expect(bot.typed()).toBe('secret');
    await bot.pass(TYPING_MS);
    expect(bot.typed()).toBe('secret!');
    expect(await answer).toBe('idle');
    const noisy = bot.prompt('again', { queue: true });
    await bot.pass(AGENT_STATE.outputMs);
    for (let ms = 0; ms < PROMPT.maxEchoMs + PROMPT.quietMs; ms += 20) {
      await bot.pass(20);
      bot.print('.');
    }
    expect(bot.typed()).toBe('secret!again!');
    expect(await noisy).toBe('idle');
  });

  it('is submitted again to a program that treated Enter as a newline, and to no other', async () => {
    const bot = deafProgram();
    let left = 2;
    bot.onTyped = (text) => {
      if (text !== '\r') bot.output = `> ${text}\n`;
      else if (left > 0) bot.output += '\n';
      else bot.output = '> late\n* working\n';
      left -= text === '\r' ? 1 : 0;
      // What is drawn at last is the footer.
      bot.output = `${bot.output.replaceAll('footer', '')}footer`;
      bot.print('');
    };
    const answer = bot.prompt('late');
    await bot.pass(2_000);
    expect(bot.typed()).toBe('late!!!');
    expect(await answer).toBe('idle');
    left = 9;
    bot.output = '';
    const never = bot.prompt('never', { queue: true });
    await bot.pass(AGENT_STATE.outputMs + 5_000);
    expect(bot.typed()).toBe(`late!!!never${'!'.repeat(PROMPT.maxSubmits)}`);
    expect(await never).toBe('agent_stalled|bot still shows the prompt as it was typed');
    expect(bot.watching).toBe(0);
  });

  it('is submitted again to a program that dropped Enter while it began to draw a conversation', async () => {
    const bot = deafProgram();
    let enters = 0;
    bot.onTyped = (text) => {
      if (text !== '\r') bot.draw(`* hello\n> ${text}\nfooter`);
      else if (++enters === 1) bot.draw('* hello\nresuming\nfooter');
      else bot.draw('* hello\n> late\n* working\n>\nfooter');
    };
    bot.draw('* hello\n>\nfooter');
    const answer = bot.prompt('late');
    await bot.pass(1_000);
    expect(bot.typed()).toBe('late!');
    await expectSecondEnter(bot, answer);
  });

  it('is submitted again to a program that hid the text, dropped Enter, and shows the text again', async () => {
    const bot = deafProgram();
    let enters = 0;
    bot.onTyped = (text) => {
      if (text !== '\r') bot.draw(`> ${text}\nfooter`);
      else if (++enters > 1) bot.draw('* hello\n> late\n* working\n>\nfooter');
    };
    bot.draw('>\nfooter');
    const answer = bot.prompt('late');
    await bot.pass(PROMPT.echoRestMs);
    bot.draw('* hello\nresuming\nfooter');
    await bot.pass(TYPING_MS);
    expect(bot.typed()).toBe('late!');
    await expectSecondEnter(bot, answer);
  });

  it('is submitted again to a program that dropped Enter and draws something else all the time', async () => {
    const bot = deafProgram();
    let rows = '>';
    bot.onTyped = (text) => {
      rows = text === '\r' && bot.typed() === 'late!!' ? '> late\n* working\n>' : '> late';
      bot.draw(rows);
    };
    const answer = bot.prompt('late');
    for (let turn = 0; bot.typed() !== 'late!!' && turn < 20; turn += 1) {
      await bot.pass(PROMPT.quietMs / 4);
      bot.draw(`a clock ${turn}\n${rows}`);
    }
    await bot.pass(PROMPT.quietMs);
    expect(bot.typed()).toBe('late!!');
    expect(await answer).toBe('idle');
  });

  it('is submitted once to a program whose footer contains its text', async () => {
    const bot = deafProgram();
    bot.draw('>\nno sandbox');
    bot.onTyped = (text) => bot.draw(text === '\r' ? '> x\n* heard\n>\nno sandbox' : `> ${text}\nno sandbox`);
    const answer = bot.prompt('x');
    await bot.pass(PROMPT.maxDeafMs + PROMPT.stalledMs);
    expect(bot.typed()).toBe('x!');
    expect(await answer).toBe('idle');
  });

  it.each(['ask @foo', 'at C:\\'])(
    'is followed by a space where Enter would not submit: %j',
    async (text) => {
      const bot = new KeepingProgram();
      const answer = bot.prompt(text);
      await bot.pass(PROMPT.quietMs);
      expect(await answer).toBe('idle');
      expect(bot.taken).toEqual([`${text} `]);
    },
  );

  it('that the program keeps in its input is stalled, and not added to the next one', async () => {
    for (const [isSilent, why] of [
      [false, 'still shows the prompt as it was typed'],
      [true, 'has printed nothing since the prompt was typed'],
    ] as const) {
      const bot = new KeepingProgram();
      bot.isSilent = isSilent;
      const refused = bot.prompt('/unknown\ntext', { wait: 'idle' });
      for (let ms = 0; ms < PROMPT.maxDeafMs + PROMPT.stalledMs; ms += 500) await bot.pass(500);
      expect(await refused).toBe(`agent_stalled|bot ${why}; the keys that clear its input were pressed`);
      expect(bot.typed()).toBe('/unknown!text!\x15\x15\x15\x15\x0b\x0b\x0b\x0b');
      const answer = bot.prompt('answer this', { queue: true });
      for (let ms = 0; ms < PROMPT.maxDeafMs + AGENT_STATE.outputMs; ms += 500) await bot.pass(500);
      expect(await answer).toBe('idle');
      expect(bot.taken).toEqual(['answer this']);
      expect(bot.watching).toBe(0);
    }
  });

  it('that is longer than the input of the program is stalled if it is refused, and only then', async () => {
    const lines = Array.from({ length: 30 }, (_, line) => `ln ${line}`).join('\n');
    const bot = new KeepingProgram();
    bot.maxRows = 8;
    const answers: string[] = [];
    for (const text of [`/unknown ${lines}`, `answer ${lines}`]) {
      const answer = bot.prompt(text, { queue: true });
      for (let ms = 0; ms < 3 * PROMPT.stalledMs; ms += 500) await bot.pass(500);
      answers.push((await answer).split('|')[0] ?? '');
    }
    expect(answers).toEqual(['agent_stalled', 'idle']);
    expect(bot.taken).toEqual([`answer ${lines.replaceAll('\n', '\r')}`]);
  });

  it('that was taken is not stalled, although the footer contains its text while it is typed', async () => {
    const bot = new KeepingProgram();
    const answer = bot.prompt('a');
    for (let ms = 0; ms < 2 * PROMPT.maxDeafMs; ms += 500) await bot.pass(500);
    expect(await answer).toBe('idle');
    expect(bot.typed()).toBe('a!');
  });

  it('waits until the output of a program that has just started has settled', async () => {
    const bot = new Program();
    bot.startedAt = bot.clock.now();
    bot.print('>');
    const answer = bot.prompt('first');
    for (let turn = 0; turn < 3; turn += 1) {
      await bot.pass(PROMPT.settleMs - 1);
      bot.print('a conversation of before');
    }
    expect(bot.typed()).toBe('');
    await bot.pass(PROMPT.settleMs);
    await bot.pass(TYPING_MS);
    expect(bot.typed()).toBe('first!');
    expect(await answer).toBe('idle');
  });

  it('that causes no output is stalled', async () => {
    const bot = new Program();
    bot.isDeaf = true;
    const answer = bot.prompt('hello');
    await bot.pass(PROMPT.quietMs);
    await bot.pass(PROMPT.maxDeafMs - PROMPT.quietMs);
    await bot.pass(TYPING_MS);
    await bot.pass(PROMPT.stalledMs);
    expect(await answer).toContain('agent_stalled');
    expect(bot.typed()).toBe('hello!');
    expect(bot.watching).toBe(0);
  });

  it('is refused while the agent asks a question, which the error contains, and while it works', async () => {
    const bot = new Program();
    bot.print('Delete?\r\n1. Yes');
    bot.become('blocked', ['Delete?', '1. Yes']);
    expect(await bot.prompt('no')).toBe('agent_blocked|bot waits for an answer|Delete?|1. Yes');
    expect(await bot.prompt('no', { queue: true })).toContain('agent_blocked');
    bot.become('blocked');
    expect(await bot.prompt('no')).toBe('agent_blocked|bot waits for an answer|Delete?|1. Yes');
    for (const state of ['working', 'starting'] as const) {
      bot.become(state);
      expect(await bot.prompt('no')).toBe(`agent_working|bot is ${state}`);
    }
    expect(bot.typed()).toBe('');
  });

  it('is not submitted when the agent asks a question while it is typed', async () => {
    const bot = new Program();
    bot.onTyped = () => bot.become('blocked', ['Trust it?']);
    const answer = bot.prompt('yes');
    await bot.pass(TYPING_MS);
    expect(await answer).toContain('so it was not submitted|Trust it?');
    expect(bot.typed()).toBe('yes');
  });

  it('that cannot be typed exactly is refused', async () => {
    expect(await new Program().prompt('a\tb')).toContain('invalid_spec|text cannot arrive exactly');
  });

  it('waits in the queue until the agent is idle, and fails at its timeout or when the agent asks a question', async () => {
    const bot = new Program();
    bot.become('working');
    const late = bot.prompt('late', { queue: true, timeoutMs: 1_000 });
    await bot.pass(1_000);
    expect(await late).toBe('wait_timeout|bot was not idle in time, and nothing was typed');
    const [first, second] = [bot.prompt('first', { queue: true }), bot.prompt('second', { queue: true })];
    await bot.pass(5_000);
    expect(bot.typed()).toBe('');
    bot.become('idle');
    await bot.pass(TYPING_MS);
    expect(bot.typed()).toBe('first!');
    expect(await first).toBe('idle');
    // It says that it is idle since before it could know of the prompt.
    await bot.pass(TYPING_MS);
    bot.become('working');
    await bot.pass(60_000);
    expect(bot.typed()).toBe('first!');
    bot.become('blocked', ['Really?']);
    await bot.pass(0);
    expect(await second).toContain('agent_blocked');
    expect(bot.watching).toBe(0);
  });

  it('is not typed when its client has disconnected, and the next one is', async () => {
    const bot = new Program();
    bot.become('working');
    const [one, two] = [bot.prompt('one', { queue: true }), bot.prompt('two', { queue: true })];
    await bot.pass(10);
    bot.prompts.cancel('one');
    bot.become('idle');
    await bot.pass(TYPING_MS);
    expect(await one).toContain('its client has disconnected');
    expect(await two).toBe('idle');
    expect(bot.typed()).toBe('two!');
  });

  it('is not for a later process: neither of its queue, nor one that names its process', async () => {
    const bot = new Program();
    bot.become('working');
    const queued = ['one', 'two'].map((text) => bot.prompt(text, { queue: true }));
    await bot.pass(0);
    bot.run = 'r2';
    bot.pid = 2;
    bot.become('idle');
    await bot.pass(TYPING_MS);
    expect(await Promise.all(queued)).toEqual(Array(2).fill('not_running|bot was started again'));
    const [late, fit] = [bot.prompt('late', { pid: 1, queue: true }), bot.prompt('fit', { pid: 2 })];
    expect(await late).toBe('not_running|bot does not run as process 1, and nothing was typed');
    await bot.pass(TYPING_MS);
    expect(await fit).toBe('idle');
    expect(bot.typed()).toBe('fit!');
  });

  it('is the only one of fifty at once that is typed, or one of all in order if they are queued', async () => {
    const bot = new Program();
    const refused = Promise.all(Array.from({ length: 50 }, (_, index) => bot.prompt(`p${index}`)));
    await bot.pass(TYPING_MS);
    expect((await refused).filter((answer) => answer === 'idle')).toHaveLength(1);
    expect(bot.typed()).toBe('p0!');
    const queued = Promise.all(
      Array.from({ length: 50 }, (_, index) => bot.prompt(`q${index}`, { queue: true })),
    );
    for (let turn = 0; turn < 50; turn += 1) await bot.pass(AGENT_STATE.outputMs + TYPING_MS);
    expect(new Set(await queued)).toEqual(new Set(['idle']));
    expect(bot.typed()).toBe(`p0!${Array.from({ length: 50 }, (_, index) => `q${index}!`).join('')}`);
  });

  it('is refused when too many prompts wait', async () => {
    const bot = new Program();
    bot.become('working');
    const more = Array.from({ length: PROMPT.maxQueued + 2 }, (_, index) =>
      bot.prompt(`p${index}`, { queue: true, timeoutMs: 1_000 }),
    );
    await bot.pass(1_000);
    const codes = (await Promise.all(more)).map((answer) => answer.split('|')[0]);
    expect(codes.filter((code) => code === 'agent_working')).toHaveLength(1);
    expect(codes.filter((code) => code === 'wait_timeout')).toHaveLength(PROMPT.maxQueued + 1);
  });
});

describe('a prompt that waits', () => {
  it('returns the state and the new lines when the agent is idle again', async () => {
    const bot = new Program();
    bot.print('banner\r\n> ');
    const answer = bot.prompt('go', { wait: 'idle' });
    await bot.pass(TYPING_MS);
    bot.become('working');
    bot.print('\r\nanswer\r\n> ');
    await bot.pass(60_000);
    bot.become('idle');
    await bot.pass(0);
    expect(await answer).toBe('idle|> go|answer');
  });

  it('accepts an agent that was idle all the time only when its output has settled', async () => {
    const bot = new Program();
    const answer = bot.prompt('go', { wait: 'idle' });
    await bot.pass(TYPING_MS + AGENT_STATE.outputMs - 500);
    bot.print('still there');
    await bot.pass(AGENT_STATE.outputMs - 1);
    expect(bot.watching).toBeGreaterThan(0);
    await bot.pass(1);
    expect(await answer).toContain('idle|');
  });

  it('does not take the echo of the prompt for work, and waits for work or until nothing moves', async () => {
    for (const works of [true, false]) {
      const bot = new Program();
      const answer = bot.prompt('go', { wait: 'idle' });
      await bot.pass(TYPING_MS);
      bot.authority = 'output';
      bot.become('working');
      await bot.pass(400);
      bot.become('idle');
      bot.authority = 'screen';
      expect(bot.prompts.isUnderWay).toBe(true);
      await bot.pass(250);
      expect(bot.watching).toBeGreaterThan(0);
      if (works) {
        bot.become('working');
        await bot.pass(60_000);
        bot.print('\r\nanswer');
        bot.become('idle');
        await bot.pass(0);
      } else {
        bot.print('\r\nanswer');
        await bot.pass(AGENT_STATE.outputMs);
      }
      expect(await answer).toBe('idle|go|answer');
      expect(bot.prompts.isUnderWay).toBe(false);
    }
  });

  it('treats a quiet, unknown screen as a question only if it stays', async () => {
    const bot = new Program();
    bot.authority = 'output';
    const [stays, goesOn] = ['stays', 'goes on'].map((text) => () => bot.prompt(text, { wait: 'idle' }));
    const over = goesOn?.();
    await bot.pass(TYPING_MS);
    bot.become('blocked');
    await bot.pass(PROMPT.guessMs - 1);
    bot.become('working');
    await bot.pass(60_000);
    bot.become('idle');
    expect(await over).toMatch(/^idle/);
    const open = stays?.();
    await bot.pass(TYPING_MS);
    bot.become('blocked');
    await bot.pass(PROMPT.guessMs);
    expect(await open).toMatch(/^blocked/);
  });

  it('ends with a question once its lines are shown, or after a while', async () => {
    const bot = new Program();
    const shown = bot.prompt('one', { wait: 'idle' });
    await bot.pass(TYPING_MS);
    let isOver = false;
    void shown.then(() => {
      isOver = true;
    });
    bot.become('blocked');
    await bot.pass(PROMPT.unseenMs - 1);
    expect(isOver).toBe(false);
    bot.become('blocked', ['Proceed?']);
    await bot.pass(0);
    expect([isOver, await shown]).toEqual([true, 'blocked|one']);
    bot.become('idle');
    await bot.pass(AGENT_STATE.outputMs);
    const unseen = bot.prompt('two', { wait: 'idle' });
    await bot.pass(TYPING_MS);
    bot.become('blocked');
    await bot.pass(PROMPT.unseenMs);
    expect(await unseen).toMatch(/^blocked/);
  });

  it('for a change ends with the output of an agent that is done before its state is checked', async () => {
    const bot = new Program();
    const answer = bot.prompt('go', { wait: 'change' });
    await bot.pass(TYPING_MS);
    bot.print('\r\ndone');
    await bot.pass(AGENT_STATE.outputMs);
    expect(await answer).toBe('idle|go|done');
    expect(bot.watching).toBe(0);
  });

  it('waits for the answer of a program that queues it while it resumes a conversation', async () => {
    const bot = deafProgram();
    bot.startedAt = bot.clock.now();
    bot.onTyped = (text) => bot.draw(text === '\r' ? 'queued: late\n>' : `> ${text}`);
    bot.draw('>');
    const answer = bot.prompt('late', { wait: 'idle' });
    await bot.pass(PROMPT.settleMs);
    await bot.pass(2 * TYPING_MS);
    expect(bot.typed()).toBe('late!');
    bot.become('working');
    bot.draw('resuming');
    await bot.pass(1_000);
    bot.draw('* hello\n>');
    bot.become('idle');
    await bot.pass(AGENT_STATE.outputMs);
    expect(bot.watching).toBeGreaterThan(0);
    bot.draw('* hello\n> late\n* working\n>');
    await bot.pass(100);
    bot.become('working');
    await bot.pass(60_000);
    bot.draw('* hello\n> late\n* heard\n>');
    bot.become('idle');
    await bot.pass(0);
    expect(await answer).toMatch(/^idle.*heard/);
    expect(bot.watching).toBe(0);
  });

  it('waits on while a program that has just started takes the prompt from its queue', async () => {
    const bot = deafProgram();
    bot.startedAt = bot.clock.now();
    bot.onTyped = (text) => bot.draw(text === '\r' ? '> late\n>' : `> ${text}`);
    bot.draw('>');
    const answer = bot.prompt('late', { wait: 'idle' });
    await bot.pass(PROMPT.settleMs);
    await bot.pass(2 * TYPING_MS);
    bot.become('working');
    await bot.pass(200);
    bot.become('idle');
    await bot.pass(PROMPT.settleMs / 2);
    bot.become('working');
    await bot.pass(5_000);
    bot.draw('> late\n* heard\n>');
    bot.become('idle');
    await bot.pass(PROMPT.settleMs);
    expect(await answer).toMatch(/^idle.*heard/);
    expect(bot.watching).toBe(0);
  });

  it('waits longer for an agent that does not show the prompt', async () => {
    const bot = new Program();
    bot.isDeaf = true;
    bot.onTyped = () => bot.print('\r');
    const busy = bot.prompt('go', { wait: 'idle' });
    for (let ms = 0; ms < PROMPT.untakenMs - 1_000; ms += 1_000) await bot.pass(1_000);
    expect(bot.watching).toBeGreaterThan(0);
    bot.print('taken\r');
    await bot.pass(AGENT_STATE.outputMs);
    expect(await busy).toBe('idle|taken');
    const never = bot.prompt('again', { wait: 'idle' });
    for (let ms = 0; ms < PROMPT.untakenMs + PROMPT.maxDeafMs; ms += 1_000) await bot.pass(1_000);
    expect(await never).toBe('idle');
  });

  it('ends when the agent asks a question, exits, is restarted, changes state, or takes too long', async () => {
    const ends: [string, Partial<PromptMessage>, (bot: Program) => void][] = [
      ['blocked', { wait: 'idle' }, (bot) => bot.become('blocked', ['Proceed?'])],
      ['exited', { wait: 'idle' }, (bot) => bot.become('exited')],
      ['working', { wait: 'change' }, (bot) => bot.become('working')],
      ['wait_timeout', { wait: 'idle', timeoutMs: 2_000 }, (bot) => bot.become('working')],
    ];
    for (const [expected, more, end] of ends) {
      const bot = new Program();
      const answer = bot.prompt('go', more);
      await bot.pass(TYPING_MS);
      await bot.pass(10);
      end(bot);
      await bot.pass(2_000);
      expect((await answer).split('|')[0]).toBe(expected);
      expect(bot.watching).toBe(0);
    }
  });

  it('ends with the output of an agent that has exited before the answer to the submitting key came', async () => {
    const bot = new Program();
    bot.onTyped = (text) => {
      if (text !== '\r') return;
      bot.print('bye\r');
      bot.become('exited');
    };
    const answer = bot.prompt('exit', { wait: 'idle' });
    await bot.pass(TYPING_MS);
    expect(await answer).toBe('exited|exit|bye');
  });
});
