// One part of the built command line: the commands that read kubeconfigs and call clusters with the user's
// own login. Their dependencies take tens of milliseconds to load.
export { cloudMoveCommand } from './commands/cloud_move.ts';
export { clusterAddCommand } from './commands/k8s_add.ts';
export { clusterRemoveCommand } from './commands/k8s_remove.ts';
export { clusterRenewCommand } from './commands/k8s_renew.ts';
