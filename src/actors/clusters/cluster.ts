// State: the connections to one API server, and the listings and watches under way. Rebuilt from: nothing;
// the caller opens it again.
import { carriedFailure } from '../../adapters/kube/carried_errors.ts';
import type { KubeCluster } from '../../adapters/kube/kube_cluster.ts';
import { resourceOf } from '../../adapters/kube/resources.ts';
import type { ClusterProtocol, Collection, ListPart, WatchPart } from '../../protocol/cluster_calls.ts';
import type { ClusterAccess } from '../../protocol/clusters.ts';
import { actor, type Context, type DeferredReply, Failure } from '../../runtime/actor.ts';
import { packRows } from '../../runtime/msgpack.ts';
import { WatchFeed } from './watch_feed.ts';

export interface ClusterConfig {
  /** Makes the client of a cluster. It connects at its first use. */
  open: (access: ClusterAccess) => KubeCluster;
}

/** Rows in a part of a listing: reading a part takes a few milliseconds. */
const PART_ROWS = 500;

/** A listing whose rows are fetched in parts. */
interface Listing {
  rows: readonly object[];
  version: string;
  /** Rows that were fetched. */
  fetched: number;
}

class Cluster {
  private readonly context: Context;
  private readonly config: ClusterConfig;
  private cluster: KubeCluster | null = null;
  private readonly listings = new Map<number, Listing>();
  private readonly feeds = new Map<number, WatchFeed>();
  /** Of the calls under way that can be cancelled. */
  private readonly aborts = new Map<number, AbortController>();

  constructor(context: Context, config: ClusterConfig) {
    this.context = context;
    this.config = config;
    context.scope.defer(() => this.end());
    // Nobody else would end the watches of a thread that has died.
    context.watch('workloads', () => this.close());
  }

  open(access: ClusterAccess): null {
    this.cluster ??= this.config.open(access);
    return null;
  }

  /** Replies with the result of a call to the cluster. */
  call<R>(work: (cluster: KubeCluster) => Promise<R>): DeferredReply<R> {
    const { cluster } = this;
    if (!cluster) throw new Failure('gone', `${this.context.address} is not open`);
    return this.context.replyLater(
      work(cluster).catch((error: unknown) => {
        throw carriedFailure(error);
      }),
    );
  }

  /** Like `call`, for one that `cancel` ends. */
  cancellable<R>(
    call: number,
    work: (cluster: KubeCluster, signal: AbortSignal) => Promise<R>,
  ): DeferredReply<R> {
    return this.call((cluster) => work(cluster, this.signalOf(call)).finally(() => this.aborts.delete(call)));
  }

  list(call: number, collection: Collection): DeferredReply<ListPart> {
    return this.cancellable(call, async (cluster, signal) => {
      const { rows, version } = await cluster.list(resourceOf(collection), signal);
      return this.nextPart(call, { rows, version, fetched: 0 });
    });
  }

  moreRows(call: number): ListPart {
    const listing = this.listings.get(call);
    if (!listing) throw new Failure('gone', 'there is no such listing');
    return this.nextPart(call, listing);
  }

  watch(call: number, collection: Collection, from: string): DeferredReply<null> {
    return this.call((cluster) => {
      const feed = new WatchFeed();
      this.feeds.set(call, feed);
      cluster
        .watch(resourceOf(collection), from, feed, this.signalOf(call))
        .then(() => feed.finish(null))
        .catch((error: unknown) => feed.finish(error));
      return feed.opened.promise;
    });
  }

  moreEvents(call: number): DeferredReply<WatchPart> {
    return this.call(async () => {
      const feed = this.feeds.get(call);
      if (!feed) throw new Failure('gone', 'there is no such watch');
      return feed.next();
    });
  }

  cancel(call: number): null {
    const abort = this.aborts.get(call);
    abort?.abort();
    // One that waits for its reader does not notice.
    this.feeds.get(call)?.finish(abort?.signal.reason ?? null);
    for (const calls of [this.aborts, this.listings, this.feeds]) calls.delete(call);
    return null;
  }

  async close(): Promise<null> {
    const ended = this.end();
    this.context.end();
    await ended;
    return null;
  }

  /** Ends every call, so that the end of the actor waits for none. */
  private async end(): Promise<void> {
    const { cluster } = this;
    this.cluster = null;
    for (const call of [...this.aborts.keys()]) this.cancel(call);
    await cluster?.close();
  }

  private signalOf(call: number): AbortSignal {
    const abort = new AbortController();
    this.aborts.set(call, abort);
    return abort.signal;
  }

  private nextPart(call: number, { rows, version, fetched }: Listing): ListPart {
    const end = fetched + PART_ROWS;
    const isLast = end >= rows.length;
    if (isLast) this.listings.delete(call);
    else this.listings.set(call, { rows, version, fetched: end });
    return { rows: packRows(rows.slice(fetched, end)), version: isLast ? version : null };
  }
}

/** `cluster:<id>`: see ClusterProtocol. */
export const clusterActor = actor<ClusterProtocol, ClusterConfig>('cluster', (context, config) => {
  const cluster = new Cluster(context, config);
  return {
    open: ({ access }) => cluster.open(access),
    version: () => cluster.call((api) => api.version()),
    capabilities: ({ namespaces }) => cluster.call((api) => api.capabilities(namespaces)),
    rights: ({ namespaces }) => cluster.call((api) => api.rights(namespaces)),
    requestToken: ({ account, lifetimeS }) => cluster.call((api) => api.requestToken(account, lifetimeS)),
    currentVersion: ({ call, collection }) =>
      cluster.cancellable(call, (api, signal) => api.currentVersion(resourceOf(collection), signal)),
    getWorkload: ({ workload }) => cluster.call((api) => api.getWorkload(workload)),
    patchWorkload: ({ workload, steps, isDryRun }) =>
      cluster.call((api) => api.patchWorkload(workload, steps, isDryRun)),
    autoscalers: ({ workload }) => cluster.call((api) => api.autoscalers(workload)),
    list: ({ call, collection }) => cluster.list(call, collection),
    moreRows: ({ call }) => cluster.moreRows(call),
    watch: ({ call, collection, from }) => cluster.watch(call, collection, from),
    moreEvents: ({ call }) => cluster.moreEvents(call),
    cancel: ({ call }) => cluster.cancel(call),
    close: () => cluster.close(),
  };
});
