// Every command: its name, one line about it, and where it is. In the build each of the three parts is one file: many small files
// take longer to load, and so does what is not needed.
import type { Command } from './command.ts';
import { complete } from './complete.ts';
import { logs } from './logs.ts';
import { ps } from './ps.ts';
import { restart } from './restart.ts';
import { rm } from './rm.ts';
import { start } from './start.ts';
import { status } from './status.ts';
import { stop } from './stop.ts';
import { url } from './url.ts';
import { wait } from './wait.ts';

export interface CommandRow {
  /** One word, or two for a command of a family. */
  name: string;
  aliases?: readonly string[];
  summary: string;
  /** The heading it stands under in the help. */
  part: string;
  /** Works, but is not shown. */
  isHidden?: boolean;
  load: () => Promise<Command>;
}

const PROJECT = 'A project';
const SERVICES = 'Services';
const WATCHING = 'Watching';
const AGENTS = 'Agents';
const CLOUD = 'Kubernetes';
const MACHINE = 'The daemon and this machine';

/** A command that is loaded with this table. */
const here = (command: Command) => async (): Promise<Command> => command;
/** Those that nobody waits for a hundred times a day. */
const more = () => import('./more_commands.ts');
/** Those that read project files, with what that takes: zod and yaml. */
const project = () => import('./project_commands.ts');

export const COMMANDS: readonly CommandRow[] = [
  {
    name: 'init',
    summary: 'write a berth.yaml for this folder, and a token for this user',
    part: PROJECT,
    load: async () => (await project()).init,
  },
  {
    name: 'import',
    summary: 'make a berth.yaml from a Procfile, package.json, compose or process-compose file',
    part: PROJECT,
    load: async () => (await project()).importFile,
  },
  {
    name: 'up',
    summary: 'bring the services of berth.yaml up, or up to date',
    part: PROJECT,
    load: async () => (await project()).up,
  },
  {
    name: 'down',
    summary: 'undo what up did',
    part: PROJECT,
    load: async () => (await more()).down,
  },
  {
    name: 'ps',
    aliases: ['ls'],
    summary: 'list the services',
    part: SERVICES,
    load: here(ps),
  },
  {
    name: 'status',
    aliases: ['explain'],
    summary: 'say how one service is, and why',
    part: SERVICES,
    load: here(status),
  },
  {
    name: 'start',
    summary: 'start services and wait until they are ready',
    part: SERVICES,
    load: here(start),
  },
  {
    name: 'stop',
    summary: 'stop services and all they have started',
    part: SERVICES,
    load: here(stop),
  },
  {
    name: 'restart',
    summary: 'stop and start services',
    part: SERVICES,
    load: here(restart),
  },
  {
    name: 'add',
    summary: 'register a service',
    part: SERVICES,
    load: async () => (await more()).add,
  },
  {
    name: 'rm',
    summary: 'stop services and forget them and their logs',
    part: SERVICES,
    load: here(rm),
  },
  {
    name: 'url',
    summary: 'print the URL of a service, running or not',
    part: SERVICES,
    load: here(url),
  },
  {
    name: 'open',
    summary: 'open a service, or the dashboard, in the browser',
    part: SERVICES,
    load: async () => (await more()).open,
  },
  {
    name: 'wait',
    summary: 'wait until services are ready or stopped',
    part: SERVICES,
    load: here(wait),
  },
  {
    name: 'group ls',
    summary: 'list the groups',
    part: SERVICES,
    load: async () => (await more()).groupList,
  },
  {
    name: 'group start',
    summary: 'start a group in the order of its dependencies',
    part: SERVICES,
    load: async () => (await more()).groupStart,
  },
  {
    name: 'group stop',
    summary: 'stop a group in reverse order',
    part: SERVICES,
    load: async () => (await more()).groupStop,
  },
  {
    name: 'logs',
    summary: 'show what services printed',
    part: WATCHING,
    load: here(logs),
  },
  {
    name: 'events',
    summary: 'follow what happens to services',
    part: WATCHING,
    load: async () => (await more()).events,
  },
  {
    name: 'top',
    summary: 'watch the CPU and memory of services',
    part: WATCHING,
    load: async () => (await more()).top,
  },
  {
    name: 'agent spinup',
    summary: 'start an agent in a terminal of its own',
    part: AGENTS,
    load: async () => (await more()).spinup,
  },
  {
    name: 'agent ls',
    summary: 'list the agents',
    part: AGENTS,
    load: async () => (await more()).agentList,
  },
  {
    name: 'agent logs',
    summary: 'show what an agent printed',
    part: AGENTS,
    load: async () => (await more()).agentLogs,
  },
  {
    name: 'agent attach',
    summary: "use an agent's terminal",
    part: AGENTS,
    load: async () => (await more()).attach,
  },
  {
    name: 'agent rm',
    summary: 'stop agents and forget them',
    part: AGENTS,
    load: async () => (await more()).agentRemove,
  },
  {
    name: 'k8s clusters',
    summary: 'list the clusters',
    part: CLOUD,
    load: async () => (await more()).clusterList,
  },
  {
    name: 'k8s add',
    summary: 'register a cluster',
    part: CLOUD,
    load: async () => (await more()).clusterAdd,
  },
  {
    name: 'k8s rm',
    summary: 'forget clusters; their workloads stay as they are',
    part: CLOUD,
    load: async () => (await more()).clusterRemove,
  },
  {
    name: 'k8s sync',
    summary: 'look for the workloads of clusters',
    part: CLOUD,
    load: async () => (await more()).clusterSync,
  },
  {
    name: 'k8s workloads',
    summary: 'list the workloads',
    part: CLOUD,
    load: async () => (await more()).workloadList,
  },
  {
    name: 'k8s sleep',
    summary: 'scale workloads to zero and remember their size',
    part: CLOUD,
    load: async () => (await more()).sleep,
  },
  {
    name: 'k8s wake',
    summary: 'scale workloads back',
    part: CLOUD,
    load: async () => (await more()).wake,
  },
  {
    name: 'k8s auto-sleep',
    summary: 'show or set when a workload is put to sleep by itself',
    part: CLOUD,
    load: async () => (await more()).autoSleep,
  },
  {
    name: 'k8s tether',
    summary: 'open a local port that leads into a workload',
    part: CLOUD,
    load: async () => (await more()).tether,
  },
  {
    name: 'k8s tethers',
    summary: 'list the tethers',
    part: CLOUD,
    load: async () => (await more()).tetherList,
  },
  {
    name: 'k8s untether',
    summary: 'close tethers and forget them',
    part: CLOUD,
    load: async () => (await more()).untether,
  },
  {
    name: 'cloud token',
    summary: 'print the token of the cloud API',
    part: CLOUD,
    load: async () => (await more()).cloudToken,
  },
  {
    name: 'daemon',
    summary: 'run the daemon here, in the foreground',
    part: MACHINE,
    load: async () => (await more()).foreground,
  },
  {
    name: 'daemon start',
    summary: 'start the daemon in the background',
    part: MACHINE,
    load: async () => (await more()).daemonStart,
  },
  {
    name: 'daemon stop',
    summary: 'end the daemon; services end with it unless it is set to keep them',
    part: MACHINE,
    load: async () => (await more()).daemonStop,
  },
  {
    name: 'daemon status',
    summary: 'say whether a daemon runs, and where',
    part: MACHINE,
    load: async () => (await more()).daemonStatus,
  },
  {
    name: 'service install',
    summary: 'start the daemon at login (systemd, launchd)',
    part: MACHINE,
    load: async () => (await more()).install,
  },
  {
    name: 'service uninstall',
    summary: 'no longer start the daemon at login',
    part: MACHINE,
    load: async () => (await more()).uninstall,
  },
  {
    name: 'service status',
    summary: 'say whether the daemon starts at login',
    part: MACHINE,
    load: async () => (await more()).bootStatus,
  },
  {
    name: 'doctor',
    summary: 'look for what is wrong with this machine, the settings and the daemon',
    part: MACHINE,
    load: async () => (await more()).doctor,
  },
  {
    name: 'completion',
    summary: 'print the completion script for bash, zsh or fish',
    part: MACHINE,
    load: async () => (await more()).completion,
  },
  {
    name: '__complete',
    summary: 'what could come next (called by the completion scripts)',
    part: MACHINE,
    isHidden: true,
    load: here(complete),
  },
];

/** What families of commands are about. */
export const FAMILIES: ReadonlyMap<string, string> = new Map([
  ['group', 'start and stop whole groups'],
  ['agent', 'agents: programs in terminals of their own, with a host name each'],
  ['k8s', 'put Kubernetes workloads to sleep, wake them, reach them'],
  ['cloud', 'the cloud API'],
  ['daemon', 'run the daemon, or start, stop and find the one in the background'],
  ['service', 'start the daemon at login'],
]);

/** The row of what was called, by name or alias; for one of a family both words. */
export function findCommand(first: string, second: string | undefined): CommandRow | undefined {
  const both = COMMANDS.find(({ name }) => second !== undefined && name === `${first} ${second}`);
  return both ?? COMMANDS.find(({ name, aliases }) => name === first || aliases?.includes(first));
}
