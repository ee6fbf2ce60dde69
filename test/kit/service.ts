// A service in virtual time between stand-ins. The process host is a double that keeps a ledger and speaks
// HostProtocol on its own node, so that tests can cut and restore the connection to it; processes end when
// the test says so.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { askHost } from '../../src/actors/service/check_probes.ts';
import { serviceActor } from '../../src/actors/service/service.ts';
import type { ServiceConfig } from '../../src/actors/service/service_parts.ts';
import { limitProbes, type Probe, type ProbeResult } from '../../src/adapters/ready_probe.ts';
import type { Store, StoreTable, StoreTables } from '../../src/adapters/storage/store_tables.ts';
import type { TerminalReading } from '../../src/protocol/agent_state.ts';
import { fail } from '../../src/protocol/errors.ts';
import {
  type EventsProtocol,
  type EventType,
  type NewEvent,
  RUN_END_TYPES,
} from '../../src/protocol/events.ts';
import type {
  ExecReport,
  HostProtocol,
  LedgerRun,
  RunMetadata,
  SpawnRequest,
  StopReport,
} from '../../src/protocol/host.ts';
import type { PortClaim, PortsProtocol } from '../../src/protocol/ports.ts';
import type { LastEnd, ServiceProtocol, ServiceSpec, ServiceState } from '../../src/protocol/service.ts';
import type { StatsProtocol } from '../../src/protocol/stats.ts';
import type { ViewsProtocol } from '../../src/protocol/views.ts';
import { actor, Failure, type Node, type Ref } from '../../src/runtime/actor.ts';
import { decodeMsgpack, encodeMsgpack } from '../../src/runtime/msgpack.ts';
import {
  pipePair,
  type Stand,
  settle,
  type TestClock,
  tempDir,
  virtualClock,
  type World,
  world,
} from './actors.ts';
import { screensHere, statesHere } from './screens.ts';
import { spec } from './service_inputs.ts';

export const BOOTED_AT = Date.UTC(2029, 11, 31);
export const AGENT = { agentType: null, hostname: 'web.agents.localhost', cols: 120, rows: 32 };

/**
 * A store in memory: rows go through the real encoding. `broken` is the error of every write, as on a full
 * disk; `busy` is what writes wait for.
 */
export class MemoryStore implements Pick<Store, 'table' | 'loss'> {
  /** The failure of a file that is no longer in its place. */
  lost: Failure | null = null;
  broken: Failure | null = null;
  busy: Promise<void> | null = null;
  /** The rows that were read one by one. */
  readonly read: string[] = [];
  private rows = new Map<string, Uint8Array>();

  loss(): Failure | null {
    return this.lost;
  }

  /** What a daemon would find on disk that begins now. */
  copy(): MemoryStore {
    const copied = new MemoryStore();
    copied.rows = new Map(this.rows);
    return copied;
  }

  table<N extends keyof StoreTables>(name: N): StoreTable<StoreTables[N]> {
    const at = (key: string): string => `${name}/${key}`;
    return {
      get: (key) => {
        this.read.push(at(key));
        const bytes = this.rows.get(at(key));
        return bytes && (decodeMsgpack(bytes) as StoreTables[N]);
      },
      all: () =>
        [...this.rows]
          .filter(([key]) => key.startsWith(`${name}/`))
          .map(([key, bytes]) => [key.slice(name.length + 1), decodeMsgpack(bytes) as StoreTables[N]]),
      put: async (key, value) => {
        const bytes = Uint8Array.from(encodeMsgpack(value));
        await settle();
        await this.busy;
        if (this.broken) throw this.broken;
        this.rows.set(at(key), bytes);
      },
      remove: async (key) => {
        // After the puts before it, as on disk.
        await settle();
        await this.busy;
        this.rows.delete(at(key));
      },
    };
  }
}

/** The scripted behaviour of the process host. */
export class HostDouble {
  readonly spawns: SpawnRequest[] = [];
  readonly notes: { run: string; memo: RunMetadata }[] = [];
  readonly acknowledged: string[] = [];
  readonly forgotten: string[] = [];
  readonly stops: { run: string; signal: string; graceMs: number }[] = [];
  readonly follows: boolean[] = [];
  readonly commands: { run: string; cmd: string; timeoutMs: number }[] = [];
  readonly signals: string[] = [];
  /** The answers to commands and to questions after notices. */
  executed: ExecReport | Failure = { exitCode: 0, signal: null, timedOut: false, output: '' };
  notices = { holds: true, status: '' };
  readonly typed: string[] = [];
  /** What the terminal has printed. */
  reading: TerminalReading = {
    lastOutputAt: null,
    isMoving: false,
    signals: { title: '', progress: null, notification: null },
  };
  readonly sizes: [cols: number, rows: number][] = [];
  /** The error of a refused spawn. */
  refusal: Failure | null = null;
  /** When a note is answered. */
  noting: Promise<void> = Promise.resolve();
  /** Bytes of output that a full disk dropped; undefined: the host answers late. */
  lostBytes: number | undefined = 0;
  /** Duration of a spawn and of the end of a tree, in milliseconds. */
  spawnMs = 0;
  stopMs = 0;
  /** Processes left behind by the run before; while any remain they hold the port. */
  leftBehind = 0;
  /** Makes a process end before the spawn is answered. */
  stillborn: number | null = null;
  /** The exit code of a process that ends by the stop signal; null: the signal ends it. */
  onSignal: number | null = null;
  readonly ledger = new Map<string, LedgerRun>();
  /** Every run that had a process. */
  readonly made: string[] = [];
  /** Messages are lost while no daemon is connected. */
  service: Ref<ServiceProtocol> | null = null;
  private readonly clock: TestClock;
  private readonly stopping = new Map<string, Promise<StopReport>>();
  private starting: Promise<void> = Promise.resolve();
  private lastPid = 100;

  constructor(clock: TestClock) {
    this.clock = clock;
  }

  get row(): LedgerRun | undefined {
    return this.ledger.get('web');
  }

  get alive(): boolean {
    return this.row !== undefined && this.row.end === null;
  }

  async start(node: Node): Promise<void> {
    const type = actor<HostProtocol, null>('host', (context) => ({
      runs: () => ({ runs: [...this.ledger.values()] }),
      runOf: ({ service }) =>
        context.replyLater(this.starting.then(() => ({ run: this.ledger.get(service) ?? null }))),
      spawn: (request) => {
        const made = this.spawn(request);
        this.starting = made.then(
          () => {},
          () => {},
        );
        return context.replyLater(made);
      },
      stop: (request) => context.replyLater(this.stop(request.run, request.signal, request.graceMs)),
      exec: ({ run, cmd, timeoutMs }) => {
        this.commands.push({ run, cmd, timeoutMs });
        if (this.executed instanceof Failure) throw this.executed;
        return this.executed;
      },
      notified: () => this.notices,
      signal: ({ signal }) => {
        this.signals.push(signal);
        return { processes: 2 };
      },
      note: ({ run, memo }) => {
        this.notes.push({ run, memo });
        if (this.row?.run === run) this.row.memo = memo;
        return context.replyLater(this.noting.then(() => null));
      },
      acknowledge: ({ service, run }) => {
        this.acknowledged.push(run);
        if (this.row?.run === run && this.row.end) this.ledger.delete(service);
        return null;
      },
      forget: ({ service }) => {
        this.forgotten.push(service);
        return null;
      },
      follow: ({ on }) => {
        this.follows.push(on);
        return null;
      },
      write: ({ service, run, data }) => {
        if (!this.hasTerminal(service, run)) return false;
        this.typed.push(Buffer.from(data).toString());
        return true;
      },
      watchTerminal: () => this.reading,
      resize: ({ service, run, cols, rows }) => {
        if (this.hasTerminal(service, run)) this.sizes.push([cols, rows]);
        return null;
      },
      logLimits: () => null,
      read: () => ({ runs: this.ledger.size, logs: [] }),
      dropped: () => {
        if (this.lostBytes === undefined)
          return context.replyLater(this.pause(10_000).then(() => ({ rows: [] })));
        return { rows: this.lostBytes > 0 ? [{ service: 'web', bytes: this.lostBytes }] : [] };
      },
    }));
    await node.start('host', type, null);
  }

  private hasTerminal(service: string, run: string): boolean {
    const row = this.ledger.get(service);
    return row?.run === run && row.end === null;
  }

  private async spawn(
    request: SpawnRequest,
  ): Promise<{ pid: number; startTicks: number; startedAt: number; rssMB: number }> {
    this.spawns.push(request);
    if (this.spawnMs > 0) await this.pause(this.spawnMs);
    if (this.refusal) throw this.refusal;
    if (this.alive) throw fail('already_running', 'web runs already');
    const { service, run, port, pty, memo } = request;
    this.lastPid += 1;
    const begun = { pid: this.lastPid, startTicks: this.lastPid * 10, startedAt: this.clock.now() };
    this.made.push(run);
    this.ledger.set(service, {
      service,
      run,
      ...begun,
      port,
      pty: pty !== null,
      memo,
      stopping: false,
      end: null,
    });
    if (this.stillborn !== null) this.exit(this.stillborn);
    return { ...begun, rssMB: 12 };
  }

  /** Also for a run that is no longer in the ledger: processes with its mark are ended. */
  private async stop(run: string, signal: string, graceMs: number): Promise<StopReport> {
    const { row } = this;
    this.stops.push({ run, signal, graceMs });
    if (row?.run !== run || row.end) {
      const { exitCode = null, signal = null } = (row?.run === run && row.end) || {};
      const reaped = this.leftBehind;
      this.leftBehind = 0;
      const rest = {
        exitUnknown: row?.run !== run,
        escalated: false,
        reaped,
        left: [],
        portFree: true,
        ms: 3,
      };
      return { exitCode, signal, ...rest };
    }
    const joined = this.stopping.get(run) ?? this.endTree(row, signal, graceMs);
    this.stopping.set(run, joined);
    return joined;
  }

  private async endTree(row: LedgerRun, signal: string, graceMs: number): Promise<StopReport> {
    row.stopping = true;
    const escalated = this.stopMs > graceMs;
    const ms = Math.min(this.stopMs, graceMs);
    if (ms > 0) await this.pause(ms);
    if (!row.end) {
      const by = escalated ? 'SIGKILL' : signal;
      const exitCode = escalated ? null : this.onSignal;
      this.end(row, exitCode, exitCode === null ? by : null);
    }
    const { exitCode = null, signal: ended = null } = row.end ?? {};
    return {
      exitCode,
      signal: ended,
      exitUnknown: false,
      escalated,
      reaped: 1,
      left: [],
      portFree: true,
      ms,
    };
  }

  /** Ends the process. The service is notified, repeatedly until it acknowledges. */
  exit(exitCode: number | null, signal: string | null = null): void {
    const { row } = this;
    if (row && !row.end) this.end(row, exitCode, signal);
  }

  private end(row: LedgerRun, exitCode: number | null, signal: string | null): void {
    const { service, run } = row;
    row.end = {
      service,
      run,
      exitCode,
      signal,
      exitUnknown: false,
      cause: 'exit',
      at: this.clock.now(),
    };
    this.tellEnd();
  }

  tellEnd(): void {
    if (this.row?.end) this.service?.tell('exited', this.row.end);
  }

  private pause(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }
}

/** Probes that answer as the test says; `hang` leaves them pending. */
export class ProbeDouble {
  outcome: ProbeResult = { status: null, error: 'connection refused: nothing listens there' };
  hang = false;
  readonly at: number[] = [];
  open = 0;
  private readonly clock: TestClock;

  constructor(clock: TestClock) {
    this.clock = clock;
  }

  readonly probe: Probe = (_url, _limitMs, done) => {
    let over = false;
    this.at.push(this.clock.monotonic());
    this.open += 1;
    const end = (): void => {
      if (over) return;
      over = true;
      this.open -= 1;
    };
    if (!this.hang)
      queueMicrotask(() => {
        if (over) return;
        end();
        done(this.outcome);
      });
    return end;
  };

  pass(): void {
    this.outcome = { status: 200, error: null };
  }
}

export interface Supervised {
  clock: TestClock;
  services: World;
  host: HostDouble;
  probe: ProbeDouble;
  store: MemoryStore;
  config: ServiceConfig;
  ref: Ref<ServiceProtocol>;
  views: Stand<ViewsProtocol>;
  stats: Stand<StatsProtocol>;
  /** Who listens on the port, who does so beside the run, and what is registered. */
  ports: { holder: string | null; foreign: string | null; claims: PortClaim[] };
  /** Every event in the journal: a repeated `once` is not stored again. */
  journal: NewEvent[];
  /** While set, appends fail with it. */
  broken: { events: Failure | null };
  /** Starts the actor. */
  begin(): Promise<void>;
  /** The events' types and data, in order. */
  events(): [type: string, data: unknown][];
  state(): ServiceState;
  /** The store's record of the last end. */
  kept(): LastEnd | undefined;
  /** Cuts the connection to the host; `join` makes a new one. */
  cut(): void;
  join(): void;
  advance(ms: number): Promise<void>;
}

export interface Plan {
  spec?: Partial<ServiceSpec>;
  /** Without a registration. */
  unknown?: boolean;
  end?: LastEnd;
  row?: Partial<LedgerRun>;
  clock?: TestClock;
  /** Of an earlier daemon. */
  store?: MemoryStore;
  journal?: readonly NewEvent[];
}

export const MEMO: RunMetadata = {
  revision: 1,
  port: 3000,
  ready: null,
  passed: true,
  deadline: null,
  restarts: 0,
};

export async function supervise(plan: Plan = {}): Promise<Supervised> {
  const clock = plan.clock ?? virtualClock();
  const place = (address: string): string => (address === 'host' ? 'host' : 'services');
  const services = world({ name: 'services', nodeOf: place, clock });
  const far = world({ name: 'host', nodeOf: place, clock });
  const host = new HostDouble(clock);
  await host.start(far.node);
  let cut = (_: string): void => {};
  const connect = (): void => {
    const pair = pipePair();
    services.node.connect('host', pair.ends[0]);
    far.node.connect('services', pair.ends[1]);
    cut = pair.cut;
    host.service = far.ref<ServiceProtocol>('service:web');
  };
  connect();
  const store = plan.store ?? new MemoryStore();
  if (!plan.unknown) await store.table('services').put('web', { spec: spec(plan.spec), revision: 1 });
  if (plan.end) await store.table('ends').put('web', plan.end);
  if (plan.row) host.ledger.set('web', row(clock, plan.row));
  const journal: NewEvent[] = [...(plan.journal ?? [])];
  const broken = { events: null as Failure | null };
  const ports: Supervised['ports'] = { holder: null, foreign: null, claims: [] };
  await services.stand<EventsProtocol>('events', {
    append: ({ events }) => {
      if (broken.events) throw broken.events;
      const isEnd = (type: EventType): boolean => RUN_END_TYPES.some((end) => end === type);
      const known = events.map((event) => {
        const isSame = ({ run, type }: NewEvent): boolean =>
          run === event.run && (type === event.type || (isEnd(type) && isEnd(event.type)));
        const earlier = event.once && journal.find(isSame);
        if (!earlier) journal.push(event);
        return earlier || undefined;
      });
      const earlier = known.findLast((event) => event !== undefined);
      return { lastId: journal.length, ...(earlier && { earlier: earlier.type }) };
    },
    history: ({ types, limit }) => ({
      events: journal
        .map(({ once: _, ...event }, index) => ({ ...event, id: index + 1, at: clock.now() }))
        .filter(({ type }) => types?.includes(type) ?? true)
        .slice(-limit),
    }),
  });
  await services.stand<PortsProtocol>('ports', {
    listener: () => {
      const holder = host.leftBehind > 0 ? 'web' : ports.holder;
      return { listener: holder === null ? null : { pid: 1, holder } };
    },
    foreignHolder: () => ({ holder: ports.foreign }),
    lease: ({ from, keep }) => ({ port: keep ?? from }),
    claims: () => ({ json: JSON.stringify(ports.claims) }),
  });
  const views = await services.stand<ViewsProtocol>('views');
  const stats = await services.stand<StatsProtocol>('stats');
  const probe = new ProbeDouble(clock);
  const logs = tempDir();
  mkdirSync(join(logs, 'web'));
  const config: ServiceConfig = {
    store,
    probe: probe.probe,
    execProbe: limitProbes(askHost, clock),
    agentAccess: () => [],
    environment: [['HOME', '/home/u']],
    umask: 0o022,
    logs,
    hashInputs: async ({ globs }) => `hash of ${globs.join(', ')}`,
    bootedAt: BOOTED_AT,
    ports: [21_000, 21_100],
    screens: screensHere,
    states: statesHere(clock),
    viewersInThread: { count: 0 },
    commandsWaiting: { count: 0 },
  };
  const ref = services.ref<ServiceProtocol>('service:web');
  return {
    clock,
    services,
    host,
    probe,
    store,
    config,
    ref,
    views,
    stats,
    ports,
    journal,
    broken,
    begin: async () => {
      services.node.family('service:', serviceActor, () => config);
      await ref.ask('adopt', {});
    },
    events: () => journal.map(({ type, data }) => [type, JSON.parse(data)]),
    state: () => {
      const last = views.of('states').at(-1)?.rows[0];
      if (!last) throw new Error('the views got no message');
      return last;
    },
    kept: () => store.table('ends').get('web'),
    cut: () => {
      host.service = null;
      cut('the host is gone');
    },
    join: connect,
    advance: (ms) => advance(clock, ms),
  };
}

/** A message from node to node and back takes a few turns. */
export async function quiet(): Promise<void> {
  for (let turn = 0; turn < 12; turn += 1) await settle();
}

/** Advances time by `ms` in small steps, so that messages under way arrive meanwhile and not afterwards. */
export async function advance(clock: TestClock, ms: number): Promise<void> {
  const step = Math.max(5, ms / 400);
  await quiet();
  for (let left = ms; left > 0; left -= step) {
    await clock.advance(Math.min(step, left));
    await quiet();
  }
}

/** A row of the ledger; alive unless `end` says otherwise. */
export function row(clock: TestClock, over: Partial<LedgerRun> = {}): LedgerRun {
  return {
    service: 'web',
    run: '00000000000000aa',
    pid: 77,
    startTicks: 770,
    startedAt: clock.now() - 60_000,
    port: 3000,
    pty: false,
    memo: MEMO,
    stopping: false,
    end: null,
    ...over,
  };
}

/** Starts the service and lets it become ready. */
export async function running(world: Supervised): Promise<number> {
  const started = world.ref.ask('start', { timeoutMs: null, wait: true });
  await world.advance(100);
  const { pid } = await started;
  if (pid === null) throw new Error('no pid');
  return pid;
}
