// One daemon's life: the process host, the threads and the front, from start to shutdown.
// docs/reference.md "Shutdown".
import { setImmediate as nextTurn } from 'node:timers/promises';
import { portHolderOf } from '../actors/ports/port_holder.ts';
import type { HostStart } from '../adapters/host/host_start.ts';
import { spawnHost } from '../adapters/host/spawn_host.ts';
import { listeningSockets } from '../adapters/process/listeners.ts';
import { otherUsers } from '../adapters/process/users.ts';
import { localUrl } from '../adapters/url_host.ts';
import { dashboardPages } from '../front/api/dashboard_pages.ts';
import { docsPage } from '../front/api/docs_page.ts';
import { schemaPage } from '../front/api/schema_page.ts';
import { type CloudFront, createFront, type Front } from '../front/front.ts';
import { type Node, tolerateFailure } from '../runtime/actor.ts';
import { dashboardUrl } from '../settings/build_paths.ts';
import { type Settings, SettingsError } from '../settings/config.ts';
import { SERVICE, THREADS } from '../settings/limits.ts';
import { loadPart } from '../settings/load_part.ts';
import { tokenWarnings } from '../settings/token_warnings.ts';
import { VERSION } from '../settings/version.ts';
import { AddressFile } from './address_file.ts';
import { CloudController, resolveCloudToken } from './cloud_controller.ts';
import { report, reportDefect, reportEvents } from './daemon_log.ts';
import { GatewayController } from './gateway_controller.ts';
import { dialHost, keepHostJoined } from './host_link.ts';
import { createLogJobs } from './log_jobs.ts';
import type { DaemonOptions, MainThread } from './main_thread.ts';
import { systemReader } from './read_system.ts';
import type { ThreadData } from './thread_data.ts';
import type { ThreadSupervisor } from './thread_supervisor.ts';

export interface Daemon {
  url: string;
  /**
   * Resolves when the process host has been joined, possibly after everything else is up; rejects when it
   * cannot be.
   */
  hostJoined: Promise<void>;
  /** Ends everything in order; the setting `shutdown.services` decides about the services. */
  stop(): Promise<void>;
  /** Rereads the token, the allowed callers, and the log limits: docs/reference.md "Signals". */
  reload(): Promise<void>;
  /** Lets a process of its own stop this daemon and start the next one: docs/reference.md "Signals". */
  restart(): void;
}

/** Deadline for the shutdown of all services, which has time limits of its own. */
const SHUTDOWN_MS =
  SERVICE.shutdown.orderedStopMs + SERVICE.shutdown.remainingStopMs + 2 * THREADS.askDeadlineMs;

async function portHolderName(port: number): Promise<string> {
  return (await portHolderOf(port, listeningSockets()))?.label ?? 'another program';
}

function createDaemonFront(
  options: DaemonOptions,
  { node, threads, lagMs }: MainThread,
  gateway: GatewayController,
  cloud: CloudFront,
): Front {
  const { settings, stateDir } = options;
  const dashboard = dashboardPages(dashboardUrl());
  return createFront({
    bind: settings.bind,
    port: settings.port,
    token: settings.auth.token,
    allowedExtensions: settings.allowed_extensions,
    allowedOrigins: settings.allowed_origins,
    daemonInfo: {
      version: VERSION,
      pid: process.pid,
      startedAt: Date.now(),
      stateDir,
      gatewayPort: null,
      agentDomain: settings.agents.domain,
    },
    node,
    cloud,
    logJobs: createLogJobs(node),
    ensureMcp: () => threads.ensure('mcp'),
    openapi: async (operations) =>
      (await loadPart(() => import('../api/schemas.ts'))).openapiJson(operations),
    pageLookup: (path) => dashboard(path) ?? schemaPage(path) ?? docsPage(path),
    unreadyReason: () => threads.silenceOf('services'),
    readSystem: systemReader(node, threads, stateDir, lagMs),
    onRoutesChanged: () => gateway.onRoutesChanged(),
    log: report,
    onDefect: reportDefect,
    ...(options.verbose && { onEvents: reportEvents }),
    describePortHolder: portHolderName,
  });
}

/** The parts of a running daemon. */
interface DaemonParts {
  node: Node;
  front: Front;
  threads: ThreadSupervisor;
  gateway: GatewayController;
  addressFile: AddressFile;
  logLimits: CurrentLogLimits;
  hostJoined: Promise<void>;
  /** The port of the front. */
  port: number;
  /** The cloud token. */
  cloudToken: string;
}

class RunningDaemon implements Daemon {
  readonly url: string;
  readonly hostJoined: Promise<void>;
  private readonly options: DaemonOptions;
  private readonly parts: DaemonParts;

  constructor(options: DaemonOptions, parts: DaemonParts) {
    this.options = options;
    this.parts = parts;
    this.hostJoined = parts.hostJoined;
    this.url = localUrl(options.settings.bind, parts.port);
  }

  async stop(): Promise<void> {
    const { node, front, gateway, threads, addressFile } = this.parts;
    front.shutdown();
    // As in a cloud server: another Berth may wait for the lease.
    node.ref('workloads').tell('endLongRequests', {});
    // A host that was just started learns only from a connection that it is no longer needed.
    await this.hostJoined.catch(() => {});
    // The host keeps what could not be stopped, and the next daemon adopts it.
    await this.endServices().catch((error: Error) => report(`not everything was stopped: ${error.message}`));
    await front.close();
    await gateway.close();
    const late = await threads.stop();
    late.push(...(await node.stop()));
    if (late.length > 0) report(`late at the end: ${late.join(', ')}`);
    addressFile.remove();
  }

  /** Stops the services, or leaves them to the next daemon. */
  private async endServices(): Promise<void> {
    const { node, threads } = this.parts;
    const end = (): Promise<unknown> =>
      this.options.settings.shutdown.services === 'stop'
        ? node.ref('groups').ask('shutdown', {}, { deadlineMs: SHUTDOWN_MS })
        : node.ref('registry').ask('close', {});
    await tolerateFailure(end(), async (failure) => {
      if (failure.code !== 'gone') throw failure;
      // The services thread has died, perhaps because it hung.
      await threads.ensure('services');
      await end();
    });
  }

  restart(): void {
    this.options.restart();
  }

  async reload(): Promise<void> {
    try {
      const settings = await this.options.reload();
      const { auth, allowed_extensions, allowed_origins, logs } = settings;
      const allowedExtensions = allowed_extensions;
      const { front, gateway, logLimits, cloudToken, node } = this.parts;
      front.reload({ token: auth.token, allowedExtensions, allowedOrigins: allowed_origins });
      this.options.settings.notify = settings.notify;
      node.ref('notices').tell('rules', { rules: settings.notify });
      gateway.reload(tokensOf(auth.token, cloudToken), allowedExtensions);
      logLimits.update(logs);
      report('token, allowed extensions and origins, notices, and log limits were read again');
      warnOfTokens(settings, this.options.configPath);
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      report(`nothing was changed: ${error.message}`);
    }
  }
}

const tokensOf = (...tokens: string[]): string[] => tokens.filter((token) => token !== '');

/** The current log limits, sent to every process host after joining it. */
class CurrentLogLimits {
  private readonly node: Node;
  private logs: Settings['logs'];

  constructor(node: Node, logs: Settings['logs']) {
    this.node = node;
    this.logs = logs;
  }

  update(logs: Settings['logs']): void {
    this.logs = logs;
    this.sendToHost();
  }

  sendToHost(): void {
    const { max_bytes: maxBytes, keep } = this.logs;
    this.node.ref('host').tell('logLimits', { maxBytes, keep });
  }
}

/** Joins the process host, now and after each loss. This also keeps a second daemon out. */
async function joinHost(
  node: Node,
  data: ThreadData,
  logLimits: CurrentLogLimits,
  isStarting: boolean,
): Promise<void> {
  keepHostJoined(node, {
    dial: () => dialHost(node, data, true),
    onJoined: () => logLimits.sendToHost(),
    // The services thread reports obstacles.
    report: () => undefined,
  });
  node.connect('host', await dialHost(node, data, isStarting));
  logLimits.sendToHost();
}

/** Starts the host once callers know that the daemon is up. Earlier, it would compete for the processor. */
async function startDeferredHost(
  { stateDir, hostEntry }: ThreadData,
  join: () => Promise<void>,
): Promise<void> {
  await nextTurn();
  spawnHost(stateDir, hostEntry);
  await join();
}

/**
 * Warns once when other users can log in and no token protects the daemon, and of weak tokens:
 * docs/reference.md "Security limits", "Tokens".
 */
function warnOfTokens(settings: Settings, configPath: string): void {
  if (settings.auth.token === '' && otherUsers().length > 0)
    report('no auth.token is set: others can log in here and run commands as you; `berth init` sets one');
  for (const { about, fix } of tokenWarnings(settings, configPath)) report(`${about}. ${fix}`);
}

/**
 * Starts everything that `createMainThread` has not started. Waits for the process host unless it is
 * deferred. Resolves when the daemon serves requests. Rejects with a Failure whose message is one line.
 */
export async function bootDaemon(
  options: DaemonOptions,
  mainThread: MainThread,
  hostStart: HostStart,
): Promise<Daemon> {
  const { settings, stateDir } = options;
  const { node, threads, data } = mainThread;
  const secret = resolveCloudToken(settings, stateDir);
  const address = new AddressFile(stateDir, false);
  const onPort = (gatewayPort: number | null): void => {
    front.setGatewayPort(gatewayPort);
    address.update({ gatewayPort });
  };
  const tokens = tokensOf(settings.auth.token, secret);
  const gateway = new GatewayController({
    node,
    threads,
    settings,
    tokens,
    routes: () => front.gatewayRoutes(),
    onPort,
    describePortHolder: portHolderName,
  });
  const cloud = new CloudController(node, threads, data.cloud);
  const front = createDaemonFront(options, mainThread, gateway, await cloud.front(settings, secret));
  await front.start();
  mainThread.acceptMessages();
  const isLater = hostStart === 'deferred';
  const logLimits = new CurrentLogLimits(node, settings.logs);
  const join = () => joinHost(node, data, logLimits, hostStart !== 'running');
  const [{ port }] = await Promise.all([
    // The gateway's port comes second: if the settings give both the same one, the API gets it.
    front.listen().then((listening) => gateway.hold().then(() => listening)),
    threads.ensure('services'),
    isLater ? undefined : join(),
  ]);
  address.update({ port });
  const registry = node.ref('registry');
  await Promise.all([registry.ask('boot', { autostart: true, nothingRuns: isLater }), front.restoreEvents()]);
  front.setReady(true);
  cloud.resume(data.cloud.keyFile);
  warnOfTokens(settings, options.configPath);
  const joined = isLater ? startDeferredHost(data, join) : Promise.resolve();
  return new RunningDaemon(options, {
    node,
    front,
    threads,
    gateway,
    addressFile: address,
    logLimits,
    hostJoined: joined,
    port,
    cloudToken: secret,
  });
}
