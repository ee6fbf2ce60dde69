// berth agent attach
import { defineCommand } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { describeExit } from '../kit/format.ts';
import { stdout } from '../kit/standard_streams.ts';

/** Ctrl-], as in telnet: hardly any program uses it. */
const DETACH_KEY = 0x1d;

/** Switches to the alternate screen; the title says how to leave. */
const enterAlternateScreen = (name: string): string =>
  `\x1b[?1049h\x1b[22;0t\x1b]0;${name}: Ctrl-] leaves\x07`;
/**
 * Resets the modes that a full-screen program may have set: cursor, mouse, bracketed paste, colours,
 * alternate screen.
 */
const RESTORE_TERMINAL =
  '\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[0m\x1b[23;0t\x1b[?1049l';

/**
 * A snapshot of a screen begins with a full reset, which would also clear the user's scrollback: a soft reset
 * replaces it.
 */
const FULL_RESET = [0x1b, 0x63] as const;
const SOFT_RESET = '\x1b[!p\x1b[0m\x1b[H\x1b[2J';

/**
 * Writes `bytes` to stdout. Resolves once there is room for more: a slow terminal must slow its agent alone.
 */
function writeToScreen(bytes: Uint8Array): Promise<void> | undefined {
  const isScreen = FULL_RESET.every((byte, at) => bytes[at] === byte);
  if (isScreen) stdout().write(SOFT_RESET);
  if (stdout().write(isScreen ? bytes.subarray(FULL_RESET.length) : bytes)) return undefined;
  return new Promise((resolve) => stdout().once('drain', resolve));
}

export const agentAttachCommand = defineCommand({
  about:
    'Connects your keyboard and screen to the terminal of the agent until you leave with Ctrl-] or the ' +
    'agent ends. The agent keeps running when you leave.',
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
