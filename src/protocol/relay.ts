// The relay, docs/reference.md "Relay": connections to workloads for Berths on other machines.

/** Listens for other Berths, and carries their connections as a tether does. Asks workloads. */
export interface RelayProtocol {
  /**
   * A ticket for one more client. `until`: epoch milliseconds. `port` null: a proxy leads to the relay. Fails
   * daemon_busy while its port is taken by another program.
   */
  admit(message: Record<string, never>): { ticket: string; until: number; port: number | null };
  /** From tethers, as to each tether of the workload. */
  workloadSleeping(message: { workloadId: string; isSleeping: boolean }): null;
  /** From tethers: the credentials of a cluster have changed. New connections use the new ones. */
  renewCluster(message: { clusterId: string }): null;
  /** From tethers: the cluster is removed. Its connections end. */
  closeCluster(message: { clusterId: string }): null;
}
