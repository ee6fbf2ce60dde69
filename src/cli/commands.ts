// Every command: its name, its summary, and the part of the build that holds it. The commands used most are loaded with
// this table; the other two parts are loaded when one of their commands is called.

import { completeCommand } from './commands/complete.ts';
import { logsCommand } from './commands/logs.ts';
import { psCommand } from './commands/ps.ts';
import { restartCommand } from './commands/restart.ts';
import { rmCommand } from './commands/rm.ts';
import { startCommand } from './commands/start.ts';
import { statusCommand } from './commands/status.ts';
import { stopCommand } from './commands/stop.ts';
import { urlCommand } from './commands/url.ts';
import { waitCommand } from './commands/wait.ts';
import type { Command } from './kit/command.ts';
import type { CommandRow, CommandTable } from './kit/command_table.ts';

const PROJECT = 'A project';
const SERVICES = 'Services';
const WATCHING = 'Watching';
const AGENTS = 'Agents';
const KUBERNETES = 'Kubernetes';
const DAEMON_AND_MACHINE = 'The daemon and this machine';

/** For a command that is loaded with this table. */
const loaded = (command: Command) => async (): Promise<Command> => command;
const lazyCommands = () => import('./lazy_commands.ts');
const projectCommands = () => import('./project_commands.ts');

const ROWS: readonly CommandRow[] = [
  {
    name: 'init',
    summary: 'write a berth.yaml for this folder, and a token for this user',
    heading: PROJECT,
    load: async () => (await projectCommands()).initCommand,
  },
  {
    name: 'import',
    summary: 'make a berth.yaml from a Procfile, package.json, compose or process-compose file',
    heading: PROJECT,
    load: async () => (await projectCommands()).importCommand,
  },
  {
    name: 'up',
    summary: 'bring the services of berth.yaml up, or up to date',
    heading: PROJECT,
    load: async () => (await projectCommands()).upCommand,
  },
  {
    name: 'down',
    summary: 'undo what up did',
    heading: PROJECT,
    load: async () => (await lazyCommands()).downCommand,
  },
  {
    name: 'ps',
    aliases: ['ls'],
    summary: 'list the services',
    heading: SERVICES,
    load: loaded(psCommand),
  },
  {
    name: 'status',
    aliases: ['explain'],
    summary: 'say how one service is, and why',
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
    summary: 'stop services and all they have started',
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
    name: 'add',
    summary: 'register a service',
    heading: SERVICES,
    load: async () => (await lazyCommands()).addCommand,
  },
  {
    name: 'rm',
    summary: 'stop services and forget them and their logs',
    heading: SERVICES,
    load: loaded(rmCommand),
  },
  {
    name: 'url',
    summary: 'print the URL of a service, running or not',
    heading: SERVICES,
    load: loaded(urlCommand),
  },
  {
    name: 'open',
    summary: 'open a service, or the dashboard, in the browser',
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
    summary: 'list the groups',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupListCommand,
  },
  {
    name: 'group start',
    summary: 'start a group in the order of its dependencies',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupStartCommand,
  },
  {
    name: 'group stop',
    summary: 'stop a group in reverse order',
    heading: SERVICES,
    load: async () => (await lazyCommands()).groupStopCommand,
  },
  {
    name: 'logs',
    summary: 'show what services printed',
    heading: WATCHING,
    load: loaded(logsCommand),
  },
  {
    name: 'events',
    summary: 'follow what happens to services',
    heading: WATCHING,
    load: async () => (await lazyCommands()).eventsCommand,
  },
  {
    name: 'top',
    summary: 'watch the CPU and memory of services',
    heading: WATCHING,
    load: async () => (await lazyCommands()).topCommand,
  },
  {
    name: 'agent spinup',
    summary: 'start an agent in a terminal of its own',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentSpinupCommand,
  },
  {
    name: 'agent ls',
    summary: 'list the agents',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentListCommand,
  },
  {
    name: 'agent logs',
    summary: 'show what an agent printed',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentLogsCommand,
  },
  {
    name: 'agent attach',
    summary: "use an agent's terminal",
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentAttachCommand,
  },
  {
    name: 'agent rm',
    summary: 'stop agents and forget them',
    heading: AGENTS,
    load: async () => (await lazyCommands()).agentRemoveCommand,
  },
  {
    name: 'k8s clusters',
    summary: 'list the clusters',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterListCommand,
  },
  {
    name: 'k8s add',
    summary: 'register a cluster',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterAddCommand,
  },
  {
    name: 'k8s rm',
    summary: 'forget clusters; their workloads stay as they are',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterRemoveCommand,
  },
  {
    name: 'k8s sync',
    summary: 'look for the workloads of clusters',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterSyncCommand,
  },
  {
    name: 'k8s workloads',
    summary: 'list the workloads',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).workloadListCommand,
  },
  {
    name: 'k8s sleep',
    summary: 'scale workloads to zero and remember their size',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).sleepCommand,
  },
  {
    name: 'k8s wake',
    summary: 'scale workloads back',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).wakeCommand,
  },
  {
    name: 'k8s auto-sleep',
    summary: 'show or set when a workload is put to sleep by itself',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).autoSleepCommand,
  },
  {
    name: 'k8s tether',
    summary: 'open a local port that leads into a workload',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).tetherCommand,
  },
  {
    name: 'k8s tethers',
    summary: 'list the tethers',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).tetherListCommand,
  },
  {
    name: 'k8s untether',
    summary: 'close tethers and forget them',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).untetherCommand,
  },
  {
    name: 'cloud token',
    summary: 'print the token of the cloud API',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).cloudTokenCommand,
  },
  {
    name: 'daemon',
    summary: 'run the daemon here, in the foreground',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).daemonForegroundCommand,
  },
  {
    name: 'daemon start',
    summary: 'start the daemon in the background',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).daemonStartCommand,
  },
  {
    name: 'daemon stop',
    summary: 'end the daemon; services end with it unless it is set to keep them',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).daemonStopCommand,
  },
  {
    name: 'daemon status',
    summary: 'say whether a daemon runs, and where',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).daemonStatusCommand,
  },
  {
    name: 'service install',
    summary: 'start the daemon at login (systemd, launchd)',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).autostartInstallCommand,
  },
  {
    name: 'service uninstall',
    summary: 'no longer start the daemon at login',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).autostartUninstallCommand,
  },
  {
    name: 'service status',
    summary: 'say whether the daemon starts at login',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).autostartStatusCommand,
  },
  {
    name: 'doctor',
    summary: 'look for what is wrong with this machine, the settings and the daemon',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).doctorCommand,
  },
  {
    name: 'completion',
    summary: 'print the completion script for bash, zsh or fish',
    heading: DAEMON_AND_MACHINE,
    load: async () => (await lazyCommands()).completionCommand,
  },
  {
    name: '__complete',
    summary: 'what could come next (called by the completion scripts)',
    heading: DAEMON_AND_MACHINE,
    isHidden: true,
    load: async () => completeCommand(COMMAND_TABLE),
  },
];

/** The families, with the summary that the help and the completion show. */
const FAMILIES: ReadonlyMap<string, string> = new Map([
  ['group', 'start and stop whole groups'],
  ['agent', 'agents: programs in terminals of their own, with a host name each'],
  ['k8s', 'put Kubernetes workloads to sleep, wake them, reach them'],
  ['cloud', 'the cloud API'],
  ['daemon', 'run the daemon, or start, stop and find the one in the background'],
  ['service', 'start the daemon at login'],
]);

export const COMMAND_TABLE: CommandTable = { rows: ROWS, families: FAMILIES };
