// Tethers, docs/reference.md "Tethers": records, and the messages of `tethers` (the owner of records and
// ports) and of `tether:<id>` (one listener and its connections).
import { TETHER } from '../settings/cloud_limits.ts';
import type { WorkloadKind } from './workload_kinds.ts';

/** The name of a tether's workload. */
export interface TetheredWorkload {
  kind: WorkloadKind;
  namespace: string;
  name: string;
}

/** The stored record of a tether. */
export interface StoredTether {
  id: string;
  clusterId: string;
  workloadId: string;
  /** Known also when the workload is no longer listed. Absent in records of earlier versions. */
  workload?: TetheredWorkload;
  containerPort: number;
  label: string | null;
  /** Whether a connection may wake the workload. */
  wake: boolean;
  /** null after a deactivation: the port is back in the pool. */
  localPort: number | null;
  /** The port it had until another program took it; absent in records of earlier versions. */
  previousPort?: number | null;
  /** Whether it should be open, now and after a restart. */
  active: boolean;
  /** As in TetherSettings; absent in records of earlier versions. */
  pod?: string | null;
  allowNotReady?: boolean;
  halfClosedTimeoutMs?: number;
  /** The URL of the Berth that holds the workload; null: this one. Absent in records of earlier versions. */
  remote?: string | null;
  /** The grant subjects of its creator, its own subject first; absent: its creator was unrestricted. */
  owners?: readonly string[];
}

/** How a tether carries its connections. */
export interface TetherSettings {
  /** The only pod of a StatefulSet that gets connections; null: any pod. */
  pod: string | null;
  /** Whether running pods that are not Ready get connections while none is Ready. */
  allowNotReady: boolean;
  /** A connection whose client has half-closed is ended after this long without a byte from the pod. */
  halfClosedTimeoutMs: number;
}

/** The settings in a record, with defaults for those it lacks. */
export const tetherSettings = ({
  pod = null,
  allowNotReady = false,
  halfClosedTimeoutMs = TETHER.halfClosedTimeoutMs,
}: Partial<TetherSettings>): TetherSettings => ({ pod, allowNotReady, halfClosedTimeoutMs });

export interface TetherInput extends TetherSettings {
  workloadId: string;
  containerPort: number;
  label: string | null;
  wake: boolean;
}

/** A request for a tether. */
export type OwnedTether = TetherInput & Pick<StoredTether, 'owners'>;

/** The totals of a tether's connections since the daemon started. */
export interface TetherStats {
  /** Open now. */
  connections: number;
  /** From clients to pods, and back. */
  bytesIn: number;
  bytesOut: number;
  /** Why the last connection was reset, or why the tether could not be opened; null: it works. */
  lastError: string | null;
}

/** Owns the tethers and their ports. Asks workloads, threads and each `tether:<id>`. */
export interface TethersProtocol {
  /** Sends every tether to the views and opens those that were active. Harmless when repeated. */
  boot(message: Record<string, never>): null;
  /**
   * Takes a port from the pool. `id`: the new tether's id; if a tether already has it, that one is returned,
   * so a retry is harmless. Fails unknown_workload, invalid_spec, port_in_use, quota_exceeded, storage_full.
   */
  create(message: OwnedTether & { id?: string }): { tether_id: string; local_port: number };
  /** Opens the listener; harmless when it is open. Fails unknown_tether, port_in_use, storage_full. */
  activate(message: { id: string }): { tether_id: string; local_port: number; state: 'active' };
  /**
   * Destroys its connections, closes the listener, returns the port to the pool. Harmless when it is not
   * active. Fails unknown_tether.
   */
  deactivate(message: { id: string }): { ok: true };
  /** Deactivates and deletes it. Fails unknown_tether. */
  remove(message: { id: string }): { removed: true; id: string };
  /** From clusters, before a cluster is removed: removes its tethers. */
  closeCluster(message: { clusterId: string }): null;
  /** From clusters, after its credentials have changed: open tethers use the new ones. */
  renewCluster(message: { clusterId: string }): null;
  /** From workloads, before it puts one to sleep; false: the sleep was abandoned. */
  workloadSleeping(message: { workloadId: string; isSleeping: boolean }): null;
  /** From principals: the creators of these tethers have lost the right to them. Removes them. */
  revoked(message: { ids: readonly string[] }): null;
  /** From a tether that has restarted and has no listener. */
  listenerMissing(message: { id: string }): null;
  /** From a tether, at most once a second, when the numbers have changed. */
  stats(message: { id: string; numbers: TetherStats }): null;
}

/** One tether: a listener on loopback and the connections through it. Asks workloads. */
export interface TetherProtocol {
  /**
   * Listens on the first free port of `ports` and continues the counts of `numbers`. Harmless when it is
   * listening. Fails port_in_use.
   */
  open(message: { tether: StoredTether; ports: number[]; numbers: TetherStats }): { port: number };
  /**
   * Destroys the connections and closes the listener. Harmless when it is closed. `forget`: ends the actor.
   */
  close(message: { forget: boolean }): null;
  /** The current pods are about to be ended; false: they are not, after all. */
  workloadSleeping(message: { isSleeping: boolean }): null;
  /** New connections use the new credentials; open ones go on. */
  renew(message: Record<string, never>): null;
}

/** A tether as clients see it. */
export interface TetherRow
  extends Pick<StoredTether, 'id' | 'workloadId' | 'containerPort' | 'label' | 'localPort' | 'wake'>,
    TetherSettings,
    TetherStats {
  workload: TetheredWorkload | null;
  previousPort: number | null;
  /** Whether it is listening. */
  isOpen: boolean;
}
