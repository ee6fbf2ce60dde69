// berth daemon, and its start, stop, restart, status and logs

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { createInterface } from 'node:readline';
import { isWithinRun } from '../../adapters/process/ancestors.ts';
import {
  isSuspended,
  SUSPENDED,
  signalDisposition,
  wayToContinue,
} from '../../adapters/process/process_table.ts';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { localUrl } from '../../adapters/url_host.ts';
import { statePaths } from '../../settings/state_paths.ts';
import {
  lockingDaemon,
  nextDaemon,
  startBackgroundDaemon,
  stopBackgroundDaemon,
} from '../kit/background_daemon.ts';
import { defineCommand, flagOption, integerOption, SERVER_OPTIONS } from '../kit/command.ts';
import { CommandError, EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { checkIsMeant } from '../kit/own_daemon.ts';
import { sanitizeLine } from '../kit/sanitize.ts';
import { activeInitSystem, isInstalledAtLogin, runAll } from './daemon_autostart.ts';

/** Exists for the help: src/bin.ts runs `berth daemon` without loading the command line. */
export const daemonForegroundCommand = defineCommand({
  about:
    'Prints one line once it serves, and runs until SIGTERM or SIGINT. Its services end with it unless ' +
    'shutdown.services is "keep". On SIGHUP it reads its tokens and limits again.',
  options: {
    ...SERVER_OPTIONS,
    restoreStore: flagOption('--restore-store', 'go back to the copy of the store'),
    verbose: flagOption('--verbose', 'print a line for each event, such as the stop of a service'),
  },
  run: async () => {
    throw new UsageError(
      '`berth daemon` takes only --config, --state-dir, --restore-store and --verbose',
      'Put them after the word daemon.',
    );
  },
});

export const daemonStartCommand = defineCommand({
  about: 'Does nothing if a daemon is already running.',
  run: async (context) => {
    const local = await context.local();
    const running = runningDaemon(local.stateDir);
    if (running && isSuspended(running.pid))
      throw new CommandError(`the daemon (pid ${running.pid}) ${SUSPENDED}`, wayToContinue(running.pid));
    const daemon = running ?? (await startBackgroundDaemon(context, local));
    const { pid, port } = daemon;
    const record = {
      pid,
      url: localUrl(local.settings.bind, port),
      stateDir: local.stateDir,
      log: statePaths(local.stateDir).daemonLog,
    };
    const verb = running ? 'is already running' : 'is running';
    context.out.record(
      { ...record, started: !running },
      () => `the daemon ${verb} at ${record.url} (pid ${pid})`,
    );
    return undefined;
  },
});

export const daemonStopCommand = defineCommand({
  about:
    'Services end with it in reverse dependency order, unless shutdown.services is "keep" in the ' +
    'configuration. They stay registered.',
  run: async (context) => {
    const local = await context.local();
    checkIsMeant(context, local);
    const { stateDir } = local;
    const running = runningDaemon(stateDir);
    if (running && isWithinRun(stateDir, running.pid))
      context.out.note(
        'Berth runs this shell and may end it with the daemon. `berth daemon restart` also works from here.',
      );
    const daemon = await stopBackgroundDaemon(context, stateDir);
    const text = daemon ? `the daemon has ended (pid ${daemon.pid})` : 'no daemon was running';
    context.out.record({ stopped: daemon !== undefined, pid: daemon?.pid ?? null }, () => text);
    return undefined;
  },
});

export const daemonStatusCommand = defineCommand({
  about: 'Exit code 0 if it serves, 5 if it does not.',
  run: async (context) => {
    const { client, stateDir, url } = await context.local();
    const lost = runningDaemon(stateDir) ? undefined : await lockingDaemon(stateDir);
    if (lost)
      throw new CommandError(
        `a daemon runs (pid ${lost.pid}), but there is no ${statePaths(stateDir).addressFile}`,
        'It is starting, or the file was removed. `berth daemon stop` ends it.',
        EXIT_CODE.noDaemon,
      );
    const version = await client.version();
    const { pid, startedAt, front, gatewayPort } = version;
    const lines = [
      `the daemon is running (pid ${pid}, version ${version.version}, since ${startedAt})`,
      `  address    ${url()}`,
      `  gateway    ${gatewayPort === null ? 'off' : `port ${gatewayPort}`}`,
      `  state      ${version.stateDir}`,
      `  front      ${front}`,
      `  at login   ${isInstalledAtLogin() ? 'starts' : 'does not start: `berth daemon install` changes that'}`,
    ];
    context.out.record(version, () => lines.join('\n'));
    return EXIT_CODE.ok;
  },
});

/** Throws a CommandError if the daemon is of a version that does not handle the signal for a restart. */
function checkRestartsItself(pid: number): void {
  if (signalDisposition(pid, constants.signals.SIGUSR2) === 'caught') return;
  throw new CommandError(
    'this command would end with the daemon, so that nothing started the next one',
    'Call it from a shell that Berth does not run.',
  );
}

export const daemonRestartCommand = defineCommand({
  about:
    'Services end with it, unless shutdown.services is "keep" in the configuration; then they run on ' +
    'meanwhile. Starts a daemon if none runs.',
  run: async (context) => {
    const local = await context.local();
    checkIsMeant(context, local);
    const before = runningDaemon(local.stateDir);
    const manager = activeInitSystem();
    const isWithin = !manager && before !== undefined && isWithinRun(local.stateDir, before.pid);
    if (isWithin) checkRestartsItself(before.pid);
    if (isWithin) context.out.note('The daemon restarts itself: Berth runs this shell and may end it.');
    if (manager) runAll([manager.restart]);
    else await stopBackgroundDaemon(context, local.stateDir, isWithin ? 'SIGUSR2' : 'SIGTERM');
    const { pid, port } =
      manager || isWithin
        ? await nextDaemon(context, local, before?.pid)
        : await startBackgroundDaemon(context, local);
    const record = { pid, url: localUrl(local.settings.bind, port), before: before?.pid ?? null };
    context.out.record(record, () => `the daemon is running at ${record.url} (pid ${pid})`);
    return undefined;
  },
});

export const daemonLogsCommand = defineCommand({
  about:
    'Prints what a daemon that was started in the background or at login has logged. One in a terminal ' +
    'prints there.',
  options: {
    follow: flagOption('-f, --follow', 'print new lines until Ctrl-C'),
    lines: integerOption('-n, --lines <count>', 'number of last lines; default 100', [1, 100_000]),
  },
  run: async (context, _args, { follow, lines = 100 }) => {
    const { stateDir } = await context.local();
    const path = statePaths(stateDir).daemonLog;
    const journal = activeInitSystem()?.journal;
    if (!journal && !existsSync(path))
      throw new CommandError(`there is no ${path}: no daemon has run in the background here`);
    const [name = '', ...args] = journal ?? ['tail'];
    const followOption = journal ? '--follow' : '-F';
    const options = ['-n', String(lines), ...(follow ? [followOption] : []), ...(journal ? [] : [path])];
    const reader = spawn(name, [...args, ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface(reader.stdout)) context.out.line(sanitizeLine(line));
    return undefined;
  },
});
