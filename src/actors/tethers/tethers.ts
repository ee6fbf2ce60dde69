// State: the records of all tethers and which ports of the pool they have. Rebuilt from: the store; what connections have
// come to since the daemon began is told by each `tether:<id>`.

import { listenOnLoopback } from '../../adapters/loopback_listener.ts';
import type { CloudStore } from '../../adapters/storage/cloud_store.ts';
import { fail } from '../../protocol/errors.ts';
import type {
  StoredTether,
  TetherInput,
  TetherStats,
  TethersProtocol,
  TetherView,
} from '../../protocol/tethers.ts';
import { newUlid } from '../../protocol/ulid.ts';
import { actor, type Context, isFailure } from '../../runtime/actor.ts';
import { TETHER } from '../../settings/limits.ts';

export interface TethersConfig {
  store: CloudStore;
  /** cloud.tether_ports. */
  ports: readonly [from: number, to: number];
}

interface TetherEntry {
  stored: StoredTether;
  stats: TetherStats;
  /** It listens. A tether that is to be active and does not yet, or not any more, is shown as idle. */
  isOpen: boolean;
}

const tetherAddress = (id: string) => `tether:${id}` as const;

const ZERO_STATS: TetherStats = { connections: 0, bytesIn: 0, bytesOut: 0, lastError: null };

/** The record as clients see it: docs/reference.md "Tethers". */
function tetherView({ stored, stats, isOpen }: TetherEntry): TetherView {
  const json = JSON.stringify({
    tether_id: stored.id,
    workload_id: stored.workloadId,
    container_port: stored.containerPort,
    label: stored.label,
    local_port: stored.localPort,
    state: isOpen ? 'active' : 'idle',
    connections: stats.connections,
    bytes_in: stats.bytesIn,
    bytes_out: stats.bytesOut,
    last_error: stats.lastError,
  });
  return { id: stored.id, json };
}

async function isFree(port: number): Promise<boolean> {
  const listener = await listenOnLoopback(port, (socket) => socket.destroy());
  await listener?.close();
  return listener !== null;
}

class TetherRecords {
  private readonly context: Context;
  private readonly store: CloudStore;
  private readonly ports: readonly number[];
  private readonly tethers = new Map<string, TetherEntry>();
  private readonly watched = new Set<string>();

  constructor(context: Context, { store, ports: [from, to] }: TethersConfig) {
    this.context = context;
    this.store = store;
    this.ports = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  }

  async load(): Promise<void> {
    for (const stored of await this.store.tethers()) {
      this.tethers.set(stored.id, { stored, stats: ZERO_STATS, isOpen: false });
    }
  }

  get all(): TetherEntry[] {
    return [...this.tethers.values()];
  }

  find(id: string): TetherEntry | undefined {
    return this.tethers.get(id);
  }

  get(id: string): TetherEntry {
    const tether = this.tethers.get(id);
    if (!tether) throw fail('unknown_tether', `There is no tether ${id}.`);
    return tether;
  }

  /** Tells the views. */
  publish(tethers: readonly TetherEntry[], all = false): void {
    this.context.ref('cloudviews').tell('tethers', { rows: tethers.map(tetherView), all });
  }

  async create({ workloadId, containerPort, label, wake }: TetherInput): Promise<TetherEntry> {
    const { clusterId } = await this.context.ref('workloads').ask('forwardTarget', { id: workloadId });
    const id = newUlid(this.context.clock.now());
    const localPort = await this.freePort();
    const stored = { id, clusterId, workloadId, containerPort, label, wake, localPort, active: false };
    await this.store.saveTether(stored);
    const tether: TetherEntry = { stored, stats: ZERO_STATS, isOpen: false };
    this.tethers.set(id, tether);
    this.publish([tether]);
    return tether;
  }

  /** Has it listen, on the port it has if that is free. Resolves with the port when that is on disk. */
  async open(tether: TetherEntry): Promise<number> {
    const { stored, stats } = tether;
    const own = stored.localPort === null ? [] : [stored.localPort];
    const ports = [...own, ...this.unreservedPorts()];
    const address = tetherAddress(stored.id);
    await this.context.ref('threads').ask('ensure', { address });
    const { port } = await this.ref(stored.id).ask('open', { tether: stored, ports, numbers: stats });
    this.watch(stored.id);
    try {
      await this.save(tether, { active: true, localPort: port }, true);
    } catch (error) {
      // What is not on disk is not open.
      this.ref(stored.id).tell('close', { forget: false });
      throw error;
    }
    return port;
  }

  async close(tether: TetherEntry, forget: boolean): Promise<void> {
    const { stored } = tether;
    // On disk first: a daemon that ends here does not open it again.
    await this.save(tether, { active: false, localPort: null }, false);
    if (!stored.active && !forget) return;
    try {
      await this.ref(stored.id).ask('close', { forget });
    } catch (error) {
      // Its thread has died: nothing is open any more.
      if (!isFailure(error) || error.code !== 'gone') throw error;
    }
  }

  async remove(tether: TetherEntry): Promise<void> {
    const { id } = tether.stored;
    await this.close(tether, true);
    await this.store.removeTether(id);
    this.tethers.delete(id);
    this.context.ref('cloudviews').tell('tethersRemoved', { ids: [id] });
  }

  /** Opens it again if it is to be open; as often as it takes. */
  async openIfActive(tether: TetherEntry): Promise<void> {
    const { id, active } = tether.stored;
    if (!active) return;
    try {
      await this.open(tether);
    } catch (error) {
      if (!isFailure(error)) throw error;
      this.updateStats(tether, { ...tether.stats, lastError: error.message });
      this.reopenLater(id);
    }
  }

  /** A workload that is gone is said at once, not only when somebody connects. */
  async noteIfWorkloadGone(tether: TetherEntry): Promise<void> {
    try {
      await this.context.ref('workloads').ask('forwardTarget', { id: tether.stored.workloadId });
    } catch (error) {
      if (!isFailure(error)) throw error;
      if (error.code === 'unknown_workload')
        this.updateStats(tether, { ...tether.stats, lastError: error.message });
    }
  }

  updateStats(tether: TetherEntry, numbers: TetherStats): void {
    tether.stats = numbers;
    this.publish([tether]);
  }

  private ref(id: string) {
    return this.context.ref(tetherAddress(id));
  }

  /** When the tether's actor or thread has ended, it is opened again. */
  private watch(id: string): void {
    if (this.watched.has(id)) return;
    this.watched.add(id);
    this.context.watch(tetherAddress(id), () => {
      this.watched.delete(id);
      const tether = this.find(id);
      if (!tether) return;
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
    change: Pick<StoredTether, 'active' | 'localPort'>,
    isOpen: boolean,
  ): Promise<void> {
    const { stored } = tether;
    if (stored.active !== change.active || stored.localPort !== change.localPort) {
      await this.store.saveTether({ ...stored, ...change });
      tether.stored = { ...stored, ...change };
    }
    tether.isOpen = isOpen;
    this.publish([tether]);
  }

  private unreservedPorts(): number[] {
    const reserved = new Set(this.all.map(({ stored }) => stored.localPort));
    return this.ports.filter((port) => !reserved.has(port));
  }

  private async freePort(): Promise<number> {
    for (const port of this.unreservedPorts()) if (await isFree(port)) return port;
    throw fail('port_in_use', 'Every port of cloud.tether_ports is taken.', {
      hint: 'Deactivate or delete a tether, or widen cloud.tether_ports.',
    });
  }
}

/** `tethers`: docs/reference.md "Tethers". */
export const tethersActor = actor<TethersProtocol, TethersConfig>('tethers', async (context, config) => {
  const registry = new TetherRecords(context, config);
  await registry.load();
  return {
    async boot() {
      registry.publish(registry.all, true);
      for (const tether of registry.all) await registry.openIfActive(tether);
      return { tethers: registry.all.length };
    },
    async create(input) {
      const { stored } = await registry.create(input);
      return { tether_id: stored.id, local_port: stored.localPort ?? 0 };
    },
    async activate({ id }) {
      const tether = registry.get(id);
      const local_port = await registry.open(tether);
      await registry.noteIfWorkloadGone(tether);
      return { tether_id: id, local_port, state: 'active' };
    },
    async deactivate({ id }) {
      await registry.close(registry.get(id), false);
      return { ok: true };
    },
    async remove({ id }) {
      await registry.remove(registry.get(id));
      return { removed: true, id };
    },
    async closeCluster({ clusterId }) {
      const own = registry.all.filter(({ stored }) => stored.clusterId === clusterId);
      for (const tether of own) await registry.remove(tether);
      return { closed: own.length };
    },
    async listenerMissing({ id }) {
      const tether = registry.find(id);
      if (tether) await registry.openIfActive(tether);
      return null;
    },
    stats({ id, numbers }) {
      const tether = registry.find(id);
      if (tether) registry.updateStats(tether, numbers);
      return null;
    },
  };
});
