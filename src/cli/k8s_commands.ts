// The commands for Kubernetes: rows of the table in commands.ts.
import type { CommandRow } from './kit/command_table.ts';

const KUBERNETES = 'Kubernetes';

const lazyCommands = () => import('./lazy_commands.ts');
const clusterCommands = () => import('./cluster_commands.ts');

export const K8S_ROWS: readonly CommandRow[] = [
  {
    name: 'k8s clusters',
    summary: 'list clusters',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterListCommand,
  },
  {
    name: 'k8s add',
    summary: 'register a cluster of your kubeconfig',
    heading: KUBERNETES,
    load: async () => (await clusterCommands()).clusterAddCommand,
  },
  {
    name: 'k8s renew',
    summary: 'give a cluster new credentials',
    heading: KUBERNETES,
    load: async () => (await clusterCommands()).clusterRenewCommand,
  },
  {
    name: 'k8s rm',
    summary: 'remove clusters; their workloads stay as they are',
    heading: KUBERNETES,
    load: async () => (await clusterCommands()).clusterRemoveCommand,
  },
  {
    name: 'k8s rights',
    summary: 'show what the accounts of clusters may do, and what each missing right costs',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterRightsCommand,
  },
  {
    name: 'k8s sync',
    summary: 'discover the workloads of clusters',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).clusterSyncCommand,
  },
  {
    name: 'k8s workloads',
    aliases: ['k8s ls'],
    summary: 'list workloads',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).workloadListCommand,
  },
  {
    name: 'k8s sleep',
    summary: 'scale workloads to zero and remember their replica counts',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).sleepCommand,
  },
  {
    name: 'k8s wake',
    summary: 'scale workloads back up',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).wakeCommand,
  },
  {
    name: 'k8s auto-sleep',
    summary: 'show or set when an idle workload is put to sleep',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).autoSleepCommand,
  },
  {
    name: 'k8s policy',
    summary: 'list, set, remove and preview policies: when workloads sleep automatically',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).policyCommand,
  },
  {
    name: 'k8s savings',
    summary: 'show what workloads have saved while they slept',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).savingsCommand,
  },
  {
    name: 'k8s tether',
    summary: 'open a local port to a workload',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).tetherCommand,
  },
  {
    name: 'k8s tethers',
    summary: 'list tethers',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).tetherListCommand,
  },
  {
    name: 'k8s untether',
    summary: 'close and remove tethers',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).untetherCommand,
  },
  {
    name: 'k8s events',
    summary: 'show what happens in the clusters',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).cloudEventsCommand,
  },
  {
    name: 'k8s history',
    summary: 'show the audit log: who changed what',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).cloudHistoryCommand,
  },
  {
    name: 'k8s tokens',
    summary: 'list, create and revoke API tokens',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).tokensCommand,
  },
  {
    name: 'k8s grants',
    summary: 'list, add and remove grants: what each API token may do',
    heading: KUBERNETES,
    load: async () => (await lazyCommands()).grantsCommand,
  },
  {
    name: 'login',
    summary: 'log in at the Berth of your team, for `berth k8s` and remote tethers',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await lazyCommands()).loginCommand,
  },
  {
    name: 'logout',
    summary: 'end the login',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await lazyCommands()).logoutCommand,
  },
  {
    name: 'cloud serve',
    summary: 'serve the cloud API to a team, without local services',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await lazyCommands()).cloudServeCommand,
  },
  {
    name: 'cloud migrate',
    summary: 'create the schema of a shared database, or upgrade it to this version',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await lazyCommands()).cloudMigrateCommand,
  },
  {
    name: 'cloud move',
    summary: 'copy the clusters of the state directory into a shared database',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await clusterCommands()).cloudMoveCommand,
  },
  {
    name: 'cloud token',
    summary: 'print the token of the cloud API',
    heading: KUBERNETES,
    isPersonal: true,
    load: async () => (await lazyCommands()).cloudTokenCommand,
  },
];
