// Every command: its name, its summary, and the part of the build that contains it. The most used commands
// are loaded with this table; another part is loaded when one of its commands is called.

import { AGENT_ROWS } from './agent_commands.ts';
import { completeCommand } from './commands/complete.ts';
import { helpCommand } from './commands/help.ts';
import { logsCommand } from './commands/logs.ts';
import { psCommand } from './commands/ps.ts';
import { restartCommand } from './commands/restart.ts';
import { rmCommand } from './commands/rm.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { stopCommand } from './commands/stop.ts';
import { urlCommand } from './commands/url.ts';
import { waitCommand } from './commands/wait.ts';
import { K8S_ROWS } from './k8s_commands.ts';
import type { Command } from './kit/command.ts';
import type { CommandRow, CommandTable } from './kit/command_table.ts';
import { MCP_ROWS } from './mcp_commands.ts';
import { NOTIFY_ROWS } from './notify_commands.ts';

const PROJECT = 'Project';
const SERVICES = 'Services';
const WATCHING = 'Monitoring';
const DAEMON = 'Daemon';

/** Loads a command that is part of this table's file. */
const loaded = (command: Command) => async (): Promise<Command> => command;
const lazyCommands = () => import('./lazy_commands.ts');
const projectCommands = () => import('./project_commands.ts');

const ROWS: readonly CommandRow[] = [
  {
    name: 'init',
    summary: 'write berth.yaml for this folder and set a token',
    heading: PROJECT,
    load: async () => (await projectCommands()).initCommand,
  },
  {
    name: 'import',
    summary: 'create berth.yaml from a Procfile, package.json, compose or process-compose file',
    heading: PROJECT,
    load: async () => (await projectCommands()).importCommand,
  },
  {
    name: 'up',
    summary: 'start the services of berth.yaml and apply its changes',
    heading: PROJECT,
    load: async () => (await projectCommands()).upCommand,
  },
  {
    name: 'config',
    aliases: ['validate'],
    summary: 'check berth.yaml and print its services as they would be registered',
    heading: PROJECT,
    load: async () => (await projectCommands()).configCommand,
  },
  {
    name: 'down',
    summary: 'stop and remove the services of berth.yaml',
    heading: PROJECT,
    load: async () => (await projectCommands()).downCommand,
  },
  {
    name: 'stacks',
    summary: 'list the stacks of all projects',
    heading: PROJECT,
    load: async () => (await lazyCommands()).stacksCommand,
  },
  {
    name: 'ps',
    aliases: ['ls', 'list'],
    summary: 'list services',
    heading: SERVICES,
    load: loaded(psCommand),
  },
  {
    name: 'status',
    aliases: ['explain'],
    summary: 'show the state of a service and the reason for it',
    heading: SERVICES,
    load: loaded(statusCommand),
  },
  {
    name: 'start',
    summary: 'start services and wait until they are ready',
    heading: SERVICES,
    load: loaded(startCommand),
  },
  {
    name: 'stop',
    summary: 'stop services and every process they started',
    heading: SERVICES,
    load: loaded(stopCommand),
  },
  {
    name: 'restart',
    summary: 'stop and start services',
    heading: SERVICES,
    load: loaded(restartCommand),
  },
  {
    name: 'kill',
    summary: 'send a signal to services',
    heading: SERVICES,
    load: async () => (await lazyCommands()).killCommand,
  },
  {
    name: 'sleep',
    summary: 'stop services until the next connection',
    heading: SERVICES,
    load: async () => (await lazyCommands()).serviceSleepCommand,
  },
  {
    name: 'wake',
    summary: 'start services with their dependencies',
    heading: SERVICES,
    load: async () => (await lazyCommands()).serviceWakeCommand,
  },
  {
    name: 'add',
    summary: 'register a service',
    heading: SERVICES,
    load: async () => (await lazyCommands()).addCommand,
  },
  {
    name: 'run',
    aliases: ['exec'],
    summary: 'run a command in the environment of a service',
    heading: SERVICES,
    load: async () => (await lazyCommands()).runCommand,
  },
  {
    name: 'rm',
    summary: 'stop services and remove them with their logs',
    heading: SERVICES,
    load: loaded(rmCommand),
  },
  {
    name: 'url',
    summary: 'print the URL of a service',
    heading: SERVICES,
    load: loaded(urlCommand),
  },
  {
    name: 'open',
    summary: 'open a service or the dashboard in the browser',
    heading: SERVICES,
    load: async () => (await lazyCommands()).openCommand,
  },
  {
    name: 'wait',
    summary: 'wait until services are ready or stopped',
    heading: SERVICES,
    load: loaded(waitCommand),
  },
  {
    name: 'group ls',
    summary: 'list groups',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupListCommand,
  },
  {
    name: 'group start',
    summary: 'start a group in dependency order',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupStartCommand,
  },
  {
    name: 'group stop',
    summary: 'stop a group in reverse dependency order',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupStopCommand,
  },
  {
    name: 'group restart',
    summary: 'restart a group in dependency order',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupRestartCommand,
  },
  {
    name: 'logs',
    summary: 'show the output of services',
    heading: WATCHING,
    load: loaded(logsCommand),
  },
  {
    name: 'events',
    summary: 'follow the events of services',
    heading: WATCHING,
    load: async () => (await lazyCommands()).eventsCommand,
  },
  ...NOTIFY_ROWS,
  {
    name: 'top',
    summary: 'watch the CPU and memory use of services',
    heading: WATCHING,
    load: async () => (await lazyCommands()).topCommand,
  },
  {
    name: 'ui',
    summary: 'watch and control services and agents in a full-screen terminal interface',
    heading: WATCHING,
    load: async () => (await lazyCommands()).uiCommand,
  },
  ...AGENT_ROWS,
  ...MCP_ROWS,
  ...K8S_ROWS,
  {
    name: 'daemon',
    summary: 'run the daemon in the foreground',
    heading: DAEMON,
    load: async () => (await lazyCommands()).daemonForegroundCommand,
  },
  {
    name: 'daemon start',
    summary: 'start the daemon in the background',
    heading: DAEMON,
    isPersonal: true,
    load: async () => (await lazyCommands()).daemonStartCommand,
  },
  {
    name: 'daemon stop',
    summary: 'stop the daemon, and its services unless it is set to keep them',
    heading: DAEMON,
    isPersonal: true,
    load: async () => (await lazyCommands()).daemonStopCommand,
  },
  {
    name: 'daemon status',
    summary: 'show whether a daemon is running, and where',
    heading: DAEMON,
    load: async () => (await lazyCommands()).daemonStatusCommand,
  },
  {
    name: 'daemon restart',
    summary: 'stop the daemon and start it again',
    heading: DAEMON,
    isPersonal: true,
    load: async () => (await lazyCommands()).daemonRestartCommand,
  },
  {
    name: 'daemon logs',
    summary: 'show the log of the daemon itself',
    heading: DAEMON,
    load: async () => (await lazyCommands()).daemonLogsCommand,
  },
  {
    name: 'daemon install',
    aliases: ['service install'],
    summary: 'start the daemon at login (systemd, launchd)',
    heading: DAEMON,
    isPersonal: true,
    load: async () => (await lazyCommands()).autostartInstallCommand,
  },
  {
    name: 'daemon uninstall',
    aliases: ['service uninstall'],
    summary: 'stop starting the daemon at login',
    heading: DAEMON,
    isPersonal: true,
    load: async () => (await lazyCommands()).autostartUninstallCommand,
  },
  {
    name: 'service status',
    summary: 'show whether the daemon starts at login',
    heading: DAEMON,
    isHidden: true,
    load: async () => (await lazyCommands()).autostartStatusCommand,
  },
  {
    name: 'doctor',
    summary: 'check this machine, the settings and the daemon for problems',
    heading: DAEMON,
    load: async () => (await lazyCommands()).doctorCommand,
  },
  {
    name: 'completion',
    summary: 'print the completion script for bash, zsh or fish',
    heading: DAEMON,
    load: async () => (await lazyCommands()).completionCommand,
  },
  {
    name: 'help',
    summary: 'show the help of berth or of one command',
    heading: DAEMON,
    load: async () => helpCommand(COMMAND_TABLE),
  },
  {
    name: '__complete',
    summary: 'list completions (called by the completion scripts)',
    heading: DAEMON,
    isHidden: true,
    load: async () => completeCommand(COMMAND_TABLE),
  },
  {
    name: '__man',
    summary: 'print the manual page (called by the build)',
    heading: DAEMON,
    isHidden: true,
    load: async () => (await lazyCommands()).manPageCommand(COMMAND_TABLE),
  },
  {
    name: '__schema',
    summary: 'print the JSON Schema of berth.yaml (called by the build)',
    heading: PROJECT,
    isHidden: true,
    load: async () => (await projectCommands()).projectSchemaCommand,
  },
];

/** The families, with the summary that the help and the completion show. */
const FAMILIES: ReadonlyMap<string, string> = new Map([
  ['group', 'start and stop groups of services'],
  ['agent', 'start agents, each in its own terminal with its own host name'],
  ['k8s', 'put Kubernetes workloads to sleep, wake them and connect to them'],
  ['cloud', 'serve the cloud API to a team, and print its token'],
  ['notify', 'try the notices of events'],
  ['daemon', 'run the daemon, in the foreground, in the background or at login'],
]);

export const COMMAND_TABLE: CommandTable = { rows: ROWS, families: FAMILIES };
