// The relay, docs/reference.md "Relay": connections to workloads for Berths on other machines.

/** Who has a ticket. */
export interface RelayHolder {
  /** Those of its grants. */
  readonly subjects: readonly string[];
  /** From then on its streams are refused (epoch milliseconds); null: never. */
  readonly expiresAt: number | null;
}

/** Listens for other Berths, and carries their connections as tethers do. Asks workloads and principals. */
export interface RelayProtocol {
  /**
   * A ticket for one more client. `holder` null: it may do everything. `until`:
   * epoch milliseconds. `port` null: a proxy leads to the relay. Fails daemon_busy while its port is taken by
   * another program.
   */
  admit(message: { holder: RelayHolder | null }): {
    ticket: string;
    until: number;
    port: number | null;
  };
  /** Connections go on to the relay at `target`; null: they are carried here. */
  passOn(message: { target: { host: string; port: number } | null }): null;
  /** From tethers, as to each tether of the workload. */
  workloadSleeping(message: { workloadId: string; isSleeping: boolean }): null;
  /** From tethers: the credentials of a cluster have changed. New connections use the new ones. */
  renewCluster(message: { clusterId: string }): null;
  /** From principals: whoever has grants by `subject` has others now. Its connections end. */
  rightsChanged(message: { subject: string }): null;
  /** From tethers: the cluster is removed. Its connections end. */
  closeCluster(message: { clusterId: string }): null;
}
