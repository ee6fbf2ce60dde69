// berth run
import { constants } from 'node:os';
import { resolve } from 'node:path';
import type { TerminalSession } from '../../client/attach_terminal.ts';
import { shellEnvironment } from '../../protocol/base_environment.ts';
import { quoteShellWord } from '../../protocol/shell_word.ts';
import { defineCommand, repeatedOption, textOption } from '../kit/command.ts';
import { commandLine, parseEnvEntries } from '../kit/command_line.ts';
import { CommandError, UsageError } from '../kit/exit_codes.ts';
import { openRawTerminal } from '../kit/raw_terminal.ts';
import { redirectStreams } from '../kit/redirected_streams.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';
import { programSize, stderr, stdout } from '../kit/standard_streams.ts';
import { takeOverSignal } from '../kit/take_over_signal.ts';

/** The control characters that send these signals in a terminal. */
const SIGNAL_KEYS = [
  ['SIGINT', '\x03'],
  ['SIGQUIT', '\x1c'],
] as const;
/** How long to wait for remaining output after the command has ended. */
const DRAIN_MS = 2_000;
/** The exit code for a signal is this plus the signal's number, as in shells. */
const SIGNAL_EXIT = 128;

const signalNumber = (name: string): number =>
  Object.entries(constants.signals).find(([known]) => known === name)?.[1] ?? 0;

/**
 * The command line for `words`. A program replaces the shell that starts it: some shells would end by a
 * signal that the program has handled, and not with its exit code. A single word is for the shell itself, and
 * so are built-in commands and variables before a program.
 */
function commandText(words: readonly string[]): string {
  const line = commandLine(words);
  const [program = '', ...rest] = words;
  if (rest.length === 0) return line;
  return `case $(command -v ${quoteShellWord(program)}) in */*) exec ${line} ;; esac\n${line}`;
}

/** Makes stdin raw. Returns a function that restores it. */
function takeTerminal(): () => void {
  // A program that gets the other output may write to this terminal too, and needs its line ends unchanged.
  if (stdout().isTTY && stderr().isTTY) return openRawTerminal();
  process.stdin.setRawMode(true);
  return () => void process.stdin.setRawMode(false);
}

/** Connects the caller's keyboard, signals and window to `session`. Returns a function to disconnect them. */
function connectKeyboard(session: TerminalSession, screen: NodeJS.WriteStream | null): () => void {
  const { stdin } = process;
  const type = (keys: Buffer): void => session.write(keys);
  const resize = (): void => {
    const size = screen && programSize(screen);
    if (size) session.resize(size.cols, size.rows);
  };
  // The signal goes to the program, which decides; it does not end this command.
  const release = SIGNAL_KEYS.map(([signal, key]) => takeOverSignal(signal, () => session.write(key)));
  const restore = stdin.isTTY ? takeTerminal() : null;
  if (restore) stdin.on('data', type);
  screen?.on('resize', resize);
  // The window may have changed while the command was being started.
  resize();
  return () => {
    screen?.off('resize', resize);
    stdin.off('data', type);
    restore?.();
    stdin.pause();
    for (const one of release) one();
  };
}

export const runCommand = defineCommand({
  about:
    'Runs one command in the environment of a service, in your terminal, and ends with its exit code. The ' +
    'daemon runs it, so the values of the environment stay there. It ends when your terminal does. What you ' +
    'redirect is carried as it is.',
  args: [{ syntax: '<command...>', about: 'the shell command; put -- before it if it has options' }],
  options: {
    service: textOption(
      '-s, --service <name>',
      'whose environment and folder it gets; default: none, in this folder',
      'service',
    ),
    cwd: textOption('--cwd <dir>', 'the folder it runs in', 'file'),
    env: repeatedOption('-e, --env <KEY=value>', 'a further variable; a name alone passes on your value'),
    ...SCOPE_OPTIONS,
  },
  examples: [
    ['berth run --service db -- psql', 'with the variables of db'],
    ['berth run -s api -- npm run seed < rows.json', 'input and output may be redirected'],
  ],
  run: async (context, words, { service: called, cwd, env, ...choice }) => {
    if (words.length === 0)
      throw new UsageError('there is no command', 'berth run --service NAME -- COMMAND');
    const client = await context.client();
    const service = called === undefined ? undefined : (await stackScope(client, choice)).full(called);
    const screens = [stdout(), stderr()];
    const screen = screens.find(({ isTTY }) => isTTY) ?? null;
    const size = screen && programSize(screen);
    const streams = redirectStreams({ stdin: process.stdin, stdout: stdout(), stderr: stderr() });
    const folder = cwd ?? (service === undefined ? '.' : undefined);
    const term = process.env['TERM'];
    let disconnect = (): void => {};
    const removeInterrupt = context.onInterrupt(() => disconnect());
    try {
      const session = await client.run(
        {
          cmd: streams.command(commandText(words)),
          ...(service === undefined ? { baseEnv: shellEnvironment(process.env) } : { service }),
          ...(folder === undefined ? {} : { cwd: resolve(folder) }),
          ...size,
          env: { ...(term ? { TERM: term } : {}), ...parseEnvEntries(env) },
        },
        {
          onOutput: (bytes) => {
            if (!screen || screen.write(bytes)) return undefined;
            return new Promise((drained) => screen.once('drain', drained));
          },
        },
      );
      disconnect = connectKeyboard(session, screen);
      const { exit, reason } = await session.ended;
      if (exit === null) throw new CommandError(reason || 'the connection to the daemon was lost');
      await streams.end(DRAIN_MS);
      return exit.exitCode ?? SIGNAL_EXIT + signalNumber(exit.signal ?? '');
    } finally {
      disconnect();
      removeInterrupt();
      await streams.end(0);
    }
  },
});
