// `berth cloud serve`: the cloud part alone, for a server. No services, no process host, no page:
// docs/reference.md "Cloud server".

import { networkInterfaces } from 'node:os';
import { parseArgs } from 'node:util';
import { takeStateDir } from '../adapters/host/host_start.ts';
import { openFilesTrouble } from '../adapters/process/open_files_limit.ts';
import { giveMemoryBackAtRest, trimMemory } from '../adapters/process/resting_memory.ts';
import { runningDaemon } from '../adapters/process/running_daemon.ts';
import { isWildcard, localUrl } from '../adapters/url_host.ts';
import { type CloudFront, createFront, type Front } from '../front/front.ts';
import type { HolderAddress } from '../protocol/cloud_views.ts';
import { fail } from '../protocol/errors.ts';
import type { Node } from '../runtime/actor.ts';
import { systemClock } from '../runtime/clock.ts';
import { deferred } from '../runtime/deferred.ts';
import { configFile, loadSettings, type Settings, SettingsError } from '../settings/config.ts';
import { loadPart } from '../settings/load_part.ts';
import { POOL_SIZES } from '../settings/pool_sizes.ts';
import { openStateDir, stateDirPath } from '../settings/state_dir.ts';
import { checkStateFiles, readTextInput } from '../settings/state_files.ts';
import { VERSION } from '../settings/version.ts';
import { AddressFile } from './address_file.ts';
import { CloudController, resolveCloudToken } from './cloud_controller.ts';
import { createThreadData } from './create_thread_data.ts';
import { report, reportDeath, reportDefect, reportUnloaded } from './daemon_log.ts';
import { createFrontNode } from './front_node.ts';
import { endProcess } from './hanging_thread.ts';
import { heartbeatMemory, startHeartbeat } from './heartbeat.ts';
import { createLogJobs } from './log_jobs.ts';
import { ignoreOutputErrors, type RunningServer, runProgram } from './program.ts';
import { systemReader } from './read_system.ts';
import { createThreadSupervisor, type ThreadSupervisor } from './thread_supervisor.ts';

const USAGE = 'usage: berth cloud serve [--config FILE] [--state-dir DIR]';

/** The address unless `cloud.bind` gives one. */
const DEFAULT_BIND = '127.0.0.1';

function readArguments(argv: string[]): { config: string | undefined; stateDir: string | undefined } {
  try {
    const options = { config: { type: 'string' }, 'state-dir': { type: 'string' } } as const;
    const { values } = parseArgs({ args: argv, options });
    return { config: values.config, stateDir: values['state-dir'] };
  } catch (error) {
    throw new SettingsError(`${(error as Error).message.split('\n')[0]} (${USAGE})`);
  }
}

/** The settings of a server, which has an address and clusters of its own. */
async function serverSettings(config: string | undefined, ending?: AbortSignal): Promise<Settings> {
  const readText = ending && ((path: string) => readTextInput(path, ending));
  const settings = await loadSettings(config, process.env, readText);
  if (settings.cloud.remote !== '')
    throw new SettingsError('cloud.remote is for `berth daemon`: a cloud server has clusters of its own');
  return { ...settings, cloud: { ...settings.cloud, bind: settings.cloud.bind || DEFAULT_BIND } };
}

/**
 * Where the other Berths of the database reach this one; null with TLS of its own, where they cannot: they
 * only stand by.
 */
function advertisedAddress({ cloud }: Settings, port: number): HolderAddress | null {
  if (cloud.tls_cert !== '') return null;
  const host = cloud.advertise || (isWildcard(cloud.bind) ? ownAddress() : cloud.bind);
  return host === null ? null : { host, port, relayPort: cloud.relay_port > 0 ? cloud.relay_port : null };
}

/** An address of this machine that others may be able to reach. */
function ownAddress(): string | null {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? null;
}

interface ServerParts {
  node: Node;
  threads: ThreadSupervisor;
  front: Front;
  addressFile: AddressFile;
  reload: () => Promise<Settings>;
}

class CloudServer implements RunningServer {
  readonly url: string;
  private readonly parts: ServerParts;

  constructor(url: string, parts: ServerParts) {
    this.url = url;
    this.parts = parts;
  }

  async stop(): Promise<void> {
    const { node, threads, front, addressFile } = this.parts;
    front.shutdown();
    // Changes finish, but a pod or a bulk request may take minutes, and another replica waits for the lease.
    node.ref('workloads').tell('endLongRequests', {});
    await front.close();
    const late = await threads.stop();
    late.push(...(await node.stop()));
    if (late.length > 0) report(`late at the end: ${late.join(', ')}`);
    addressFile.remove();
  }

  async reload(): Promise<void> {
    try {
      const { auth, allowed_extensions, allowed_origins } = await this.parts.reload();
      this.parts.front.reload({
        token: auth.token,
        allowedExtensions: allowed_extensions,
        allowedOrigins: allowed_origins,
      });
      report('allowed extensions and origins were read again');
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      report(`nothing was changed: ${error.message}`);
    }
  }
}

interface FrontParts {
  node: Node;
  threads: ThreadSupervisor;
  cloud: CloudFront;
  stateDir: string;
  lagMs: () => number;
}

function createServerFront(settings: Settings, { node, threads, cloud, stateDir, lagMs }: FrontParts): Front {
  return createFront({
    serves: 'cloud',
    bind: settings.cloud.bind,
    port: settings.cloud.port,
    token: '',
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
    pageLookup: () => null,
    unreadyReason: () =>
      threads.silenceOf('cloud') ?? (cloud.views.holder() ? null : cloud.views.unavailableReason()),
    readSystem: systemReader(node, threads, stateDir, lagMs),
    onRoutesChanged: () => undefined,
    log: report,
    onDefect: reportDefect,
  });
}

async function start(argv: string[], ending: AbortSignal, begun: { threads?: ThreadSupervisor }) {
  const { config, stateDir: named } = readArguments(argv);
  const trouble = openFilesTrouble();
  if (trouble !== null) throw new SettingsError(trouble);
  const umask = process.umask(0o077);
  const settings = await serverSettings(config, ending);
  const stateDir = stateDirPath(named, process.env);
  openStateDir(stateDir, true);
  checkStateFiles(stateDir);
  const running = runningDaemon(stateDir);
  if (running) throw fail('internal', `a daemon runs already (pid ${running.pid}) with ${stateDir}`);
  if (!(await takeStateDir(stateDir))) throw fail('internal', `another Berth starts with ${stateDir}`);
  ignoreOutputErrors();

  const { path: configPath } = configFile(config, process.env);
  const data = createThreadData({
    settings,
    stateDir,
    hostEntry: '',
    umask,
    configPath,
    isCloudServer: true,
  });
  const { note, lagMs } = startHeartbeat(heartbeatMemory(), systemClock);
  giveMemoryBackAtRest({ clock: systemClock, trim: trimMemory });
  const node = createFrontNode(note);
  const heard = deferred<void>();
  const threads = createThreadSupervisor({
    node,
    pools: POOL_SIZES,
    dataFor: () => data,
    receiveAfter: heard.promise,
    onUnendable: (diagnosis) => endProcess(`${diagnosis.stack ?? diagnosis.message}\nit cannot be ended`),
    onDeath: (name, error, sequel) =>
      sequel === 'awaits-files'
        ? reportUnloaded(`the thread ${name}`, error)
        : reportDeath(name, error, sequel === 'refused'),
  });
  begun.threads = threads;

  const controller = new CloudController(node, threads, data.cloud);
  const cloud = await controller.front(settings, resolveCloudToken(settings, stateDir));
  const front = createServerFront(settings, { node, threads, cloud, stateDir, lagMs });
  await front.start();
  heard.resolve();
  // The port comes first: of two servers with the same settings, the second stops here.
  const { port } = await front.listen();
  const addressFile = new AddressFile(stateDir, true);
  addressFile.update({ port });
  data.cloud.advertised = advertisedAddress(settings, port);
  await controller.ensure();
  front.setReady(true);
  const scheme = settings.cloud.tls_cert === '' ? 'http' : 'https';
  const url = localUrl(settings.cloud.bind, port, scheme);
  return new CloudServer(url, { node, threads, front, addressFile, reload: () => serverSettings(config) });
}

/** Runs the cloud server until a signal ends it. `argv` holds the arguments after `berth cloud serve`. */
export async function runCloudServer(argv: string[]): Promise<void> {
  const begun: { threads?: ThreadSupervisor } = {};
  await runProgram(
    (ending) => start(argv, ending, begun),
    async () => begun.threads?.stop(),
  );
}
