// State: none of its own, so that a crash of a handler loses nothing. `HostRuns` and `LogWriters` hold the
// state.
import type { HostProtocol } from '../protocol/host.ts';
import { actor, type Context, type Handlers } from '../runtime/actor.ts';
import type { HostRuns } from './host_runs.ts';
import type { LogWriters } from './log_writers.ts';
import type { NoticeSockets } from './notice_sockets.ts';
import type { TerminalWatch } from './terminal_watch.ts';

export interface HostActorConfig {
  runs: HostRuns;
  logWriters: LogWriters;
  notices: NoticeSockets;
  watch: TerminalWatch;
}

/** The terminal of a run of the service `name`; null without one. */
const terminalOf = (runs: HostRuns, name: string, id: string) => {
  const run = runs.all.get(id);
  return run?.name === name ? run.terminal : null;
};

/** The actor `host`: passes each message to the part that handles it. */
export const hostActor = actor<HostProtocol, HostActorConfig>(
  'host',
  (context: Context, { runs, logWriters, notices, watch }): Handlers<HostProtocol> => ({
    runs: () => context.replyLater(runs.settledRows(null).then((rows) => ({ runs: rows }))),
    runOf: ({ service }) => context.replyLater(runs.settledRows(service).then(([run = null]) => ({ run }))),
    spawn: (request) => context.replyLater(runs.spawn(request)),
    stop: (request) => context.replyLater(runs.stop(request)),
    exec: (request) => context.replyLater(runs.exec(request)),
    notified: ({ run, what, timeoutMs }) => context.replyLater(notices.notified(run, what, timeoutMs)),
    signal: (request) => runs.signal(request),
    note: ({ run, memo }) => {
      runs.setRunMetadata(run, memo);
      return null;
    },
    acknowledge: ({ run }) => {
      runs.acknowledge(run);
      return null;
    },
    forget: ({ service }) => {
      runs.forget(service);
      return null;
    },
    follow: ({ service, on }) => {
      logWriters.follow(service, on);
      return null;
    },
    watchTerminal: ({ run, on }) => watch.watch(run, on),
    write: ({ service, run, data }) => {
      const written = terminalOf(runs, service, run)?.write(data);
      return written ? context.replyLater(written) : false;
    },
    resize: ({ service, run, cols, rows }) => {
      terminalOf(runs, service, run)?.resize(cols, rows);
      return null;
    },
    logLimits: (limits) => {
      logWriters.setLimits(limits);
      return null;
    },
    dropped: () => ({ rows: logWriters.droppedBytes() }),
    read: () => ({ runs: runs.all.size, logs: logWriters.written() }),
  }),
  // It never ends: without it, the process would live on and hold every service, and take no message.
  { mailbox: 16_384, restarts: { max: Number.POSITIVE_INFINITY, withinMs: 10_000 } },
);
