// What each API token and each person may use at most: docs/reference.md "Quotas".

/** The quotas of a Berth; 0: any number. They hold for each token and each person separately. */
export interface Quotas {
  /** Tethers that it has made. */
  readonly tethers: number;
  /** Connections over the relay that are open at once, waiting ones included. */
  readonly connections: number;
  /** Workloads that it wakes within an hour. */
  readonly wakesPerHour: number;
}

export const NO_QUOTAS: Quotas = { tethers: 0, connections: 0, wakesPerHour: 0 };
