// Tethers, docs/reference.md "Tethers": records, and the messages of `tethers` (who owns the records and the
// ports) and of `tether:<id>` (one listener with its connections).

/** A tether as it is kept. */
export interface StoredTether {
  id: string;
  clusterId: string;
  workloadId: string;
  containerPort: number;
  label: string | null;
  /** Whether a connection may wake the workload. */
  wake: boolean;
  /** null after a deactivate: the port has gone back to the pool. */
  localPort: number | null;
  /** To be open, now and after a restart. */
  active: boolean;
}

export interface TetherInput {
  workloadId: string;
  containerPort: number;
  label: string | null;
  wake: boolean;
}

/** What connections through a tether have come to, since the daemon began. */
export interface TetherStats {
  /** Open now. */
  connections: number;
  /** From clients to pods, and back. */
  bytesIn: number;
  bytesOut: number;
  /** Why the last connection that could not be carried was reset, or why the tether could not be opened. */
  lastError: string | null;
}

/** Owns which tethers there are and which ports they have. Asks workloads, threads and each `tether:<id>`. */
export interface TethersProtocol {
  /** Tells the views every tether and opens those that were active. Harmless when repeated. */
  boot(message: Record<string, never>): null;
  /** Takes a port of the pool. Fails unknown_workload, port_in_use, storage_full. */
  create(message: TetherInput): { tether_id: string; local_port: number };
  /** Opens the listener; harmless when it is open. Fails unknown_tether, port_in_use, storage_full. */
  activate(message: { id: string }): { tether_id: string; local_port: number; state: 'active' };
  /**
   * Destroys its connections, closes the listener, gives the port back. Harmless when idle. Fails
   * unknown_tether.
   */
  deactivate(message: { id: string }): { ok: true };
  /** Deactivates and forgets it. Fails unknown_tether. */
  remove(message: { id: string }): { removed: true; id: string };
  /** From clusters, before a cluster is forgotten: removes its tethers. */
  closeCluster(message: { clusterId: string }): null;
  /** From a tether that has begun anew and has no listener. */
  listenerMissing(message: { id: string }): null;
  /** From a tether, at most once a second, when they have changed. */
  stats(message: { id: string; numbers: TetherStats }): null;
}

/** One tether: a listener on loopback and the connections through it. Asks workloads. */
export interface TetherProtocol {
  /**
   * Listens on the first of `ports` that is free; counts on from `numbers`. Harmless when it listens already.
   * Fails port_in_use.
   */
  open(message: { tether: StoredTether; ports: number[]; numbers: TetherStats }): { port: number };
  /**
   * Destroys the connections and closes the listener. Harmless when it is closed. `forget`: ends the actor.
   */
  close(message: { forget: boolean }): null;
}

/** What clients may see of a tether. */
export interface TetherRow
  extends Pick<StoredTether, 'id' | 'workloadId' | 'containerPort' | 'label' | 'localPort'>,
    TetherStats {
  /** Whether it listens. */
  isOpen: boolean;
}
