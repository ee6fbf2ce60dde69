// The commands that are loaded together when one of them is called.
export { add } from './add.ts';
export { agentList, agentLogs, agentRemove, spinup } from './agent.ts';
export { attach } from './attach.ts';
export { bootStatus, install, uninstall } from './boot.ts';
export { cloudToken } from './cloud.ts';
export { completion } from './completion.ts';
export { daemonStart, daemonStatus, daemonStop, foreground } from './daemon.ts';
export { doctor } from './doctor.ts';
export { down } from './down.ts';
export { events } from './events.ts';
export { groupList, groupStart, groupStop } from './group.ts';
export { clusterAdd, clusterList, clusterRemove, clusterSync } from './k8s_clusters.ts';
export { tether, tetherList, untether } from './k8s_tethers.ts';
export { autoSleep, sleep, wake, workloadList } from './k8s_workloads.ts';
export { open } from './open.ts';
export { top } from './top.ts';
