// berth agent attach

import type { TerminalEnd } from '../../client/attach_terminal.ts';
import { TAKEN_OVER_CODE } from '../../protocol/terminal.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { describeExit } from '../kit/format.ts';
import { SCOPE_OPTIONS, stackScope } from '../kit/stack_scope.ts';
import { stdout } from '../kit/standard_streams.ts';
import { enterScreen, leaveScreen, TerminalFilter } from '../kit/terminal_filter.ts';

/** Ctrl-], as in telnet: hardly any program uses it. */
const DETACH_KEY = 0x1d;

const TAKING_OVER = { mode: 'write', takeover: true } as const;

/** Writes to stdout. Resolves once there is room for more: a slow terminal must slow its agent alone. */
function writeToScreen(text: string): Promise<void> | undefined {
  if (stdout().write(text)) return undefined;
  return new Promise((resolve) => stdout().once('drain', resolve));
}

/** Says how a session with `name` has ended; returns the exit code. */
function reportEnd({ out }: CommandContext, name: string, { exit, code, reason }: TerminalEnd): number {
  if (exit) {
    out.note(`${name} has ended (${describeExit(exit) || 'not known how'}).`);
    return exit.exitCode ?? 1;
  }
  if (code === 1000) out.note(`Left ${name}, which goes on.`);
  else if (code === TAKEN_OVER_CODE)
    out.warn(`another viewer has taken over ${name}; attach with --takeover to take it back`);
  else out.warn(`the connection to ${name} was lost (${code}${reason ? ` ${reason}` : ''}); it goes on`);
  return code === 1000 ? 0 : 1;
}

export const agentAttachCommand = defineCommand({
  about:
    'Connects your keyboard and screen to the terminal of the agent until you leave with Ctrl-] or the ' +
    'agent ends. The agent keeps running when you leave. Several people may be attached and type.',
  args: [{ syntax: '<name>', about: 'the agent', completes: 'agent' }],
  options: {
    observe: flagOption('--observe', 'watch only: what you type goes nowhere, but for Ctrl-]'),
    takeover: flagOption('--takeover', 'be its only writer; the writer that there is has to leave'),
    ...SCOPE_OPTIONS,
  },
  run: async (context, [name = ''], { observe, takeover, ...choice }) => {
    if (observe && takeover) throw new UsageError('--observe and --takeover exclude each other');
    const { stdin } = process;
    const screen = stdout();
    if (!stdin.isTTY || !screen.isTTY) {
      throw new UsageError(
        'attach needs a terminal',
        `\`berth agent logs ${name} -f\` follows its output without one.`,
      );
    }
    const client = await context.client();
    const filter = new TerminalFilter();
    let isEntered = false;
    const output = (bytes: Uint8Array) => {
      if (!isEntered) {
        context.out.note(`${observe ? 'Watching' : 'Attached to'} ${name}; Ctrl-] leaves.`);
        screen.write(enterScreen(`${name}: Ctrl-] leaves`));
      }
      isEntered = true;
      return writeToScreen(filter.filter(bytes));
    };
    const viewing = observe ? ({ mode: 'observe' } as const) : takeover ? TAKING_OVER : {};
    const called = (await stackScope(client, choice)).full(name);
    const terminal = await client.attach(called, { ...viewing, onOutput: output });
    const resize = (): void => terminal.resize(screen.columns, screen.rows);
    const restore = (): void => {
      stdin.setRawMode(false);
      stdin.pause();
      if (isEntered) screen.write(leaveScreen(screen.columns));
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
    return reportEnd(context, name, await terminal.ended.finally(leave));
  },
});
