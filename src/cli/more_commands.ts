// The commands that are loaded together when one of them is called.
export { addCommand } from './add.ts';
export { agentListCommand, agentLogsCommand, agentRemoveCommand, agentSpinupCommand } from './agent.ts';
export { agentAttachCommand } from './attach.ts';
export { autostartInstallCommand, autostartStatusCommand, autostartUninstallCommand } from './boot.ts';
export { cloudTokenCommand } from './cloud.ts';
export { completionCommand } from './completion.ts';
export {
  daemonForegroundCommand,
  daemonStartCommand,
  daemonStatusCommand,
  daemonStopCommand,
} from './daemon.ts';
export { doctorCommand } from './doctor.ts';
export { downCommand } from './down.ts';
export { eventsCommand } from './events.ts';
export { groupListCommand, groupStartCommand, groupStopCommand } from './group.ts';
export {
  clusterAddCommand,
  clusterListCommand,
  clusterRemoveCommand,
  clusterSyncCommand,
} from './k8s_clusters.ts';
export { tetherCommand, tetherListCommand, untetherCommand } from './k8s_tethers.ts';
export { autoSleepCommand, sleepCommand, wakeCommand, workloadListCommand } from './k8s_workloads.ts';
export { openCommand } from './open.ts';
export { topCommand } from './top.ts';
