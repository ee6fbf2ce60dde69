// Connects this terminal to an agent's terminal: docs/reference.md "Attach on the command line".
import { delay } from '../../client/api_call.ts';
import type { AttachOptions, TerminalEnd, TerminalSession } from '../../client/attach_terminal.ts';
import type { Client } from '../../client/create_client.ts';
import { isBerthError, isRetryable } from '../../client/errors.ts';
import { bytesText, howEnded } from '../../presentation/format.ts';
import { TAKEN_OVER_CODE, TOKEN_CHANGED } from '../../protocol/terminal.ts';
import type { CommandContext } from './context.ts';
import { DEFAULT_DETACH_KEYS, type DetachKeys, DetachMatcher } from './detach_keys.ts';
import { ObservedScreen } from './observed_screen.ts';
import { openRawTerminal } from './raw_terminal.ts';
import { programSize, stdout } from './standard_streams.ts';
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

/** How the client closes a session. */
const DETACHED: TerminalEnd = { exit: null, code: 1000, reason: '', undelivered: 0 };

/** Close codes of a connection that the daemon has lost or restarts: docs/reference.md "Attach". */
const LOST_CODES: readonly number[] = [1006, 1012];

/** Whether attaching again can go on where the connection ended. */
const isLostConnection = ({ exit, code, reason }: TerminalEnd): boolean =>
  !exit && (LOST_CODES.includes(code) || (code === TOKEN_CHANGED.code && reason === TOKEN_CHANGED.reason));

/** Pause before each attempt to attach again. */
const RETRY_MS = 500;

/**
 * Connects stdin and stdout, which must be terminals, to the agent registered as `called`. Resolves when
 * the user detaches or the session ends, and restores the terminal. On SIGTSTP it restores the terminal
 * and stops; when it is continued, it attaches again. A lost connection is opened again as well.
 */
export async function attachAgent(
  context: CommandContext,
  client: Client,
  called: string,
  viewing: AgentViewing,
): Promise<TerminalEnd> {
  const { detachKeys = DEFAULT_DETACH_KEYS } = viewing;
  for (let isLost = false; ; ) {
    const end = await attachOnce(context, client, called, { ...viewing, detachKeys, isLost });
    if (end !== 'stopped' && end.undelivered > 0)
      context.out.warn(`the last ${bytesText(end.undelivered)} of the input did not reach ${called}`);
    if (end === 'stopped') await stopUntilContinued(process.pid);
    else if (!isLostConnection(end)) return end;
    else {
      isLost = true;
      context.out.note(`The connection to ${called} is lost; attaching again. ${detachKeys.text} leaves.`);
    }
  }
}

/** Calls `attach` until it succeeds. Rejects with an error that no retry can fix, or when `signal` aborts. */
async function retried(
  attach: () => Promise<TerminalSession>,
  signal: AbortSignal,
): Promise<TerminalSession> {
  for (;;) {
    await delay(RETRY_MS, signal);
    signal.throwIfAborted();
    try {
      return await attach();
    } catch (error) {
      if (!isBerthError(error) || !isRetryable(error)) throw error;
    }
  }
}

interface Attempt extends AgentViewing {
  detachKeys: DetachKeys;
  /** The connection was lost. */
  isLost: boolean;
}

/** The alternate screen of the user's terminal, entered with the first piece of output. */
function alternateScreen(called: string, { onOpen, detachKeys }: Attempt) {
  const screen = stdout();
  let isEntered = false;
  return {
    enter: (): void => {
      if (isEntered) return;
      isEntered = true;
      onOpen?.();
      // The raw terminal has left the cursor behind the end of the line that `onOpen` has printed.
      screen.write(`\r${enterScreen(`${called}: ${detachKeys.text} leaves`)}`);
    },
    leave: (): void => {
      if (isEntered) screen.write(leaveScreen(screen.columns));
    },
  };
}

/** How a session's output is shown. */
interface Display extends Pick<AttachOptions, 'onOutput' | 'onSize'> {
  /** The window has another size. */
  resized(terminal: TerminalSession | null): void;
  close(): void;
}

/** The agent's terminal takes the size of the window, which shows its output as it is. */
function sharedDisplay(): Display {
  const filter = new TerminalFilter();
  return {
    onOutput: (bytes) => writeToScreen(filter.filter(bytes)),
    resized: (terminal) => {
      const size = programSize(stdout());
      if (size) terminal?.resize(size.cols, size.rows);
    },
    close: () => {},
  };
}

/** The agent's terminal keeps its size, and the window shows the part of it for which it has room. */
function observingDisplay(): Display {
  const observed = new ObservedScreen();
  return {
    onOutput: (bytes) => observed.show(bytes),
    onSize: (cols, rows) => observed.resize(cols, rows),
    resized: () => observed.redraw(),
    close: () => observed.close(),
  };
}

/** Gives each key to `type`, and calls `leave` for those that detach. Returns what ends that. */
function readKeys(
  detachKeys: DetachKeys,
  { type, leave }: { type: (keys: Uint8Array) => void; leave: () => void },
): () => void {
  const { stdin } = process;
  const matcher = new DetachMatcher(detachKeys);
  const take = (keys: Buffer): void => {
    const { typed, isLeaving } = matcher.take(keys);
    if (typed.length > 0) type(typed);
    if (isLeaving) leave();
  };
  const restore = openRawTerminal();
  stdin.on('data', take);
  stdin.resume();
  return () => {
    stdin.off('data', take);
    restore();
    stdin.pause();
  };
}

/**
 * Attaches once; resolves with 'stopped' on SIGTSTP. With `isLost`, waits for the daemon; what is typed
 * meanwhile is dropped, but for the keys that detach.
 */
async function attachOnce(
  context: CommandContext,
  client: Client,
  called: string,
  attempt: Attempt,
): Promise<TerminalEnd | 'stopped'> {
  const { detachKeys, isLost, mode, takeover } = attempt;
  const screen = stdout();
  const alternate = alternateScreen(called, attempt);
  const display = mode === 'observe' ? observingDisplay() : sharedDisplay();
  const end = new AbortController();
  // Whoever has taken over since the connection was lost stays.
  const role = { mode, takeover: takeover && !isLost };
  const onOutput: AttachOptions['onOutput'] = (bytes) => {
    alternate.enter();
    return display.onOutput(bytes);
  };
  const options = { ...role, ...display, onOutput, signal: end.signal };
  const attach = (): Promise<TerminalSession> => client.attach(called, options);
  let terminal = isLost ? null : await attach();
  const resize = (): void => display.resized(terminal);
  let finish = (_: TerminalEnd | 'stopped'): void => {};
  const finished = new Promise<TerminalEnd | 'stopped'>((resolve) => {
    finish = resolve;
  });
  const stopReading = readKeys(detachKeys, {
    type: (keys) => terminal?.write(keys),
    leave: () => (terminal ? terminal.detach() : finish(DETACHED)),
  });
  const restore = (): void => {
    stopReading();
    display.close();
    alternate.leave();
  };
  const stop = (): void => finish('stopped');
  const removeInterrupt = context.onInterrupt(restore);
  process.on('SIGTSTP', stop);
  screen.on('resize', resize);
  const session = async (): Promise<TerminalEnd> => {
    terminal ??= await retried(attach, end.signal);
    resize();
    return terminal.ended;
  };
  return Promise.race([session(), finished]).finally(() => {
    process.off('SIGTSTP', stop);
    screen.off('resize', resize);
    end.abort();
    restore();
    removeInterrupt();
  });
}
