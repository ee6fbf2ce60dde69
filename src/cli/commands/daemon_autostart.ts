// berth daemon install, uninstall: make the daemon start at login, or undo that
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { runningDaemon } from '../../adapters/process/running_daemon.ts';
import { replaceFile } from '../../settings/replace_file.ts';
import { statePaths } from '../../settings/state_paths.ts';
import { berthScript, certificateEnvironment } from '../kit/background_daemon.ts';
import { defineCommand, flagOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { CommandError, EXIT_CODE } from '../kit/exit_codes.ts';
import { type DaemonProgram, LAUNCHD_LABEL, launchdPlist, systemdUnit } from './service_units.ts';

/** The service manager of a platform: its file and its commands. */
interface InitSystem {
  name: string;
  unitFile: string;
  unitText: (program: DaemonProgram) => string;
  /** Whether the manager is available to this user. */
  isAvailable: () => boolean;
  enable: readonly string[][];
  /** Run after `enable` to start the daemon as well. */
  start: readonly string[];
  disable: readonly string[][];
  isActiveCommand: readonly string[];
  restart: readonly string[];
  /** The command that prints the daemon's log; absent if the manager keeps no log. */
  journal?: readonly string[];
}

function configHome(): string {
  const home = process.env['XDG_CONFIG_HOME'];
  return home && isAbsolute(home) ? home : join(homedir(), '.config');
}

const succeeds = ([name = '', ...args]: readonly string[]): boolean =>
  spawnSync(name, args, { stdio: 'ignore' }).status === 0;

const SYSTEMD: InitSystem = {
  name: 'systemd',
  unitFile: join(configHome(), 'systemd/user/berth.service'),
  unitText: systemdUnit,
  isAvailable: () => succeeds(['systemctl', '--user', 'show-environment']),
  enable: [
    ['systemctl', '--user', 'daemon-reload'],
    ['systemctl', '--user', 'enable', 'berth.service'],
  ],
  start: ['systemctl', '--user', 'start', 'berth.service'],
  disable: [
    ['systemctl', '--user', 'disable', '--now', 'berth.service'],
    ['systemctl', '--user', 'daemon-reload'],
  ],
  isActiveCommand: ['systemctl', '--user', 'is-active', '--quiet', 'berth.service'],
  restart: ['systemctl', '--user', 'restart', 'berth.service'],
  journal: ['journalctl', '--user', '--unit', 'berth.service', '--output', 'cat', '--no-pager'],
};

const launchdFile = join(homedir(), 'Library/LaunchAgents', `${LAUNCHD_LABEL}.plist`);
// Avoids userInfo(), which fails in a container whose user has no name.
const launchdDomain = `gui/${process.getuid?.()}`;
const LAUNCHD: InitSystem = {
  name: 'launchd',
  unitFile: launchdFile,
  unitText: launchdPlist,
  isAvailable: () => succeeds(['launchctl', 'print', launchdDomain]),
  enable: [],
  start: ['launchctl', 'bootstrap', launchdDomain, launchdFile],
  disable: [['launchctl', 'bootout', `${launchdDomain}/${LAUNCHD_LABEL}`]],
  isActiveCommand: ['launchctl', 'print', `${launchdDomain}/${LAUNCHD_LABEL}`],
  restart: ['launchctl', 'kickstart', '-k', `${launchdDomain}/${LAUNCHD_LABEL}`],
};

const initSystem = (): InitSystem => (process.platform === 'darwin' ? LAUNCHD : SYSTEMD);

/** Whether the daemon starts at login. */
export const isInstalledAtLogin = (): boolean => existsSync(initSystem().unitFile);

/** The service manager, if it runs the daemon now. */
export function activeInitSystem(): InitSystem | undefined {
  const manager = initSystem();
  return isInstalledAtLogin() && succeeds(manager.isActiveCommand) ? manager : undefined;
}

async function daemonProgram(context: CommandContext): Promise<DaemonProgram> {
  const { stateDir } = await context.local();
  const state = context.globalOptions.stateDir ?? process.env['BERTH_STATE_DIR'];
  const config = context.globalOptions.config ?? process.env['BERTH_CONFIG'];
  return {
    node: process.execPath,
    script: berthScript(),
    args: [
      ...(state ? ['--state-dir', resolve(state)] : []),
      ...(config ? ['--config', resolve(config)] : []),
    ],
    env: { PATH: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin', ...certificateEnvironment() },
    log: statePaths(stateDir).daemonLog,
  };
}

/** Runs the manager's commands. Throws a CommandError for the first command that fails. */
export function runAll(commands: readonly (readonly string[])[]): void {
  for (const [name = '', ...args] of commands) {
    const { status, stderr, error } = spawnSync(name, args, { encoding: 'utf8' });
    if (status === 0) continue;
    throw new CommandError(`${[name, ...args].join(' ')} failed: ${(error?.message ?? stderr).trim()}`);
  }
}

const isLingerEnabled = (): boolean => existsSync(join('/var/lib/systemd/linger', userInfo().username));

export const autostartInstallCommand = defineCommand({
  about:
    'Writes a systemd user unit or a launchd agent and enables it. The manager stops only the daemon, ' +
    'which stops its services itself, and restarts the daemon after a failure.',
  options: { print: flagOption('--print', 'print the file, install nothing') },
  run: async (context, _args, { print }) => {
    const { name, unitFile, unitText, isAvailable, enable, start } = initSystem();
    const content = unitText(await daemonProgram(context));
    if (print) {
      context.out.raw(content);
      return;
    }
    mkdirSync(dirname(unitFile), { recursive: true });
    replaceFile(unitFile, content);
    const daemon = runningDaemon((await context.local()).stateDir);
    const isReachable = isAvailable();
    if (isReachable) runAll(daemon ? enable : [...enable, start]);
    context.out.record(
      { file: unitFile, enabled: isReachable, started: isReachable && !daemon },
      () => `${unitFile} is written`,
    );
    if (!isReachable)
      context.out.warn(`${name} does not run for this user here: the daemon starts with it once it does`);
    else if (daemon)
      context.out.note(
        `A daemon runs already (pid ${daemon.pid}); to hand over: berth daemon stop && ${start.join(' ')}`,
      );
    if (name === 'systemd' && !isLingerEnabled()) {
      context.out.note('It ends when you log out, unless: loginctl enable-linger');
    }
  },
});

export const autostartUninstallCommand = defineCommand({
  about: 'Stops the daemon if the manager runs it.',
  run: async (context) => {
    const { unitFile, isAvailable, disable } = initSystem();
    const wasInstalled = existsSync(unitFile);
    if (wasInstalled && isAvailable()) runAll(disable.slice(0, 1));
    rmSync(unitFile, { force: true });
    if (wasInstalled && isAvailable()) runAll(disable.slice(1));
    context.out.record({ file: unitFile, removed: wasInstalled }, () =>
      wasInstalled ? `${unitFile} is removed` : 'it was not installed',
    );
  },
});

export const autostartStatusCommand = defineCommand({
  about: 'Exit code 0 if it is installed, 3 if it is not.',
  run: async (context) => {
    const { name, unitFile, isActiveCommand } = initSystem();
    const installed = existsSync(unitFile);
    const active = installed && succeeds(isActiveCommand);
    const text = installed
      ? `${unitFile} is installed; ${name} ${active ? 'runs it now' : 'does not run it now'}`
      : 'it is not installed; `berth daemon install` does that';
    context.out.record({ manager: name, file: unitFile, installed, active }, () => text);
    return installed ? EXIT_CODE.ok : EXIT_CODE.notRunning;
  },
});
