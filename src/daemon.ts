// One daemon's life: the process host, the threads and the front, put together and taken apart.
// docs/reference.md "Shutdown".
import { setImmediate as nextTurn } from 'node:timers/promises';
import { holderOn } from './actors/agents/port_holder.ts';
import { connectHost, rejoin } from './adapters/host/link.ts';
import { spawnHost } from './adapters/host/spawn.ts';
import type { HostTurn } from './adapters/host/turn.ts';
import { listeners } from './adapters/process/listeners.ts';
import { otherUsers } from './adapters/process/users.ts';
import { urlOf } from './adapters/url_host.ts';
import { CloudLink, cloudToken } from './cloud_link.ts';
import { type Settings, SettingsError } from './config.ts';
import type { Core, DaemonOptions } from './core.ts';
import { DaemonAddress } from './daemon_address.ts';
import { dashboardFolder } from './entry.ts';
import { dashboardPages } from './front/dashboard_page.ts';
import { type CloudFront, createFront, type Front } from './front/front.ts';
import { schemaPage } from './front/schema_page.ts';
import { GatewayLink } from './gateway_link.ts';
import { SERVICE, THREADS } from './limits.ts';
import { report, reportDefect } from './log.ts';
import type { GroupsProtocol } from './protocol/groups.ts';
import type { HostProtocol } from './protocol/host.ts';
import type { RegistryProtocol } from './protocol/registry.ts';
import type { Node } from './runtime/actor.ts';
import type { Threads } from './threads.ts';
import type { ThreadData } from './threads_data.ts';
import { VERSION } from './version.ts';

export interface Daemon {
  url: string;
  /** The process host is there: it may come after the rest. Rejects when there is none to be had, or another daemon's. */
  joined: Promise<void>;
  /** Ends everything in order; what it supervises as `shutdown.services` says. */
  stop(): Promise<void>;
  /** Token, allowed extensions and log limits are read again: docs/reference.md "Signals". */
  reload(): Promise<void>;
}

/** The longest that a shutdown of all services may take until it is answered: it keeps to its limits by itself. */
const SHUTDOWN_MS = SERVICE.shutdown.orderedMs + SERVICE.shutdown.restMs + 2 * THREADS.askMs;

async function holder(port: number): Promise<string> {
  return holderOn(port, listeners())?.holder ?? 'another program';
}

function makeFront(options: DaemonOptions, node: Node, gateway: GatewayLink, cloud: CloudFront): Front {
  const { settings, stateDir } = options;
  const dashboard = dashboardPages(dashboardFolder());
  return createFront({
    bind: settings.bind,
    port: settings.port,
    token: settings.auth.token,
    allowedExtensions: settings.allowed_extensions,
    about: {
      version: VERSION,
      pid: process.pid,
      startedAt: Date.now(),
      stateDir,
      gatewayPort: settings.gateway.port > 0 ? settings.gateway.port : null,
      agentDomain: settings.agents.domain,
    },
    node,
    cloud,
    openapi: async (rows) => (await import('./front/schemas.ts')).openapi(rows),
    page: (path) => dashboard(path) ?? schemaPage(path),
    tellGateway: (routes) => gateway.route(routes),
    openGateway: () => gateway.open(),
    log: report,
    onDefect: reportDefect,
    holder,
  });
}

/** What a running daemon is made of. */
interface Parts {
  node: Node;
  front: Front;
  threads: Threads;
  gateway: GatewayLink;
  address: DaemonAddress;
  logLimits: LogLimits;
  joined: Promise<void>;
  /** Of the front. */
  port: number;
  /** The cloud token. */
  secret: string;
}

class RunningDaemon implements Daemon {
  readonly url: string;
  readonly joined: Promise<void>;
  private readonly options: DaemonOptions;
  private readonly parts: Parts;

  constructor(options: DaemonOptions, parts: Parts) {
    this.options = options;
    this.parts = parts;
    this.joined = parts.joined;
    this.url = urlOf(options.settings.bind, parts.port);
  }

  async stop(): Promise<void> {
    const { settings } = this.options;
    const { node, front, threads, address } = this.parts;
    front.shutdown();
    // A host that was started learns that it is not needed any more.
    await this.joined.catch(() => {});
    const stopped =
      settings.shutdown.services === 'stop'
        ? node.ref<GroupsProtocol>('groups').ask('shutdown', {}, { deadlineMs: SHUTDOWN_MS })
        : node.ref<RegistryProtocol>('registry').ask('close', {});
    // Whatever could not be stopped is the host's: the next daemon has it.
    await stopped.catch((error: Error) => report(`not everything was stopped: ${error.message}`));
    await front.close();
    const late = await threads.stop();
    late.push(...(await node.stop()));
    if (late.length > 0) report(`late at the end: ${late.join(', ')}`);
    address.remove();
  }

  async reload(): Promise<void> {
    try {
      const { auth, allowed_extensions: allowedExtensions, logs } = await this.options.reload();
      const { front, gateway, logLimits, secret } = this.parts;
      front.reload({ token: auth.token, allowedExtensions });
      gateway.reload(tokensOf(auth.token, secret), allowedExtensions);
      logLimits.set(logs);
      report('token, allowed extensions and log limits were read again');
    } catch (error) {
      if (!(error instanceof SettingsError)) throw error;
      report(`nothing was changed: ${error.message}`);
    }
  }
}

const tokensOf = (...tokens: string[]): string[] => tokens.filter((token) => token !== '');

/** The limits of logs as they are now: a process host that takes the place of another is told these, not those of the start. */
class LogLimits {
  private readonly node: Node;
  private logs: Settings['logs'];

  constructor(node: Node, logs: Settings['logs']) {
    this.node = node;
    this.logs = logs;
  }

  set(logs: Settings['logs']): void {
    this.logs = logs;
    this.tell();
  }

  tell(): void {
    const { max_bytes: maxBytes, keep } = this.logs;
    this.node.ref<HostProtocol>('host').tell('logLimits', { maxBytes, keep });
  }
}

/** Joins the process host, now and again when it was lost: this is also what keeps a second daemon away. */
async function joinHost(
  node: Node,
  data: ThreadData,
  logLimits: LogLimits,
  isComing: boolean,
): Promise<void> {
  const who = { version: VERSION, session: data.session, node: node.name, services: THREADS.services };
  const { stateDir, hostEntry } = data;
  const join = async (spawned: boolean): Promise<void> => {
    const host = await connectHost({
      stateDir,
      entry: hostEntry,
      who,
      withinMs: THREADS.hostMs,
      spawned,
    });
    node.connect('host', host.pipe);
    logLimits.tell();
  };
  // The services thread reports what is in the way.
  node.onPeerLost((peer) => {
    if (peer === 'host')
      void rejoin(
        () => join(true),
        () => false,
        () => undefined,
      );
  });
  await join(isComing);
}

/** Starts the host after whoever waits for the daemon has been told: it would take its processor from everything else. */
async function lateHost({ stateDir, hostEntry }: ThreadData, join: () => Promise<void>): Promise<void> {
  await nextTurn();
  spawnHost(stateDir, hostEntry);
  await join();
}

/**
 * Warns once where other people can log in and nothing keeps them from the daemon:
 * docs/reference.md "First limits".
 */
function warnOfOpenDoor({ auth }: Settings): void {
  if (auth.token === '' && otherUsers().length > 0)
    report('no auth.token is set: others can log in here and run commands as you; `berth init` sets one');
}

/**
 * Starts everything but the core, which is on its way, and waits for the process host unless that may come later; resolves when
 * it serves. Rejects with a Failure that says in one line why it cannot.
 */
export async function startDaemon(options: DaemonOptions, core: Core, turn: HostTurn): Promise<Daemon> {
  const { settings, stateDir } = options;
  const { node, threads, data } = core;
  const secret = cloudToken(settings, stateDir);
  const address = new DaemonAddress(stateDir, settings.gateway.port > 0 ? settings.gateway.port : null);
  const onPort = (gatewayPort: number | null): void => {
    front.setGatewayPort(gatewayPort);
    address.tell({ gatewayPort });
  };
  const tokens = tokensOf(settings.auth.token, secret);
  const gateway = new GatewayLink({ node, threads, settings, tokens, onPort });
  const cloud = new CloudLink(node, threads);
  const front = makeFront(options, node, gateway, await cloud.front(settings, secret));
  await front.start();
  core.hear();
  const isLater = turn === 'later';
  const logLimits = new LogLimits(node, settings.logs);
  const join = () => joinHost(node, data, logLimits, turn !== 'there');
  const [{ port }] = await Promise.all([
    front.listen(),
    threads.ensure('services'),
    isLater ? undefined : join(),
  ]);
  address.tell({ port });
  const registry = node.ref<RegistryProtocol>('registry');
  await Promise.all([registry.ask('boot', { autostart: true, nothingRuns: isLater }), front.subscribe()]);
  front.setReady(true);
  cloud.resume(data.cloud.keyFile);
  warnOfOpenDoor(settings);
  const joined = isLater ? lateHost(data, join) : Promise.resolve();
  return new RunningDaemon(options, {
    node,
    front,
    threads,
    gateway,
    address,
    logLimits,
    joined,
    port,
    secret,
  });
}
