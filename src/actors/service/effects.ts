// The messages of a service to other actors, and its rows in the store.
import type { InputHashTask } from '../../adapters/input_hash.ts';
import type { Store } from '../../adapters/storage/store_tables.ts';
import type { AgentLife } from '../../protocol/access_key.ts';
import type { AgentStatus, TerminalReading } from '../../protocol/agent_state.ts';
import type { EnvironmentRows } from '../../protocol/base_environment.ts';
import type { CommandInput } from '../../protocol/commands.ts';
import { fail } from '../../protocol/errors.ts';
import {
  type EventsProtocol,
  type EventType,
  type NewEvent,
  portConflictEvent,
} from '../../protocol/events.ts';
import {
  type HostProtocol,
  type RunMetadata,
  type SpawnReply,
  type StopReport,
  stopProcessTree,
} from '../../protocol/host.ts';
import { innerOwner, type PortsProtocol, type PortUse } from '../../protocol/ports.ts';
import { isSealed, refuseSealed, sealedFailure } from '../../protocol/sealed_record.ts';
import type { LastCheck, LastEnd, ServiceSpec, ServiceState, StoredService } from '../../protocol/service.ts';
import { refuseUncreated } from '../../protocol/stack_creation.ts';
import { nameInStack } from '../../protocol/stacks.ts';
import type { StatsProtocol } from '../../protocol/stats.ts';
import type { ViewsProtocol } from '../../protocol/views.ts';
import { type Context, type Failure, type Ref, tolerateFailure } from '../../runtime/actor.ts';
import { SERVICE } from '../../settings/limits.ts';
import { type EnvFile, envFileRows, readEnvFiles } from './env_files.ts';
import { childEnvironment, commandEnvironment } from './environment.ts';
import { HostQuestions } from './host_questions.ts';
import { claimsIn, filledSpec, neighbourVariables, type StackPorts } from './placeholders.ts';
import type { LiveRun, Run } from './run.ts';
import * as events from './run_events.ts';
import { checksOf, NO_PORT, spawnRequest } from './spawn_request.ts';
import { ownPort, type StopSettings } from './stop_settings.ts';
import { taskMetadata } from './task_metadata.ts';

export interface ServiceEffectsConfig {
  /** `hashInputs` of adapters/input_hash.ts, in a thread of its own. */
  hashInputs: (task: InputHashTask) => Promise<string>;
  store: Pick<Store, 'table' | 'loss'>;
  /** The daemon's own environment, filtered by `inheritedEnvironment`. */
  environment: EnvironmentRows;
  /**
   * The variables that let an agent's process call the daemon: docs/reference.md "Agent tokens". Fails
   * key_unusable, storage_full.
   */
  agentAccess: (life: AgentLife) => EnvironmentRows;
  /** The user's umask, for children; the daemon's own is 077. */
  umask: number;
  /** The commands of this thread that wait for their terminals. */
  commandsWaiting: { count: number };
}

/** A command in the environment of the service `stored`; null: of none. */
interface CommandSpawn extends Pick<CommandInput, 'cmd' | 'baseEnv' | 'env' | 'cols' | 'rows'> {
  cwd: string;
  stored: StoredService | null;
}

/** Failures of a spawn after which a process may exist: there was no answer, or a process unknown here. */
const DOUBT: readonly string[] = ['overloaded', 'deadline', 'crashed', 'gone', 'already_running'];

/** Whether a spawn that failed with `error` may have started a process. */
export const leavesDoubt = ({ code }: Failure): boolean => DOUBT.includes(code);

/** The side effects of one service: messages to other actors, and rows of the store. */
export class ServiceEffects {
  private readonly name: string;
  private readonly config: ServiceEffectsConfig;
  readonly questions: HostQuestions;
  private readonly host: Ref<HostProtocol>;
  private readonly ports: Ref<PortsProtocol>;
  private readonly events: Ref<EventsProtocol>;
  private readonly stats: Ref<StatsProtocol>;
  private readonly views: Ref<ViewsProtocol>;
  /** Of a task: the last scheduled time it has run for. Each of its runs carries it on. */
  slot: number | null = null;
  /** The last row sent to the views, as JSON. */
  private lastPublished = '';

  constructor(context: Context, config: ServiceEffectsConfig, name: string) {
    this.name = name;
    this.config = config;
    this.host = context.ref('host');
    this.questions = new HostQuestions(this.host, name);
    this.ports = context.ref('ports');
    this.events = context.ref('events');
    this.stats = context.ref('stats');
    this.views = context.ref('views');
  }

  get commandsWaiting(): ServiceEffectsConfig['commandsWaiting'] {
    return this.config.commandsWaiting;
  }

  stored(): StoredService | null {
    return this.config.store.table('services').get(this.name) ?? null;
  }

  /** The record of any service. Fails unknown_service; key_unusable if its environment stays sealed. */
  storedOf(name: string): StoredService {
    const stored = this.config.store.table('services').get(name);
    if (!stored) throw fail('unknown_service', `there is no service ${name}`);
    refuseSealed(stored);
    return stored;
  }

  /** `known`, read again if it is sealed: the key may have been restored since. */
  private latest(known: StoredService): StoredService {
    return isSealed(known) ? (this.stored() ?? known) : known;
  }

  /** How every start after a stop is going to fail: key_unusable or storage_lost. null: it may succeed. */
  startFailure(known: StoredService): Failure | null {
    return sealedFailure(this.latest(known)) ?? this.config.store.loss();
  }

  lastEnd(): LastEnd | null {
    return this.config.store.table('ends').get(this.name) ?? null;
  }

  /** Fails hook_refused before the hook `create` of its stack has completed. */
  refuseUncreated = (spec: ServiceSpec): void => refuseUncreated(spec, this.config.store);

  /** Resolves when the end is on disk. */
  async saveEnd(end: LastEnd): Promise<void> {
    await this.config.store.table('ends').put(this.name, end);
  }

  /**
   * Resolves with the type of the event in the journal: an earlier one may already stand for the run's end.
   */
  async appendEvent(event: NewEvent): Promise<EventType> {
    const { earlier } = await this.events.ask('append', { events: [event] });
    return earlier ?? event.type;
  }

  /** Journals that files of the service have changed. */
  async announceChange(paths: string[]): Promise<void> {
    await this.appendEvent(events.changedEvent(this.name, paths));
  }

  /**
   * Resolves with the end as stored, for which the journal is authoritative. `slept` null: it does not sleep.
   */
  async recordEnd(end: LastEnd, slept: events.Slept | null): Promise<LastEnd> {
    // Event first: an end in the store implies that its event is in the journal. Safe to repeat.
    const told = await this.appendEvent(events.endedEvent(this.name, end, slept));
    const recorded = events.endAsTold(end, told);
    await this.saveEnd(recorded);
    return recorded;
  }

  /** Who listens on `port`, in the words of the port.conflict event; null: nobody, or no port. */
  async portHolder(port: number | null): Promise<string | null> {
    if (port === null) return null;
    const { listener } = await this.ports.ask('listener', { port });
    return listener?.holder ?? null;
  }

  /**
   * Who listens on the port of `run` without belonging to it, in the same words; `unknown` without an answer.
   */
  async foreignHolder(run: LiveRun): Promise<string | null> {
    const use = this.portUseOf(run);
    if (!use) return null;
    const asked = this.ports.ask('foreignHolder', use);
    const { holder } = await tolerateFailure(asked, () => ({ holder: 'unknown' }));
    return holder;
  }

  /**
   * Starts the process of `run`. Fails key_unusable when its environment cannot be unsealed; port_in_use,
   * with a port.conflict event, when its port has a listener; and start_failed for its env files or with the
   * host's reason. Leftover processes of the last run are ended first, because nothing would look for them
   * later.
   */
  async spawn(
    run: Run,
    known: StoredService,
    last: LastEnd | null,
  ): Promise<SpawnReply & Pick<Run, 'metadata'>> {
    const { name } = this;
    const stored = this.latest(known);
    refuseSealed(stored);
    const { spec, ports } = await this.filled(stored.spec);
    const base = this.baseOf(stored);
    const envFiles = await readEnvFiles(spec);
    const fromFiles = envFileRows(name, envFiles, base);
    if (last && !last.whole)
      await this.stopRun(last.run, ownPort(spec), { signal: spec.stopSignal, graceMs: spec.stopGrace });
    const { port } = run.metadata;
    if (port !== null && (await this.portHolder(port)) !== null) throw await this.portConflict(port, run.id);
    const checks = checksOf(spec, run.metadata);
    const metadata = { ...run.metadata, ...checks, ...(await this.taskOf(stored, spec.cwd, envFiles)) };
    const given = { ...spec, port, env: [...fromFiles, ...spec.env] };
    const own = childEnvironment(base, given, run.id, neighbourVariables(spec, ports));
    const env = spec.agent ? [...own, ...this.config.agentAccess({ name, run: run.id })] : own;
    const { umask } = this.config;
    const made = await this.host.ask(
      'spawn',
      spawnRequest({ name, run: run.id, spec, metadata, env, umask }),
    );
    return { ...made, metadata };
  }

  /** The spec with placeholders filled in, and the ports of its stack. Fails start_failed. */
  async filled(spec: ServiceSpec): Promise<{ spec: ServiceSpec; ports: StackPorts }> {
    if (!spec.stack) return { spec, ports: [] };
    const { json } = await this.ports.ask('claims', { prefix: nameInStack(spec.stack, '') });
    const ports = claimsIn(json);
    return { spec: filledSpec(spec, ports), ports };
  }

  /** Starts the process of a command in a terminal. Fails start_failed with the host's reason. */
  async spawnCommand(
    run: string,
    { baseEnv, env, stored, cols, rows, cmd, cwd }: CommandSpawn,
  ): Promise<SpawnReply> {
    const base = stored ? await this.environmentBeside(stored, run) : (baseEnv ?? this.config.environment);
    return this.host.ask('spawn', {
      service: this.name,
      run,
      cmd,
      cwd,
      env: commandEnvironment(base, env, run),
      port: 0,
      umask: this.config.umask,
      pty: { cols, rows },
      memo: { revision: 0, port: 0, ready: null, passed: true, deadline: null, restarts: 0 },
    });
  }

  private async environmentBeside(stored: StoredService, run: string): Promise<EnvironmentRows> {
    const { spec, ports } = await this.filled(stored.spec);
    return childEnvironment(this.baseOf(stored), spec, run, neighbourVariables(spec, ports));
  }

  /** A hash of what a run of `stored` is built from. Fails start_failed when a file of it is unreadable. */
  async contentOf(stored: StoredService): Promise<string> {
    const { spec } = await this.filled(stored.spec);
    return (await this.taskOf(stored, spec.cwd, await readEnvFiles(spec))).task?.content ?? '';
  }

  /** The part of a run's metadata that a task has; `cwd`: with its placeholders filled in. */
  private taskOf(
    stored: StoredService,
    cwd: string,
    envFiles: EnvFile[],
  ): Promise<Pick<RunMetadata, 'task'>> {
    return taskMetadata(stored, { cwd, envFiles, slot: this.slot, hashInputs: this.config.hashInputs });
  }

  /**
   * Journals port.conflict for `port`, which another program holds, and returns the Failure of a start. `run`
   * null: no run is being started.
   */
  async portConflict(port: number, run: string | null): Promise<Failure> {
    const { name } = this;
    const holder = (await this.portHolder(port)) ?? 'unknown';
    await this.appendEvent(portConflictEvent(port, { name, run }, holder));
    return fail('port_in_use', `${name} cannot be started: its port ${port} is held by ${holder}`);
  }

  /** Leases a free port of `range` for the process behind a door, preferably `keep`. Fails port_in_use. */
  async leaseInnerPort([from, to]: readonly [number, number], keep: number | null): Promise<number> {
    const { port } = await this.ports.ask('lease', { owner: innerOwner(this.name), from, to, keep });
    return port;
  }

  releaseInnerPort(): void {
    this.ports.tell('release', { owner: innerOwner(this.name) });
  }

  /**
   * Stops the whole tree of `run`, as `stopProcessTree` does. A host that does not answer, because it was
   * stopped or hangs, is noticed long before the grace period is over.
   */
  stopRun(run: string, port: number | null, settings: StopSettings): Promise<StopReport> {
    const stopped = stopProcessTree(this.host, {
      service: this.name,
      run,
      port: port ?? NO_PORT,
      ...settings,
    });
    const answers = this.host.ask('dropped', {}, { deadlineMs: SERVICE.hostAskTimeoutMs });
    return Promise.race([stopped, answers.then(() => stopped)]);
  }

  /** A variable as a start of the service would have it; null: it has none. */
  variable(known: StoredService | null, variable: string): string | null {
    if (!known) return null;
    const stored = this.latest(known);
    const rows = childEnvironment(this.baseOf(stored), stored.spec, '');
    return rows.find(([key]) => key === variable)?.[1] ?? null;
  }

  private baseOf({ baseEnv }: Pick<StoredService, 'baseEnv'>): EnvironmentRows {
    return baseEnv?.rows ?? this.config.environment;
  }

  /** Journals that the run is ready, and notes it in the host's ledger for a later daemon. */
  async announce(run: LiveRun, clock: Context['clock']): Promise<void> {
    await this.appendEvent(events.startedEvent(this.name, run, this.stored()?.spec.protocol));
    const { session, wokeAt } = run.metadata;
    if (wokeAt !== undefined) await this.appendEvent(events.wokeEvent(this.name, run, wokeAt, clock));
    const ms = Math.max(0, clock.now() - run.startedAt);
    if (session?.woke) await this.appendEvent(events.agentWokeEvent(this.name, run.id, session.id, ms));
    run.metadata.passed = true;
    this.note(run);
  }

  /** Journals that the live-check of the run has failed. */
  async reportUnhealthy(run: LiveRun, check: LastCheck): Promise<void> {
    await this.appendEvent(events.unhealthyEvent(this.name, run, check));
  }

  /** Makes the host keep the run's metadata, with `changes`, for a later daemon. */
  note(run: LiveRun, changes: Partial<RunMetadata> = {}): void {
    this.host.tell('note', { service: this.name, run: run.id, memo: { ...run.metadata, ...changes } });
  }

  /** Tells the host that the end of the run is on disk, so that it may drop the run. */
  acknowledge(run: string): void {
    this.host.tell('acknowledge', { service: this.name, run });
  }

  track(run: LiveRun, running: boolean): void {
    const { pid, startTicks } = run;
    // A cgroup enforces the limit by itself.
    const limitMB = run.contained ? undefined : run.metadata.memoryMB;
    const limit = limitMB === undefined ? {} : { limitMB };
    this.stats.tell('track', { name: this.name, run: run.id, pid, startTicks, running, ...limit });
    const use = this.portUseOf(run);
    if (running && use) this.ports.tell('watch', use);
  }

  untrack(run: LiveRun): void {
    this.stats.tell('forget', { name: this.name, run: run.id });
    this.ports.tell('unwatch', { run: run.id });
  }

  publish(row: ServiceState): void {
    const text = JSON.stringify(row);
    if (text === this.lastPublished) return;
    this.lastPublished = text;
    this.views.tell('states', { rows: [row] });
  }

  publishAgent(row: AgentStatus): void {
    this.views.tell('agents', { rows: [row] });
  }

  /**
   * Makes the host report when terminal output of `run` starts or pauses. Resolves with what it knows so far.
   */
  watchTerminal(run: string): Promise<TerminalReading> {
    return this.host.ask('watchTerminal', { run, on: true }, { deadlineMs: SERVICE.hostAskTimeoutMs });
  }

  /** Switches the host's notifications of log growth on or off. */
  follow(on: boolean): void {
    this.host.tell('follow', { service: this.name, on });
  }

  grew(): void {
    this.views.tell('grew', { name: this.name });
  }

  /** Sends input to the terminal of a run. Resolves when it has taken it, with false when it is gone. */
  async writeInput(run: string, data: Uint8Array): Promise<boolean> {
    const written = this.host.ask(
      'write',
      { service: this.name, run, data },
      { deadlineMs: SERVICE.askDeadlineMs },
    );
    return (await tolerateFailure(written, () => false)) !== false;
  }

  resize(run: string, cols: number, rows: number): void {
    this.host.tell('resize', { service: this.name, run, cols, rows });
  }

  /** Deletes the logs, and makes sure that the next row is published even if it is the same. */
  async forget(): Promise<void> {
    await this.host.ask('forget', { service: this.name });
    this.lastPublished = '';
  }

  /** null: the service has no port. */
  private portUseOf({ id, pid, metadata: { port } }: LiveRun): PortUse | null {
    return port === null ? null : { owner: this.name, run: id, pid, port };
  }
}
