// The context of a command: its output, the daemon, and what to do on Ctrl-C.
import { withScheme } from '../../adapters/url_host.ts';
import type { CloudLogin } from '../../client/cloud_access.ts';
import type { Client } from '../../client/create_client.ts';
import { type BerthError, isBerthError } from '../../client/errors.ts';
import type { StreamOptions } from '../../client/event_stream.ts';
import { findLocalDaemon, type LocalDaemon, namedUrl } from '../../client/local_daemon.ts';
import { readLogin } from '../../client/login_file.ts';
import { loginToken } from '../../client/login_token.ts';
import { UsageError } from './exit_codes.ts';
import { createOutput, type Format, type Output } from './output.ts';
import { stderr, stdout } from './standard_streams.ts';

/** Options that every command takes, before or after its name. */
export interface GlobalOptions {
  format: Format;
  url: string | undefined;
  stateDir: string | undefined;
  config: string | undefined;
}

export interface CommandContext {
  out: Output;
  globalOptions: GlobalOptions;
  /** The address, tokens and settings of the daemon; read once. */
  local(): Promise<LocalDaemon>;
  /** Like `local`, but reads the settings again. */
  freshLocal(): Promise<LocalDaemon>;
  /** The client; does not check whether a daemon runs. */
  client(): Promise<Client>;
  /**
   * The client for a command that has --force. With `force`, a command within an agent uses the person's
   * token instead of the agent's. Throws a SettingsError without that token.
   */
  clientFor(force: boolean): Promise<Client>;
  /** Registers `clean`, which runs when Ctrl-C ends the command. Returns a function that unregisters it. */
  onInterrupt(clean: () => void): () => void;
}

function checkUrl(named: string | undefined): void {
  const url = withScheme(named ?? 'localhost');
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return;
  throw new UsageError(`${named} is not the URL of a daemon`, 'Give a URL such as http://127.0.0.1:11611.');
}

/** The user's login; `loginToken` renews the token when necessary. */
const USER_LOGIN: CloudLogin = {
  url: (stateDir) => readLogin(stateDir)?.url ?? null,
  token: loginToken,
};

/** How long a call is retried while the daemon, or a group, is starting. */
const BUSY_RETRY_MS = 10_000;

/** Makes the context of one run, and the function that signal handlers call before the process ends. */
export function createCommandContext(globalOptions: GlobalOptions): {
  context: CommandContext;
  interrupt: () => void;
} {
  let local: Promise<LocalDaemon> | undefined;
  const cleaners = new Set<() => void>();
  const find = async (asPerson: boolean): Promise<LocalDaemon> => {
    checkUrl(namedUrl(globalOptions, process.env));
    return findLocalDaemon({ ...globalOptions, busyRetryMs: BUSY_RETRY_MS, asPerson, login: USER_LOGIN });
  };
  const context: CommandContext = {
    out: createOutput(globalOptions.format, { stdout, stderr }),
    globalOptions,
    local: () => {
      local ??= find(false);
      return local;
    },
    freshLocal: () => find(false),
    client: async () => (await context.local()).client,
    clientFor: async (force) => (force ? await find(true) : await context.local()).client,
    onInterrupt: (clean) => {
      cleaners.add(clean);
      return () => void cleaners.delete(clean);
    },
  };
  return {
    context,
    interrupt: () => {
      for (const clean of [...cleaners].reverse()) clean();
      cleaners.clear();
    },
  };
}

/** Whether `error` comes from the daemon or the client and has this code. */
export const hasErrorCode = (error: unknown, code: BerthError['code']): boolean =>
  isBerthError(error) && error.code === code;

/** Whether the daemon itself answered that it failed, other than by being busy or starting. */
const isDaemonsError = ({ code, status }: BerthError): boolean =>
  status >= 500 && status !== 503 && code !== 'bad_answer';

/** How often in a row a daemon may fail so before a stream that follows is given up. */
const STREAM_FAILURES = 5;

/**
 * For streams: tells the user once when the connection is lost, and once when it is back. Throws an error of
 * the daemon that has been its answer to `failures` attempts in a row, which ends the stream.
 */
export function onStreamState(
  context: CommandContext,
  failures = STREAM_FAILURES,
): NonNullable<StreamOptions['onState']> {
  let isLost = false;
  let failed = 0;
  return (state) => {
    failed = !state.open && isDaemonsError(state.error) ? failed + 1 : 0;
    if (!state.open && failed >= failures) throw state.error;
    if (isLost === !state.open) return;
    isLost = !state.open;
    context.out.note(
      state.open ? 'The daemon is back.' : `${state.error.message}; waiting for it to come back`,
    );
  };
}
