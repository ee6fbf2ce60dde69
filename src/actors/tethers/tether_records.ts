// The records of all tethers, and the ports they hold from the pool.

import { listenOnLoopback } from '../../adapters/loopback_listener.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import type { WorkloadsProtocol } from '../../protocol/cloud.ts';
import type { CloudViewsProtocol } from '../../protocol/cloud_views.ts';
import { fail } from '../../protocol/errors.ts';
import type { Quotas } from '../../protocol/quotas.ts';
import type { RelayProtocol } from '../../protocol/relay.ts';
import {
  type OwnedTether,
  type StoredTether,
  type TetherProtocol,
  type TetherRow,
  type TetherStats,
  tetherSettings,
} from '../../protocol/tethers.ts';
import { newUlid } from '../../protocol/ulid.ts';
import type { WorkloadKind } from '../../protocol/workload_kinds.ts';
import { type Context, isFailure, type Ref, type ReplyOf, tolerateFailure } from '../../runtime/actor.ts';
import { KeyedMutex } from '../../runtime/keyed_mutex.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { readableError } from './readable_error.ts';

export interface TethersConfig {
  store: CloudStore;
  /** The setting `cloud.tether_ports`. */
  ports: readonly [from: number, to: number];
  /** Whether there is a relay. */
  hasRelay: boolean;
  /** The Berth that holds the workloads; null: their clusters are registered here. */
  remote: RemoteWorkloads | null;
  /** Whether this is a cloud server, on whose own ports tethers would be of no use to clients. */
  isServer: boolean;
  quotas: Pick<Quotas, 'tethers'>;
}

/** The workloads of another Berth. */
export interface RemoteWorkloads {
  /** Its URL. Tethers belong to it. */
  url: string;
  /** Like that of `workloads`. Fails unknown_workload, remote_unreachable, remote_denied. */
  referenceOf(id: string): Promise<ReplyOf<WorkloadsProtocol, 'referenceOf'>>;
}

interface TetherEntry {
  stored: StoredTether;
  stats: TetherStats;
  /** Whether it listens. A tether that should be active but does not listen is shown as idle. */
  isOpen: boolean;
}

const tetherAddress = (id: string) => `tether:${id}` as const;

const ZERO_STATS: TetherStats = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };

/** What the front may know of a tether. */
function tetherRow({ stored, stats, isOpen }: TetherEntry): TetherRow {
  const { id, workloadId, workload = null, containerPort, label, localPort, previousPort = null } = stored;
  const settings = { ...tetherSettings(stored), wake: stored.wake, previousPort };
  return { id, workloadId, workload, containerPort, label, localPort, ...settings, ...stats, isOpen };
}

/** Only StatefulSet pods keep their names: `name-0` and so on. Throws invalid_spec for any other. */
function checkPodName(pod: string, { kind, name }: { kind: WorkloadKind; name: string }): void {
  const isOwn = pod.startsWith(`${name}-`) && /^\d+$/.test(pod.slice(name.length + 1));
  if (kind === 'StatefulSet' && isOwn) return;
  const message =
    kind === 'StatefulSet'
      ? `pod must be a pod of the StatefulSet ${name}, such as ${name}-0`
      : `pod must not be given for a ${kind}, whose pods do not keep their names`;
  throw fail('invalid_spec', message, { details: [{ path: 'pod', message }] });
}

async function isFree(port: number): Promise<boolean> {
  const listener = await listenOnLoopback(port, (socket) => socket.destroy());
  if ('refused' in listener) return false;
  await listener.close();
  return true;
}

/**
 * Key for the turns in which pool ports are taken, so that no two tethers get the same one. It cannot be the
 * id of a tether, which is a ULID.
 */
const PORT_POOL = 'ports';

/** The tethers with their records, listeners and ports. Work on one tether is done in order, see `turn`. */
export class TetherRecords {
  private readonly context: Context;
  private readonly store: CloudStore;
  private readonly workloads: Ref<WorkloadsProtocol>;
  private readonly views: Ref<CloudViewsProtocol>;
  private readonly ports: readonly number[];
  private readonly relay: Ref<RelayProtocol> | null;
  private readonly remote: RemoteWorkloads | null;
  private readonly isServer: boolean;
  private readonly quota: number;
  private readonly tethers = new Map<string, TetherEntry>();
  private readonly watched = new Set<string>();
  private readonly mutex = new KeyedMutex();

  constructor(context: Context, config: TethersConfig) {
    const { store, hasRelay, remote, isServer, quotas } = config;
    const [from, to] = config.ports;
    this.isServer = isServer;
    this.quota = quotas.tethers;
    this.context = context;
    this.store = store;
    this.workloads = context.ref('workloads');
    this.views = context.ref('cloudviews');
    this.remote = remote;
    this.relay = hasRelay ? context.ref('relay') : null;
    this.ports = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  }

  /**
   * Loads all tethers. Those to workloads of another Berth than the present one stay inactive until it is the
   * present one again.
   */
  async load(): Promise<void> {
    for (const stored of await this.store.tethers()) {
      if ((stored.remote ?? null) !== this.ofRemote) continue;
      this.tethers.set(stored.id, { stored, stats: ZERO_STATS, isOpen: false });
    }
  }

  /** Runs `work` on a tether after all earlier work on it. Fails unknown_tether if it is gone by then. */
  turn<R>(id: string, work: (tether: TetherEntry) => Promise<R>): Promise<R> {
    return this.mutex.runExclusive(id, () => work(this.get(id)));
  }

  /** Publishes every tether, and opens those that should be active. */
  async boot(): Promise<null> {
    const all = [...this.tethers.values()];
    this.publish(all, true);
    await Promise.all(all.map(({ stored }) => this.reopen(stored.id)));
    return null;
  }

  /**
   * Opens the tether if it should be active, and tries again later if that fails. Harmless for one that is
   * gone.
   */
  async reopen(id: string): Promise<void> {
    await this.mutex.runExclusive(id, async () => {
      const tether = this.tethers.get(id);
      if (!tether?.stored.active) return;
      try {
        await this.open(tether);
      } catch (error) {
        if (!isFailure(error)) throw error;
        this.updateStats(tether, { ...tether.stats, lastError: error.message });
        this.reopenLater(id);
      }
    });
  }

  /**
   * Creates a tether with a port from the pool. It does not listen yet. Fails tether_elsewhere on a server,
   * quota_exceeded, forbidden (the right to it was lost meanwhile).
   */
  async create(input: OwnedTether, wantedId?: string): Promise<{ id: string; localPort: number }> {
    if (this.isServer)
      throw fail('tether_elsewhere', 'a cloud server opens no ports: open the tether on your own machine');
    // Another Berth may be slow, so this is outside the turn that takes ports.
    const isNew = wantedId === undefined || !this.tethers.has(wantedId);
    const found = isNew && this.remote ? await this.remote.referenceOf(input.workloadId) : null;
    const made = await this.mutex.runExclusive(PORT_POOL, async () => {
      const known = wantedId === undefined ? undefined : this.tethers.get(wantedId);
      if (known) return { id: known.stored.id, localPort: known.stored.localPort ?? (await this.freePort()) };
      this.assertQuota(input.owners?.[0]);
      const { clusterId, ...workload } =
        found ?? (await this.workloads.ask('referenceOf', { id: input.workloadId }));
      if (input.pod !== null) checkPodName(input.pod, workload);
      const id = wantedId ?? newUlid(this.context.clock.now());
      const localPort = await this.freePort();
      const stored = { id, clusterId, workload, ...input, localPort, active: false, remote: this.ofRemote };
      await this.store.saveTether(stored);
      const tether: TetherEntry = { stored, stats: ZERO_STATS, isOpen: false };
      this.tethers.set(id, tether);
      this.publish([tether]);
      return { id, localPort };
    });
    await this.endIfLost(made.id, input);
    return made;
  }

  /** A right that was lost before the tether was known has not ended it. */
  private async endIfLost(id: string, { owners, workloadId }: OwnedTether): Promise<void> {
    if (!owners) return;
    const asked = this.context.ref('principals').ask('mayKeep', { owners, workloadId });
    // When they start again, they end what nobody may keep.
    const { isAllowed } = await tolerateFailure(asked, () => ({ isAllowed: true }));
    if (isAllowed) return;
    await this.removeAll([id]);
    throw fail('forbidden', 'the right to tether this workload was lost meanwhile');
  }

  /** Throws quota_exceeded when `owner` already has as many tethers as its quota allows. */
  private assertQuota(owner: string | undefined): void {
    if (owner === undefined || this.quota === 0) return;
    const own = [...this.tethers.values()].filter(({ stored }) => stored.owners?.[0] === owner);
    if (own.length >= this.quota)
      throw fail('quota_exceeded', `you have ${own.length} tethers, the most allowed`, {
        hint: 'Remove one, or ask an administrator to raise cloud.quota_tethers.',
      });
  }

  /** Makes it listen, preferably on the port it already has. Resolves with the port once that is on disk. */
  async open(tether: TetherEntry): Promise<number> {
    const { id, localPort } = tether.stored;
    await this.context.ref('threads').ask('ensure', { address: tetherAddress(id) });
    if (localPort !== null) {
      try {
        return await this.listen(tether, [localPort]);
      } catch (error) {
        if (!isFailure(error) || error.code !== 'port_in_use') throw error;
      }
    }
    return this.mutex.runExclusive(PORT_POOL, () => this.listen(tether, this.unreservedPorts()));
  }

  async close(tether: TetherEntry, forget: boolean): Promise<void> {
    const { stored } = tether;
    // Stored first, so that a daemon which ends here does not open it again.
    await this.save(tether, { active: false, localPort: null, previousPort: null }, false);
    if (!stored.active && !forget) return;
    try {
      await this.tetherRef(stored.id).ask('close', { forget });
    } catch (error) {
      // Its thread has died, so nothing is open any more.
      if (!isFailure(error) || error.code !== 'gone') throw error;
    }
  }

  async remove(tether: TetherEntry): Promise<void> {
    const { id } = tether.stored;
    await this.close(tether, true);
    await this.store.removeTether(id);
    this.tethers.delete(id);
    this.views.tell('tethersRemoved', { ids: [id] });
  }

  /** Removes the tethers of a cluster, including those being created. */
  async removeAllOf(clusterId: string): Promise<null> {
    const ids = await this.mutex.runExclusive(PORT_POOL, async () =>
      [...this.tethers.values()].flatMap(({ stored }) => (stored.clusterId === clusterId ? [stored.id] : [])),
    );
    await this.removeAll(ids);
    this.relay?.tell('closeCluster', { clusterId });
    return null;
  }

  /** Removes the tethers that still exist. */
  async removeAll(ids: readonly string[]): Promise<null> {
    const removed = ids.map((id) =>
      this.mutex.runExclusive(id, async () => {
        const tether = this.tethers.get(id);
        if (tether) await this.remove(tether);
      }),
    );
    await Promise.all(removed);
    return null;
  }

  /** Tells the open tethers of a cluster that its credentials have changed. */
  renewAllOf(clusterId: string): null {
    for (const { stored, isOpen } of this.tethers.values())
      if (isOpen && stored.clusterId === clusterId) this.tetherRef(stored.id).tell('renew', {});
    this.relay?.tell('renewCluster', { clusterId });
    return null;
  }

  /** Tells the open tethers of a workload that it is being put to sleep, or is not after all. */
  noteSleep(workloadId: string, isSleeping: boolean): null {
    for (const { stored, isOpen } of this.tethers.values())
      if (isOpen && stored.workloadId === workloadId)
        this.tetherRef(stored.id).tell('workloadSleeping', { isSleeping });
    this.relay?.tell('workloadSleeping', { workloadId, isSleeping });
    return null;
  }

  /** Sets `last_error` at once if the workload is gone, instead of at the next connection. */
  async noteIfWorkloadGone(tether: TetherEntry): Promise<void> {
    if (this.remote) return;
    try {
      await this.workloads.ask('referenceOf', { id: tether.stored.workloadId });
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (error.code === 'unknown_workload')
        this.updateStats(tether, { ...tether.stats, lastError: error.message });
    }
  }

  /** Stores what a tether reports about itself. */
  onStats(id: string, stats: TetherStats): void {
    const tether = this.tethers.get(id);
    if (tether) this.updateStats(tether, stats);
  }

  private get ofRemote(): string | null {
    return this.remote?.url ?? null;
  }

  private get(id: string): TetherEntry {
    const tether = this.tethers.get(id);
    if (!tether) throw fail('unknown_tether', `There is no tether ${id}.`);
    return tether;
  }

  private updateStats(tether: TetherEntry, stats: TetherStats): void {
    tether.stats = { ...stats, lastError: readableError(stats.lastError, tether.stored) };
    this.publish([tether]);
  }

  private publish(tethers: readonly TetherEntry[], all = false): void {
    this.views.tell('tethers', { rows: tethers.map(tetherRow), all });
  }

  /** Makes it listen on the first free port of `ports`, unless it listens already. Fails port_in_use. */
  private async listen(tether: TetherEntry, ports: number[]): Promise<number> {
    const { stored, stats } = tether;
    const ref = this.tetherRef(stored.id);
    const { port } = await ref.ask('open', { tether: stored, ports, numbers: stats });
    this.watch(stored.id);
    try {
      const { localPort, previousPort: lostBefore = null } = stored;
      const previousPort = localPort === port ? lostBefore : localPort;
      await this.save(tether, { active: true, localPort: port, previousPort }, true);
    } catch (error) {
      // A tether that is not on disk must not be open.
      ref.tell('close', { forget: false });
      throw error;
    }
    return port;
  }

  private tetherRef(id: string): Ref<TetherProtocol> {
    return this.context.ref(tetherAddress(id));
  }

  /** Opens it again when its actor or thread has ended. */
  private watch(id: string): void {
    if (this.watched.has(id)) return;
    this.watched.add(id);
    this.context.watch(tetherAddress(id), () => {
      this.watched.delete(id);
      const tether = this.tethers.get(id);
      if (!tether) return;
      if (tether.isOpen) this.tellChange(tether, false, 'its part of the daemon has ended');
      tether.isOpen = false;
      this.updateStats(tether, { ...tether.stats, connections: 0 });
      this.reopenLater(id);
    });
  }

  private reopenLater(id: string): void {
    this.context.clock.after(TETHER.reopenDelayMs, () => {
      this.context.ref('tethers').tell('listenerMissing', { id });
    });
  }

  private async save(
    tether: TetherEntry,
    change: Pick<TetherRow, 'localPort' | 'previousPort'> & Pick<StoredTether, 'active'>,
    isOpen: boolean,
  ): Promise<void> {
    const { stored } = tether;
    const before = tetherRow(tether);
    const hasMoved = before.localPort !== change.localPort || before.previousPort !== change.previousPort;
    if (stored.active !== change.active || hasMoved) {
      await this.store.saveTether({ ...stored, ...change });
      tether.stored = { ...stored, ...change };
    }
    if (tether.isOpen !== isOpen) this.tellChange(tether, isOpen, null);
    tether.isOpen = isOpen;
    this.publish([tether]);
  }

  private tellChange({ stored }: TetherEntry, isOpen: boolean, reason: string | null): void {
    const { id: tetherId, workloadId: id, clusterId } = stored;
    // The relay of the other Berth reports there what is opened here.
    if (this.remote) return;
    this.workloads.tell('tetherChanged', { id, clusterId, tetherId, isOpen, reason });
  }

  private unreservedPorts(): number[] {
    const reserved = new Set([...this.tethers.values()].map(({ stored }) => stored.localPort));
    return this.ports.filter((port) => !reserved.has(port));
  }

  private async freePort(): Promise<number> {
    for (const port of this.unreservedPorts()) if (await isFree(port)) return port;
    throw fail('port_in_use', 'Every port of cloud.tether_ports is taken.', {
      hint: 'Deactivate or delete a tether, or widen cloud.tether_ports.',
    });
  }
}
