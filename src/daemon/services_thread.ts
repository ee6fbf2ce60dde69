// The contents of the services thread.
import { fileURLToPath } from 'node:url';
import { agentsActor } from '../actors/agents/agents.ts';
import { eventsActor } from '../actors/events/events.ts';
import { groupsActor } from '../actors/groups/groups.ts';
import { noticesActor } from '../actors/notices/notices.ts';
import { portsActor } from '../actors/ports/ports.ts';
import { registryActor } from '../actors/registry/registry.ts';
import { schedulesActor } from '../actors/schedules/schedules.ts';
import { agentRules } from '../actors/service/agent_rules.ts';
import { askHost, type ProbeMeans } from '../actors/service/check_probes.ts';
import { inheritedEnvironment } from '../actors/service/environment.ts';
import { serviceActor } from '../actors/service/service.ts';
import type { ServiceConfig } from '../actors/service/service_parts.ts';
import { StateDrawings } from '../actors/service/state_drawings.ts';
import { stacksActor } from '../actors/stacks/stacks.ts';
import { statsActor } from '../actors/stats/stats.ts';
import { unansweredReason } from '../adapters/answering_path.ts';
import { holdOutput } from '../adapters/host/run_pipes.ts';
import type { InputHashTask } from '../adapters/input_hash.ts';
import { pendingPipe } from '../adapters/pipes.ts';
import { bootId } from '../adapters/process/process_table.ts';
import { systemUsage } from '../adapters/process/process_usage.ts';
import { limitProbes, socketProbe } from '../adapters/ready_probe.ts';
import { openDaemonStore } from '../adapters/storage/daemon_store.ts';
import { leaveOutServices } from '../adapters/storage/damaged_rows.ts';
import { EnvironmentSeal, withSealedEnvironments } from '../adapters/storage/sealed_environment.ts';
import { isReadableStore } from '../adapters/storage/store_check.ts';
import { UsageHistory } from '../adapters/usage_history.ts';
import { SERVICE_PREFIX } from '../protocol/address.ts';
import { fail } from '../protocol/errors.ts';
import type { Clock, Node } from '../runtime/actor.ts';
import { deferred } from '../runtime/deferred.ts';
import { AGENT } from '../settings/agent_limits.ts';
import { agentRulesUrl } from '../settings/build_paths.ts';
import { CHECK, TASK } from '../settings/limits.ts';
import { statePaths } from '../settings/state_paths.ts';
import { agentAccess } from './agent_access.ts';
import { report, reportCrash } from './daemon_log.ts';
import { watchMainThread } from './hanging_thread.ts';
import { dialHost, keepHostJoined } from './host_link.ts';
import { createJobPool } from './job_pool.ts';
import { screenJobs } from './screen_drawer.ts';
import type { ServicesThreadData } from './thread_data.ts';
import { runThread } from './thread_instance.ts';

/** Hashes the inputs of tasks in threads of their own: long ones delay no screens, and few of other tasks. */
function inputHasher(node: Node): (task: InputHashTask) => Promise<string> {
  const jobs = createJobPool({ threads: TASK.hashThreads, deadlineMs: TASK.hashTimeoutMs });
  node.scope.defer(() => jobs.close());
  return async (task) => {
    const unanswered = await unansweredReason(task.cwd);
    if (unanswered !== null) throw fail('start_failed', unanswered);
    return jobs.run('hashInputs', task);
  };
}

/** Draws terminals in job threads, and reads the states of agents from them. */
function terminalJobs(node: Node, rulesFolder: string): Pick<ServiceConfig, 'screens' | 'states'> {
  const jobs = createJobPool({ deadlineMs: AGENT.drawTimeoutMs });
  node.scope.defer(() => jobs.close());
  const screens = screenJobs(jobs);
  const drawings = new StateDrawings(node.clock);
  const load = () => jobs.run('loadRules', { folders: [rulesFolder, fileURLToPath(agentRulesUrl())] });
  const rules = agentRules({ load, clock: node.clock, report });
  return { screens, states: { read: screens.readState, drawings, rules } };
}

const probeMeans = (clock: Clock): ProbeMeans => ({
  probe: limitProbes(socketProbe(clock), clock),
  execProbe: limitProbes(askHost, clock, CHECK.maxConcurrentExecs),
});

/**
 * Joins the host, opens the store and starts the actors. Rejects with second_daemon when another daemon has
 * the state directory, and as `openDaemonStore` does.
 */
async function setupServices(node: Node, data: ServicesThreadData): Promise<void> {
  const paths = statePaths(data.stateDir);
  const dial = (isSpawned: boolean) => dialHost(node, data, isSpawned);
  const begun = deferred<void>();
  // The host is the lock: unless it is deferred, the state is not touched before it admits this daemon.
  if (data.hostStart === 'deferred') node.connect('host', pendingPipe(begun.promise.then(() => dial(true))));
  else node.connect('host', await dial(data.hostStart === 'started'));
  const seal = new EnvironmentSeal(paths.envKey);
  const plain = await openDaemonStore({
    paths,
    inFlight: data.storeInFlight,
    report,
    restore: data.restoreStore ? { isReadable: isReadableStore } : null,
    isAlone: data.isFirstThread,
    seal: (service) => seal.seal(service),
  });
  node.scope.defer(() => plain.close());
  const store = withSealedEnvironments(plain, seal);
  keepHostJoined(node, {
    dial: () => dial(false),
    onLost: () => holdOutput(paths.runs),
    onJoined: () => node.ref('registry').ask('boot', { autostart: false }),
    report,
  });
  const environment = inheritedEnvironment(process.env);
  const accessOfAgents = agentAccess(data);
  const probes = probeMeans(node.clock);
  const jobs = terminalJobs(node, data.rulesFolder);
  const hashInputs = inputHasher(node);
  const shared = { viewersInThread: { count: 0 }, commandsWaiting: { count: 0 } };
  node.family(SERVICE_PREFIX, serviceActor, () => ({
    store,
    environment,
    agentAccess: accessOfAgents,
    umask: data.umask,
    ...probes,
    hashInputs,
    bootedAt: data.bootedAt,
    ports: data.servicePorts,
    logs: paths.logs,
    ...jobs,
    ...shared,
  }));
  const marks = store.table('marks');
  const journal = { folder: paths.events, marks, boot: bootId(), report, subscribed: false };
  await node.start('events', eventsActor, journal);
  await node.start('notices', noticesActor, { store: plain, rules: data.notify, environment, report });
  // `ports` needs no environment, so it gets the plain store.
  await node.start('ports', portsActor, { store: plain, watched: new Map() });
  const history = new UsageHistory(paths.logs);
  await node.start('stats', statsActor, { usage: systemUsage(), tracked: new Map(), history });
  const leased = { service: data.servicePorts, agent: data.agentPorts };
  const boot = { bootedAt: data.bootedAt, leaveOut: leaveOutServices(paths.damaged, report), report };
  await node.start('registry', registryActor, { store, ports: leased, ...boot });
  await node.start('schedules', schedulesActor, { store });
  await node.start('groups', groupsActor, { store, bootedAt: data.bootedAt });
  await node.start('stacks', stacksActor, { store });
  await node.start('agents', agentsActor, { domain: data.agentDomain });
  begun.resolve();
}

/** The life of the thread: see `runThread`. */
export const runServicesThread = (): Promise<void> =>
  runThread((node, given) => {
    const data = given as ServicesThreadData;
    node.scope.defer(watchMainThread(data.mainHeartbeat, node.clock));
    return setupServices(node, data);
  }, reportCrash);
