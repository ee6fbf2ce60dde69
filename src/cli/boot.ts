// berth service install, uninstall, status: whether the daemon starts at login
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { runningDaemon } from '../client/local.ts';
import { daemonLog, program } from './background.ts';
import type { Cli } from './cli.ts';
import { command, flag } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { LABEL, launchdPlist, type Program, systemdUnit } from './units.ts';

/** How one platform's manager is told: where its file is, and the commands. */
interface Manager {
  name: string;
  file: string;
  text: (program: Program) => string;
  /** Whether the manager can be talked to. */
  isThere: () => boolean;
  enable: readonly string[][];
  /** The last of enabling: also starts the daemon. */
  start: readonly string[];
  disable: readonly string[][];
  isActive: readonly string[];
}

function configHome(): string {
  const home = process.env['XDG_CONFIG_HOME'];
  return home && isAbsolute(home) ? home : join(homedir(), '.config');
}

const runs = ([name = '', ...args]: readonly string[]): boolean =>
  spawnSync(name, args, { stdio: 'ignore' }).status === 0;

const SYSTEMD: Manager = {
  name: 'systemd',
  file: join(configHome(), 'systemd/user/berth.service'),
  text: systemdUnit,
  isThere: () => runs(['systemctl', '--user', 'show-environment']),
  enable: [
    ['systemctl', '--user', 'daemon-reload'],
    ['systemctl', '--user', 'enable', 'berth.service'],
  ],
  start: ['systemctl', '--user', 'start', 'berth.service'],
  disable: [
    ['systemctl', '--user', 'disable', '--now', 'berth.service'],
    ['systemctl', '--user', 'daemon-reload'],
  ],
  isActive: ['systemctl', '--user', 'is-active', '--quiet', 'berth.service'],
};

const launchdFile = join(homedir(), 'Library/LaunchAgents', `${LABEL}.plist`);
const launchdDomain = `gui/${userInfo().uid}`;
const LAUNCHD: Manager = {
  name: 'launchd',
  file: launchdFile,
  text: launchdPlist,
  isThere: () => runs(['launchctl', 'print', launchdDomain]),
  enable: [],
  start: ['launchctl', 'bootstrap', launchdDomain, launchdFile],
  disable: [['launchctl', 'bootout', `${launchdDomain}/${LABEL}`]],
  isActive: ['launchctl', 'print', `${launchdDomain}/${LABEL}`],
};

const manager = (): Manager => (process.platform === 'darwin' ? LAUNCHD : SYSTEMD);

async function programOf(cli: Cli): Promise<Program> {
  const { stateDir } = await cli.local();
  const state = cli.globals.stateDir ?? process.env['BERTH_STATE_DIR'];
  const config = cli.globals.config ?? process.env['BERTH_CONFIG'];
  return {
    node: process.execPath,
    script: program(),
    args: [
      ...(state ? ['--state-dir', resolve(state)] : []),
      ...(config ? ['--config', resolve(config)] : []),
    ],
    path: process.env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    log: daemonLog(stateDir),
  };
}

/** Runs commands of the manager; the first that fails is the error. */
function tell(commands: readonly (readonly string[])[]): void {
  for (const [name = '', ...args] of commands) {
    const { status, stderr, error } = spawnSync(name, args, { encoding: 'utf8' });
    if (status === 0) continue;
    throw new CommandError(`${[name, ...args].join(' ')} failed: ${(error?.message ?? stderr).trim()}`);
  }
}

const isLingering = (): boolean => existsSync(join('/var/lib/systemd/linger', userInfo().username));

export const install = command({
  about:
    'Writes a systemd user unit or a launchd agent and enables it. The manager ends the daemon alone, never your services behind its back, and starts it again when it fails.',
  options: { print: flag('--print', 'only print the file') },
  run: async (cli, _args, { print }) => {
    const { name, file, text, isThere, enable, start } = manager();
    const content = text(await programOf(cli));
    if (print) {
      cli.out.raw(content);
      return;
    }
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, content);
    const daemon = runningDaemon((await cli.local()).stateDir);
    const canTell = isThere();
    if (canTell) tell(daemon ? enable : [...enable, start]);
    cli.out.record({ file, enabled: canTell, started: canTell && !daemon }, () => `${file} is written`);
    if (!canTell)
      cli.out.warn(`${name} does not run for this user here: the daemon starts with it once it does`);
    else if (daemon)
      cli.out.note(
        `A daemon runs already (pid ${daemon.pid}); to hand over: berth daemon stop && ${start.join(' ')}`,
      );
    if (name === 'systemd' && !isLingering()) {
      cli.out.note('It ends when you log out, unless: loginctl enable-linger');
    }
  },
});

export const uninstall = command({
  about: 'A daemon that the manager runs is ended.',
  run: async (cli) => {
    const { file, isThere, disable } = manager();
    const there = existsSync(file);
    if (there && isThere()) tell(disable.slice(0, 1));
    rmSync(file, { force: true });
    if (there && isThere()) tell(disable.slice(1));
    cli.out.record({ file, removed: there }, () => (there ? `${file} is removed` : 'it was not installed'));
  },
});

export const bootStatus = command({
  about: 'Exit code 0 when it is installed, 3 when it is not.',
  run: async (cli) => {
    const { name, file, isActive } = manager();
    const installed = existsSync(file);
    const active = installed && runs(isActive);
    const text = installed
      ? `${file} is installed; ${name} ${active ? 'runs it now' : 'does not run it now'}`
      : 'it is not installed; `berth service install` does that';
    cli.out.record({ manager: name, file, installed, active }, () => text);
    return installed ? EXIT.ok : EXIT.notRunning;
  },
});
