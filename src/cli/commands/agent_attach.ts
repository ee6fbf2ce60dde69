// berth agent attach
import { defineCommand } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { describeExit } from '../kit/format.ts';
import { stdout } from '../kit/standard_streams.ts';

/** Ctrl-]: no program that is used in a terminal needs it, and telnet has made it known. */
const DETACH_KEY = 0x1d;

/** The other screen of the terminal, and how to leave as a title. */
const enterAlternateScreen = (name: string): string =>
  `\x1b[?1049h\x1b[22;0t\x1b]0;${name}: Ctrl-] leaves\x07`;
/** Leaves the modes that a full-screen program may have set: hidden cursor, mouse, pasting, colours, other screen. */
const RESTORE_TERMINAL =
  '\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m\x1b[23;0t\x1b[?1049l';

/** A whole screen begins with the reset of a terminal, which would clear more of the user's than is ours: a soft one will do. */
const FULL_RESET = [0x1b, 0x63] as const;
const SOFT_RESET = '\x1b[!p\x1b[0m\x1b[H\x1b[2J';

/** Writes `bytes` to stdout and resolves when there is room for more, so that a slow terminal slows only itself. */
function writeToScreen(bytes: Uint8Array): Promise<void> | undefined {
  const isScreen = FULL_RESET.every((byte, at) => bytes[at] === byte);
  if (isScreen) stdout().write(SOFT_RESET);
  if (stdout().write(isScreen ? bytes.subarray(FULL_RESET.length) : bytes)) return undefined;
  return new Promise((resolve) => stdout().once('drain', resolve));
}

export const agentAttachCommand = defineCommand({
  about:
    'Your keys go to the agent and its screen comes to you, until you leave with Ctrl-] or it ends. Leaving does not end the agent.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  run: async (context, [name = '']) => {
    const { stdin } = process;
    const screen = stdout();
    if (!stdin.isTTY || !screen.isTTY) {
      throw new UsageError(
        'attach needs a terminal',
        `\`berth agent logs ${name} -f\` follows its output without one.`,
      );
    }
    const client = await context.client();
    let isEntered = false;
    const output = (bytes: Uint8Array) => {
      if (!isEntered) {
        context.out.note(`Attached to ${name}; Ctrl-] leaves.`);
        screen.write(enterAlternateScreen(name));
      }
      isEntered = true;
      return writeToScreen(bytes);
    };
    const terminal = await client.attach(name, { onOutput: output });
    const resize = (): void => terminal.resize(screen.columns, screen.rows);
    const restore = (): void => {
      stdin.setRawMode(false);
      stdin.pause();
      screen.write(RESTORE_TERMINAL);
    };
    const removeInterrupt = context.onInterrupt(restore);
    stdin.setRawMode(true);
    stdin.on('data', (keys: Buffer) => {
      const at = keys.indexOf(DETACH_KEY);
      if (at !== 0) terminal.write(at < 0 ? keys : keys.subarray(0, at));
      if (at >= 0) terminal.detach();
    });
    screen.on('resize', resize);
    resize();
    const leave = (): void => {
      screen.off('resize', resize);
      stdin.removeAllListeners('data');
      restore();
      removeInterrupt();
    };
    const { exit, code, reason } = await terminal.ended.finally(leave);
    if (exit) {
      context.out.note(`${name} has ended (${describeExit(exit) || 'not known how'}).`);
      return exit.exitCode ?? 1;
    }
    if (code === 1000) context.out.note(`Left ${name}, which goes on.`);
    else
      context.out.warn(
        `the connection to ${name} was lost (${code}${reason ? ` ${reason}` : ''}); it goes on`,
      );
    return code === 1000 ? 0 : 1;
  },
});
