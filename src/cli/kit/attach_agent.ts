// Connects this terminal to an agent's terminal: docs/reference.md "Attach on the command line".
import { delay } from '../../client/api_call.ts';
import type { AttachOptions, TerminalEnd, TerminalSession } from '../../client/attach_terminal.ts';
import type { Client } from '../../client/create_client.ts';
import { isBerthError, isRetryable } from '../../client/errors.ts';
import { howEnded } from '../../presentation/format.ts';
import { TAKEN_OVER_CODE, TOKEN_CHANGED } from '../../protocol/terminal.ts';
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

/** How the client closes a session. */
const DETACHED: TerminalEnd = { exit: null, code: 1000, reason: '' };

/** Close codes of a connection that the daemon has lost or restarts: docs/reference.md "Attach". */
const LOST_CODES: readonly number[] = [1006, 1012];

/** Whether attaching again can go on where the connection ended. */
const isLostConnection = ({ exit, code, reason }: TerminalEnd): boolean =>
  !exit && (LOST_CODES.includes(code) || (code === TOKEN_CHANGED.code && reason === TOKEN_CHANGED.reason));

/** Pause before each attempt to attach again. */
const RETRY_MS = 500;
/** How long the window's size has to stay before an observer attaches again. */
const RESIZED_MS = 200;

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

/** Shows output on the alternate screen, which it enters with the first piece. */
function alternateScreen(called: string, { onOpen, detachKeys }: Attempt) {
  const screen = stdout();
  let filter = new TerminalFilter();
  let isEntered = false;
  return {
    /** Another session begins, with a screen of its own. */
    begin: (): void => {
      filter = new TerminalFilter();
    },
    show: (bytes: Uint8Array) => {
      if (!isEntered) {
        onOpen?.();
        screen.write(enterScreen(`${called}: ${detachKeys.text} leaves`));
      }
      isEntered = true;
      return writeToScreen(filter.filter(bytes));
    },
    leave: (): void => {
      if (isEntered) screen.write(leaveScreen(screen.columns));
    },
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
  stdin.setRawMode(true);
  stdin.on('data', take);
  stdin.resume();
  return () => {
    stdin.off('data', take);
    stdin.setRawMode(false);
    stdin.pause();
  };
}

/**
 * Ends a session some time after the window's size has changed, to attach again: a screen that was drawn
 * for a smaller window stays broken in a larger one, and an observer cannot have the program draw it again.
 */
function redrawing(endSession: () => void) {
  let timer: NodeJS.Timeout | undefined;
  let isDue = false;
  return {
    later: (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        isDue = true;
        endSession();
      }, RESIZED_MS);
    },
    /** Whether the session was ended for it, since the last call. */
    isDue: (): boolean => {
      const was = isDue;
      isDue = false;
      return was;
    },
    cancel: (): void => clearTimeout(timer),
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
  const end = new AbortController();
  // Whoever has taken over since the connection was lost stays.
  const role = { mode, takeover: takeover && !isLost };
  const options = { ...role, onOutput: alternate.show, signal: end.signal };
  const attach = (): Promise<TerminalSession> => client.attach(called, options);
  let terminal = isLost ? null : await attach();
  const sendSize = (): void => {
    const size = terminalSize(screen);
    if (size) terminal?.resize(size.columns, size.rows);
  };
  const redraw = redrawing(() => terminal?.detach());
  const resize = mode === 'observe' ? redraw.later : sendSize;
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
    alternate.leave();
  };
  const stop = (): void => finish('stopped');
  const removeInterrupt = context.onInterrupt(restore);
  process.on('SIGTSTP', stop);
  screen.on('resize', resize);
  const session = async (): Promise<TerminalEnd> => {
    terminal ??= await retried(attach, end.signal);
    sendSize();
    for (;;) {
      const ended = await terminal.ended;
      if (!redraw.isDue()) return ended;
      terminal = null;
      alternate.begin();
      terminal = await attach();
    }
  };
  return Promise.race([session(), finished]).finally(() => {
    process.off('SIGTSTP', stop);
    screen.off('resize', resize);
    redraw.cancel();
    end.abort();
    restore();
    removeInterrupt();
  });
}
