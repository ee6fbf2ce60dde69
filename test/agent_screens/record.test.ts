// Records what coding agents show: `BERTH_RECORD_SCREENS=codex,gemini BERTH_TEST_AGENTS=/tmp/agents npx
// vitest run test/agent_screens/record.test.ts`. Each program runs in a terminal that answers nothing, as an
// agent's does while nobody watches it, against the model of the tests. What it is doing is known, because
// the test decides it: the model holds its answer, or asks for a command, or is done.
import * as nodePty from 'node-pty';
import { expect, it } from 'vitest';
import { openTerminalScreen } from '../../src/adapters/terminal_screen.ts';
import type { ReportedState } from '../../src/protocol/agent_state.ts';
import { afterThisTest, tempDir } from '../kit/actors.ts';
import { type ProgramName, prepareAgent } from '../kit/agent_programs.ts';
import { lastPrompt, type ModelServer, modelServer } from '../kit/model_server.ts';
import { type RecordedScreen, readScreens, writeScreens } from './screen_files.ts';

const SIZES = [
  [120, 32],
  [80, 24],
  [100, 40],
  [160, 50],
  [72, 30],
] as const;
/** What each shows when it takes a prompt. What is typed before that is lost. */
const PROMPTS = { codex: 'Ask Codex', gemini: 'Type your message', opencode: 'Ask anything' } as const;
/** Recorded with an MCP server, which the model here does not call. */
const BY_HAND = 'question of an MCP server';
/** Begins the situation of each screen with a dialog of opencode, which BERTH_RECORD_SCREENS=dialogs records. */
const DIALOG = 'dialog ';
const QUIET_MS = 1_200;
const PATIENCE_MS = 60_000;
const LONG = Array.from({ length: 90 }, (_, part) => `part ${part} of a long answer`).join(', ');
const TRICKY = 'Do you want to proceed: 1. Yes 2. No (y/n) esc to interrupt. Working. Allow command.';

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The part of node-pty that is used here. */
interface Terminal {
  onData(take: (data: Uint8Array) => void): void;
  onExit(take: () => void): void;
  write(text: string): void;
  kill(signal: string): void;
}

class Recording {
  readonly screens: RecordedScreen[] = [];
  private isOver = false;
  private readonly root = tempDir();
  private readonly type: ProgramName;
  private readonly size: readonly [number, number];
  private readonly model: ModelServer;
  private readonly screen: Awaited<ReturnType<typeof openTerminalScreen>>;
  private readonly terminal: Terminal;

  constructor(
    type: ProgramName,
    size: readonly [number, number],
    model: ModelServer,
    screen: Awaited<ReturnType<typeof openTerminalScreen>>,
  ) {
    this.type = type;
    this.size = size;
    this.model = model;
    this.screen = screen;
    const { cmd, cwd, env } = prepareAgent(type, { root: this.root, url: model.url });
    const [cols, rows] = size;
    const pty = nodePty as unknown as { spawn(file: string, args: string[], options: object): Terminal };
    this.terminal = pty.spawn('/bin/sh', ['-c', `exec ${cmd}`], { cwd, env, cols, rows, encoding: null });
    this.terminal.onData((data) => {
      void screen.write(data);
    });
    this.terminal.onExit(() => {
      this.isOver = true;
    });
    afterThisTest(() => {
      this.end();
      screen.close();
    });
  }

  end(): void {
    if (!this.isOver) this.terminal.kill('SIGKILL');
  }

  /** Keeps the screen as it is. */
  keep(state: ReportedState, situation: string): void {
    const [cols, rows] = this.size;
    const { lines: shown, title } = this.screen.read(false);
    // The folder of the recording is nobody's business.
    const lines = shown.map((line) => line.replaceAll(this.root, '/home/me'));
    const last = lines.findLastIndex((line) => line !== '');
    this.screens.push({
      state,
      situation,
      cols,
      rows,
      title: title.trimEnd(),
      lines: lines.slice(0, last + 1),
    });
  }

  keys(keys: string): void {
    this.terminal.write(keys);
  }

  /** Resolves when the model has the prompt. Enter amid text that is still being read would be text, too. */
  async prompt(text: string): Promise<void> {
    const turns = this.model.turns().length;
    this.keys(text);
    await this.until('text', () => this.shows(text.slice(-8)));
    await this.quiet();
    this.keys('\r');
    await this.until('request', () => this.model.turns().length > turns);
  }

  async until(what: string, holds: () => boolean): Promise<void> {
    for (const end = performance.now() + PATIENCE_MS; !holds(); await pause(50)) {
      if (performance.now() < end && !this.isOver) continue;
      this.keep('working', what);
      throw new Error(`${this.type} ${this.size}: no ${what}\n${this.screens.at(-1)?.lines.join('\n')}`);
    }
  }

  /** Waits until the screen has stayed the same for a while: codex moves its title all the time. */
  async quiet(): Promise<void> {
    let shown = '';
    let since = performance.now();
    await this.until('quiet', () => {
      const now = this.screen.read(false).lines.join('\n');
      if (now !== shown) since = performance.now();
      shown = now;
      return performance.now() - since > QUIET_MS;
    });
  }

  shows(text: string | RegExp): boolean {
    const shown = this.screen.read(false).lines.join('\n');
    return typeof text === 'string' ? shown.includes(text) : text.test(shown);
  }

  /** A model that holds its answer: several screens of work. */
  async work(name: string, title: string): Promise<void> {
    await this.prompt(`wait: ${name}`);
    let isWaiting = false;
    void this.model.isWaiting(name).then(() => {
      isWaiting = true;
    });
    await this.until('request', () => isWaiting);
    for (const moment of ['first', 'second', 'third']) {
      await pause(700);
      this.keep('working', `${title}, ${moment}`);
    }
    this.model.release(name);
    await this.until('answer', () => this.shows('and it came'));
    await this.quiet();
    this.keep('idle', `${title}, answered`);
  }

  /** A command that a person has to allow: the question, and then the answer `keys`. */
  async ask(command: string, keys: string, title: string, moves: readonly string[] = []): Promise<void> {
    await this.prompt(`run: ${command}`);
    await pause(1_000);
    await this.quiet();
    this.keep('blocked', title);
    for (const [index, move] of moves.entries()) {
      this.keys(move);
      await pause(300);
      this.keep('blocked', `${title}, moved ${index + 1}`);
    }
    this.keys(keys);
    await pause(1_500);
    await this.quiet();
    this.keep('idle', `${title}, answered`);
  }
}

const DOWN = '\x1b[B';
const UP = '\x1b[A';

async function record(type: ProgramName, size: readonly [number, number]) {
  const model = await modelServer((request) => (lastPrompt(request) === 'long' ? LONG : undefined));
  const recording = new Recording(type, size, model, await openTerminalScreen(...size));
  await recording.until('prompt', () => recording.shows(PROMPTS[type]));
  await recording.quiet();
  recording.keep('idle', 'begun');
  await recording.work('one', 'short');
  await recording.ask('touch one', '\r', 'first question', [DOWN, UP]);
  await recording.ask('echo two; rm -rf ./nothing', '\x1b', 'refused question');
  await recording.prompt(TRICKY);
  await pause(1_000);
  await recording.quiet();
  recording.keep('idle', 'an answer that looks like a question');
  await recording.prompt('long');
  await pause(1_000);
  await recording.quiet();
  recording.keep('idle', 'a long answer');
  await recording.work('two', 'after much');
  await recording.prompt('fail');
  await pause(2_000);
  await recording.quiet();
  recording.keep('idle', 'the model refuses');
  recording.keys('a half of a prompt');
  await pause(600);
  recording.keep('idle', 'half a prompt typed');
  recording.end();
  return recording.screens;
}

const PALETTE = '\x10';
/** An answer with what dialogs of opencode show, too. */
const SHORTCUTS = `Help: press esc. The Commands are in the palette, Select model in a list.

\`\`\`
Close the dialog        esc
Search                  ctrl+f
Select model            ctrl+x m
Status  esc
Commands
Search
\`\`\`

Search

those are all`;
/** What opens each dialog of opencode: a command, or keys. */
const DIALOGS: readonly (readonly [name: string, keys: string])[] = [
  ['palette', PALETTE],
  ...['help', 'models', 'agents', 'sessions', 'themes', 'status', 'connect', 'mcps', 'skills'].map(
    (name) => [name, `/${name}`] as const,
  ),
];
/** Those of a conversation. */
const TALK_DIALOGS: typeof DIALOGS = ['timeline', 'rename', 'fork', 'export'].map((name) => [
  name,
  `/${name}`,
]);

/** Opens and closes each of `dialogs`. */
async function openDialogs(recording: Recording, where: string, dialogs: typeof DIALOGS): Promise<void> {
  for (const [name, keys] of dialogs) {
    recording.keys(keys);
    if (keys.startsWith('/')) {
      await recording.until('command', () => recording.shows(`┃  ${keys}`));
      await recording.quiet();
      recording.keys('\r');
    }
    await recording.until(name, () => recording.shows(/ {20}esc\b/));
    await recording.quiet();
    recording.keep('blocked', `${DIALOG}${name} ${where}`);
    recording.keys('\x1b');
    await recording.until('end', () => !recording.shows(/ {20}esc\b/));
    await recording.quiet();
  }
  recording.keep('idle', `${DIALOG}closed ${where}`);
}

async function recordDialogs(size: readonly [number, number]): Promise<RecordedScreen[]> {
  const answers: { readonly [prompt: string]: string } = { long: LONG, shortcuts: SHORTCUTS };
  const model = await modelServer((request) => answers[lastPrompt(request)]);
  const recording = new Recording('opencode', size, model, await openTerminalScreen(...size));
  const answered = async (prompt: string, end: string): Promise<void> => {
    await recording.prompt(prompt);
    await recording.until('answer', () => recording.shows(end));
    await recording.quiet();
  };
  await recording.until('prompt', () => recording.shows(PROMPTS.opencode));
  await recording.quiet();
  await openDialogs(recording, 'at the start', DIALOGS.slice(0, 3));
  await answered('hello', 'heard: hello');
  await openDialogs(recording, 'in a conversation', [...DIALOGS, ...TALK_DIALOGS]);
  await answered('shortcuts', 'those are all');
  recording.keep('idle', `${DIALOG}in the words of an answer`);
  await answered('long', 'part 89');
  await openDialogs(recording, 'over a long answer', [...DIALOGS.slice(0, 3), ...DIALOGS.slice(-4)]);
  await recording.prompt('wait: one');
  await model.isWaiting('one');
  await pause(1_000);
  recording.keys(PALETTE);
  await pause(1_500);
  recording.keep('blocked', `${DIALOG}palette while it works`);
  recording.keys('ses');
  await pause(1_000);
  recording.keep('blocked', `${DIALOG}palette with text while it works`);
  model.release('one');
  recording.end();
  return recording.screens;
}

const asked = (process.env['BERTH_RECORD_SCREENS'] ?? '').split(',');

for (const type of (Object.keys(PROMPTS) as ProgramName[]).filter((name) => asked.includes(name)))
  it(`records the screens of ${type}`, { timeout: 20 * 60_000 }, async () => {
    const byHand = readScreens(type).filter(
      ({ situation }) => situation === BY_HAND || situation.startsWith(DIALOG),
    );
    const screens: RecordedScreen[] = [];
    for (const size of SIZES) {
      screens.push(...(await record(type, size)));
      writeScreens(type, [...screens, ...byHand]);
    }
    expect(screens.length).toBeGreaterThanOrEqual(60);
  });

if (asked.includes('dialogs'))
  it('records the dialogs of opencode', { timeout: 20 * 60_000 }, async () => {
    const others = readScreens('opencode').filter(({ situation }) => !situation.startsWith(DIALOG));
    const sized = await Promise.all(SIZES.map((size) => recordDialogs(size)));
    writeScreens('opencode', [...others, ...sized.flat()]);
  });

it.skipIf(asked[0] !== '')('records screens only when BERTH_RECORD_SCREENS is set', () => {
  expect(Object.keys(PROMPTS).length).toBeGreaterThan(0);
});
