// State: what `Runs` and `Journal` hold; nothing of its own, so that a crash of a handler loses nothing.
import type { HostProtocol } from '../protocol/host.ts';
import { actor, type Context, type Handlers } from '../runtime/actor.ts';
import type { Journal } from './journal.ts';
import type { Runs } from './runs.ts';

export interface HostConfig {
  runs: Runs;
  journal: Journal;
}

const terminalOf = (runs: Runs, service: string, id: string) => {
  const run = runs.all.get(id);
  return run?.row.service === service ? run.terminal : null;
};

/** The actor `host`: letters to the functions behind them. */
export const hostActor = actor<HostProtocol, HostConfig>(
  'host',
  (context: Context, { runs, journal }): Handlers<HostProtocol> => ({
    runs: () => context.later(runs.settled(null).then((rows) => ({ runs: rows }))),
    runOf: ({ service }) => context.later(runs.settled(service).then(([run = null]) => ({ run }))),
    spawn: (request) => context.later(runs.spawn(request)),
    stop: (request) => context.later(runs.stop(request)),
    note: ({ run, memo }) => {
      runs.note(run, memo);
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
      journal.follow(service, on);
      return null;
    },
    write: ({ service, run, data }) => {
      terminalOf(runs, service, run)?.write(data);
      return null;
    },
    resize: ({ service, run, cols, rows }) => {
      terminalOf(runs, service, run)?.resize(cols, rows);
      return null;
    },
    logLimits: (limits) => {
      journal.limit(limits);
      return null;
    },
    dropped: () => ({ rows: journal.dropped() }),
  }),
  { mailbox: 16_384 },
);
