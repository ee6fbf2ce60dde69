// The daemon's start: settings, then the process host, threads and front side by side (contract section 1).
import { parseArgs } from 'node:util';
import { spawnHost } from './adapters/hostspawn.ts';
import { loadSettings, SettingsError } from './config.ts';
import type { Daemon } from './daemon.ts';
import { entry } from './entry.ts';
import { report } from './log.ts';
import { isFailure } from './runtime/actor.ts';
import { onSignals } from './signals.ts';
import { openStateDir, stateDirPath } from './statedir.ts';

const USAGE = 'usage: berth daemon [--config FILE] [--state-dir DIR]';
const EXIT = { failed: 1, usage: 2 } as const;

interface Arguments {
  config: string | undefined;
  stateDir: string | undefined;
}

function readArguments(argv: string[]): Arguments {
  try {
    const { values } = parseArgs({
      args: argv,
      options: { config: { type: 'string' }, 'state-dir': { type: 'string' } },
    });
    return { config: values.config, stateDir: values['state-dir'] };
  } catch (error) {
    throw new SettingsError(`${(error as Error).message.split('\n')[0]} (${USAGE})`);
  }
}

/** What keeps the daemon from starting is one line, and an exit code: 2 for what the user set, 1 for all else. */
function giveUp(error: unknown): never {
  const isExpected = error instanceof SettingsError || isFailure(error);
  report(
    isExpected ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error),
  );
  process.exit(error instanceof SettingsError ? EXIT.usage : EXIT.failed);
}

/** A reader of stdout or stderr that has gone away never ends the daemon. To make these streams takes Node 2 ms. */
function neverEndedByReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

async function start(argv: string[]): Promise<Daemon> {
  const { config, stateDir: named } = readArguments(argv);
  const umask = process.umask(0o077);
  const settings = await loadSettings(config, process.env);
  const stateDir = stateDirPath(named, process.env);
  openStateDir(stateDir);
  const hostEntry = entry('host').pathname;
  // Everything waits for host and threads in the end: they come up while the daemon's own code is still being read.
  spawnHost(stateDir, hostEntry);
  const reload = () => loadSettings(config, process.env);
  const options = { settings, stateDir, hostEntry, umask, reload };
  const { callCrew } = await import('./crew.ts');
  const crew = callCrew(options, giveUp);
  neverEndedByReaders();
  await crew.online;
  const { startDaemon } = await import('./daemon.ts');
  return startDaemon(options, crew);
}

/** Runs the daemon until a signal ends it. `argv` is what follows `berth daemon`. */
export async function main(argv: string[]): Promise<void> {
  const starting = start(argv);
  onSignals({
    stop: () => void starting.then((daemon) => daemon.stop()).then(() => process.exit(0), giveUp),
    kill: (code) => process.exit(code),
    reload: () => void starting.then((daemon) => daemon.reload()),
  });
  const daemon = await starting.catch(giveUp);
  process.stdout.write(`berth: listening on ${daemon.url}\n`);
}
