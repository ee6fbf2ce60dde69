// What a command is given: the output, the daemon, and the ways to end early.
import type { Client } from '../../client/create_client.ts';
import { type BerthError, isBerthError } from '../../client/errors.ts';
import type { StreamOptions } from '../../client/event_stream.ts';
import { findLocalDaemon, type LocalDaemon } from '../../client/local_daemon.ts';
import { UsageError } from './exit_codes.ts';
import { createOutput, type Format, type Output } from './output.ts';
import { stderr, stdout } from './standard_streams.ts';

/** Options that stand before or behind any command. */
export interface GlobalOptions {
  format: Format;
  url: string | undefined;
  stateDir: string | undefined;
  config: string | undefined;
}

export interface CommandContext {
  out: Output;
  globalOptions: GlobalOptions;
  /** The daemon's address, tokens and settings; looked up once. */
  local(): Promise<LocalDaemon>;
  /** The client; the daemon may not be there. */
  client(): Promise<Client>;
  /** Called when Ctrl-C ends the command: puts the terminal right and says what goes on. Returns what takes it off again. */
  onInterrupt(clean: () => void): () => void;
}

function checkUrl(url: string | undefined): void {
  if (url === undefined || (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol))) return;
  throw new UsageError(`${url} is no address of a daemon`, 'Give one such as http://127.0.0.1:11611.');
}

/** A daemon that starts, or a group that is being started, is waited for this long. */
const BUSY_RETRY_MS = 10_000;

/** The context of one run. */
export function createCommandContext(globalOptions: GlobalOptions): {
  context: CommandContext;
  interrupt: () => void;
} {
  let local: Promise<LocalDaemon> | undefined;
  const cleaners = new Set<() => void>();
  const find = async (): Promise<LocalDaemon> => {
    checkUrl(globalOptions.url ?? process.env['BERTH_URL']);
    return findLocalDaemon({ ...globalOptions, busyRetryMs: BUSY_RETRY_MS });
  };
  const context: CommandContext = {
    out: createOutput(globalOptions.format, { stdout, stderr }),
    globalOptions,
    local: () => {
      local ??= find();
      return local;
    },
    client: async () => (await context.local()).client,
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

/** Whether `error` is the daemon's (or the client's) with this code. */
export const hasErrorCode = (error: unknown, code: BerthError['code']): boolean =>
  isBerthError(error) && error.code === code;

/** For streams: says once that the daemon is gone, and once that it is back. */
export function onStreamState(context: CommandContext): NonNullable<StreamOptions['onState']> {
  let isLost = false;
  return (state) => {
    if (isLost === !state.open) return;
    isLost = !state.open;
    context.out.note(
      state.open ? 'The daemon is back.' : `${state.error.message}; waiting for it to come back`,
    );
  };
}
