// The methods for savings: docs/reference.md "Savings".
import { savings } from '../../api/savings.ts';
import { type CallOptions, call, type Endpoint } from '../api_call.ts';

/** Selects the savings that pass every given filter. */
export interface SavingsOptions extends CallOptions {
  /** Id of a cluster. */
  cluster?: string | undefined;
  namespaces?: readonly string[] | undefined;
  /** The first and the last month (UTC), such as 2026-11. */
  from?: string | undefined;
  to?: string | undefined;
}

/** The methods of the cloud API at `endpoint`. */
export const savingsMethods = (endpoint: Endpoint) => ({
  /** What workloads saved while asleep, by month, cluster and namespace. */
  savings: ({ signal, cluster, namespaces, from, to }: SavingsOptions = {}) =>
    call(endpoint, savings.list, { query: { cluster_id: cluster, namespace: namespaces, from, to }, signal }),
});
