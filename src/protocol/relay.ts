// The relay, docs/reference.md "Relay": connections to workloads for Berths on other machines.

/** Who opens tethers, as named in the audit log, and from which address. */
export interface TetherOpener {
  readonly who: string;
  readonly from: string;
}

/** The holder of a ticket. */
export interface RelayHolder {
  /** The subjects of its grants, its own subject first. */
  readonly subjects: readonly string[];
  /** From then on its streams are refused (epoch milliseconds); null: never. */
  readonly expiresAt: number | null;
  /** For the audit log; absent in the ticket of an earlier version. */
  readonly opener?: TetherOpener;
}

/** Listens for other Berths, and carries their connections as tethers do. Asks workloads and principals. */
export interface RelayProtocol {
  /**
   * A ticket for one more client. `holder` null: unrestricted. `until`: epoch milliseconds. `port` null: the
   * relay is behind a proxy. Fails daemon_busy while another program has its port.
   */
  admit(message: { holder: RelayHolder | null }): {
    ticket: string;
    until: number;
    port: number | null;
  };
  /** Forwards connections to the relay at `target`, and ends its own; null: carries them itself. */
  passOn(message: { target: { host: string; port: number } | null }): null;
  /** From tethers, sent as to each tether of the workload. */
  workloadSleeping(message: { workloadId: string; isSleeping: boolean }): null;
  /** From tethers: the credentials of a cluster have changed. New connections use the new ones. */
  renewCluster(message: { clusterId: string }): null;
  /** From principals: the grants of `subject` have changed. Its connections end. */
  rightsChanged(message: { subject: string }): null;
  /** From principals: these workloads have other labels. Ends what may not be used any more. */
  relabelled(message: { ids: readonly string[] }): null;
  /** From tethers: the cluster was removed. Its connections end. */
  closeCluster(message: { clusterId: string }): null;
}
