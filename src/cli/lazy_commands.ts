// One part of the built command line: the commands that users rarely call. Loading it takes 4 ms, which
// `berth ps` and `berth url` save. The build bundles it into one file, because one file loads faster than
// many.
export { addCommand } from './commands/add.ts';
export {
  agentListCommand,
  agentLogsCommand,
  agentRemoveCommand,
  agentSpinupCommand,
} from './commands/agent.ts';
export { agentAttachCommand } from './commands/agent_attach.ts';
export { agentHookCommand } from './commands/agent_hook.ts';
export { agentInitCommand } from './commands/agent_init.ts';
export { agentPromptCommand } from './commands/agent_prompt.ts';
export { agentKeysCommand, agentScreenCommand } from './commands/agent_screen.ts';
export { agentShareCommand } from './commands/agent_share.ts';
export { agentSleepCommand, agentWakeCommand } from './commands/agent_sleep.ts';
export { agentExplainCommand, agentReportCommand, agentStatesCommand } from './commands/agent_state.ts';
export { agentWaitCommand } from './commands/agent_wait.ts';
export { cloudMigrateCommand } from './commands/cloud_migrate.ts';
export { cloudServeCommand } from './commands/cloud_serve.ts';
export { cloudTokenCommand } from './commands/cloud_token.ts';
export { completionCommand } from './commands/completion.ts';
export {
  daemonForegroundCommand,
  daemonLogsCommand,
  daemonRestartCommand,
  daemonStartCommand,
  daemonStatusCommand,
  daemonStopCommand,
} from './commands/daemon.ts';
export {
  autostartInstallCommand,
  autostartStatusCommand,
  autostartUninstallCommand,
} from './commands/daemon_autostart.ts';
export { doctorCommand } from './commands/doctor.ts';
export { eventsCommand } from './commands/events.ts';
export {
  groupListCommand,
  groupRestartCommand,
  groupStartCommand,
  groupStopCommand,
} from './commands/group.ts';
export { clusterListCommand, clusterSyncCommand } from './commands/k8s_clusters.ts';
export { cloudEventsCommand, cloudHistoryCommand } from './commands/k8s_events.ts';
export { grantsCommand } from './commands/k8s_grants.ts';
export { policyCommand } from './commands/k8s_policy.ts';
export { clusterRightsCommand } from './commands/k8s_rights.ts';
export { savingsCommand } from './commands/k8s_savings.ts';
export { tetherCommand, tetherListCommand, untetherCommand } from './commands/k8s_tethers.ts';
export { tokensCommand } from './commands/k8s_tokens.ts';
export {
  autoSleepCommand,
  sleepCommand,
  wakeCommand,
  workloadListCommand,
} from './commands/k8s_workloads.ts';
export { killCommand } from './commands/kill.ts';
export { loginCommand } from './commands/login.ts';
export { logoutCommand } from './commands/logout.ts';
export { manPageCommand } from './commands/man_page.ts';
export { mcpCommand } from './commands/mcp.ts';
export { notifyTestCommand } from './commands/notify_test.ts';
export { openCommand } from './commands/open.ts';
export { runCommand } from './commands/run.ts';
export { serviceSleepCommand, serviceWakeCommand } from './commands/sleep.ts';
export { stacksCommand } from './commands/stacks.ts';
export { topCommand } from './commands/top.ts';
export { uiCommand } from './commands/ui.ts';
