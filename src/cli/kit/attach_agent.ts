// Connects this terminal to an agent's terminal: docs/reference.md "Attach on the command line".
import type { AttachOptions, TerminalEnd } from '../../client/attach_terminal.ts';
import type { Client } from '../../client/create_client.ts';
import { howEnded } from '../../presentation/format.ts';
import { TAKEN_OVER_CODE } from '../../protocol/terminal.ts';
import type { CommandContext } from './context.ts';
import { DEFAULT_DETACH_KEYS, type DetachKeys, DetachMatcher } from './detach_keys.ts';
import { stdout, terminalSize } from './standard_streams.ts';
import { stopUntilContinued } from './stop_process.ts';
import { enterScreen, leaveScreen, TerminalFilter } from './terminal_filter.ts';

/** Writes to stdout. Resolves once stdout accepts more: a slow terminal must slow down only its agent. */
function writeToScreen(text: string): Promise<void> | undefined {
  if (stdout().write(text)) return undefined;
  return new Promise((resolve) => stdout().once('drain', resolve));
}

/** Describes how a session with `name` ended. `isSmooth`: the user detached, or the agent ended. */
export function describeTerminalEnd(
  name: string,
  { exit, code, reason }: TerminalEnd,
): { text: string; isSmooth: boolean } {
  if (exit) return { text: `${name} has ended (${howEnded(exit)}).`, isSmooth: true };
  if (code === 1000) return { text: `Detached from ${name}, which keeps running.`, isSmooth: true };
  if (code === TAKEN_OVER_CODE) {
    const text = `another viewer has taken over ${name}; attach with --takeover to take it back`;
    return { text, isSmooth: false };
  }
  const why = `${code}${reason ? ` ${reason}` : ''}`;
  return { text: `the connection to ${name} was lost (${why}); it goes on`, isSmooth: false };
}

export interface AgentViewing extends Pick<AttachOptions, 'mode' | 'takeover'> {
  /** Called before the first output is shown. */
  onOpen?: () => void;
  /** The keys that detach; default: Ctrl-]. */
  detachKeys?: DetachKeys;
}

/**
 * Connects stdin and stdout, which must be terminals, to the agent registered as `called`. Resolves when
 * the user detaches or the session ends, and restores the terminal. On SIGTSTP it restores the terminal
 * and stops; when it is continued, it attaches again.
 */
export async function attachAgent(
  context: CommandContext,
  client: Client,
  called: string,
  viewing: AgentViewing,
): Promise<TerminalEnd> {
  for (;;) {
    const end = await attachOnce(context, client, called, viewing);
    if (end !== 'stopped') return end;
    await stopUntilContinued(process.pid);
  }
}

/** Attaches once; resolves with 'stopped' on SIGTSTP. */
async function attachOnce(
  context: CommandContext,
  client: Client,
  called: string,
  { onOpen, detachKeys = DEFAULT_DETACH_KEYS, ...viewing }: AgentViewing,
): Promise<TerminalEnd | 'stopped'> {
  const { stdin } = process;
  const screen = stdout();
  const filter = new TerminalFilter();
  const matcher = new DetachMatcher(detachKeys);
  let isEntered = false;
  const output = (bytes: Uint8Array) => {
    if (!isEntered) {
      onOpen?.();
      screen.write(enterScreen(`${called}: ${detachKeys.text} leaves`));
    }
    isEntered = true;
    return writeToScreen(filter.filter(bytes));
  };
  const end = new AbortController();
  const terminal = await client.attach(called, { ...viewing, onOutput: output, signal: end.signal });
  const resize = (): void => {
    const size = terminalSize(screen);
    if (size) terminal.resize(size.columns, size.rows);
  };
  const restore = (): void => {
    stdin.setRawMode(false);
    stdin.pause();
    if (isEntered) screen.write(leaveScreen(screen.columns));
  };
  const type = (keys: Buffer): void => {
    const { typed, isLeaving } = matcher.take(keys);
    if (typed.length > 0) terminal.write(typed);
    if (isLeaving) terminal.detach();
  };
  let stop = (): void => {};
  const stopped = new Promise<'stopped'>((resolve) => {
    stop = () => resolve('stopped');
  });
  const removeInterrupt = context.onInterrupt(restore);
  process.on('SIGTSTP', stop);
  stdin.setRawMode(true);
  stdin.on('data', type);
  stdin.resume();
  screen.on('resize', resize);
  resize();
  return Promise.race([terminal.ended, stopped]).finally(() => {
    process.off('SIGTSTP', stop);
    screen.off('resize', resize);
    stdin.off('data', type);
    end.abort();
    restore();
    removeInterrupt();
  });
}
