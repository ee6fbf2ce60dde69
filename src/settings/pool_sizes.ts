// The sizes of the pools of threads. Apart from limits.ts, which browsers load too.
import { availableParallelism } from 'node:os';

/** The threads of each pool, over which the actors of its family are spread. */
export interface PoolSizes {
  tethers: number;
  clusters: number;
}

/** More threads would read clusters faster than the cloud thread can note what they see. */
const MAX_CLUSTERS_THREADS = 4;

/** The sizes on this machine. One processor is left to the cloud thread. */
export const POOL_SIZES: PoolSizes = {
  tethers: 2,
  clusters: Math.min(MAX_CLUSTERS_THREADS, Math.max(1, availableParallelism() - 1)),
};
