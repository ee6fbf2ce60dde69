// State: a tree of watches per service. Rebuilt from: the configuration, which holds the requests; services
// send theirs again when the thread is new.
import { WatchedTree, type WatchedTreeOptions } from '../../adapters/watched_tree.ts';
import { serviceAddress } from '../../protocol/address.ts';
import { isSameRequest, type WatcherProtocol, type WatchRequest } from '../../protocol/watcher.ts';
import { actor, type Context } from '../../runtime/actor.ts';

export interface WatcherConfig {
  /** By service; empty at the start of the thread. */
  requests: Map<string, WatchRequest>;
}

class Watcher {
  private readonly context: Context;
  private readonly requests: Map<string, WatchRequest>;
  private readonly trees = new Map<string, WatchedTree>();

  constructor(context: Context, { requests }: WatcherConfig) {
    this.context = context;
    this.requests = requests;
    context.scope.defer(() => {
      for (const tree of this.trees.values()) tree.close();
    });
    for (const request of requests.values()) this.open(request);
  }

  watch(request: WatchRequest): null {
    const { service } = request;
    const before = this.requests.get(service);
    // An earlier `since`: the last report was on its way to a thread that died.
    const isMissing = before !== undefined && request.since < before.since;
    if (before && !isMissing && this.trees.has(service) && isSameRequest(before, request)) return null;
    this.unwatch(service);
    this.requests.set(service, request);
    this.open(request);
    return null;
  }

  unwatch(service: string): null {
    this.trees.get(service)?.close();
    this.trees.delete(service);
    this.requests.delete(service);
    return null;
  }

  private open(request: WatchRequest): void {
    const { clock } = this.context;
    const service = this.context.ref(serviceAddress(request.service));
    const options: WatchedTreeOptions = {
      ...request,
      clock,
      onChange: (paths) => {
        // A later incarnation must not report it again.
        request.since = clock.now();
        service.tell('filesChanged', { paths });
      },
      onState: (state) => service.tell('watchState', state),
      onDefect: (error) => this.context.crash(error),
    };
    this.trees.set(request.service, new WatchedTree(options));
  }
}

/** Watches files for services: docs/reference.md "Watch". */
export const watcherActor = actor<WatcherProtocol, WatcherConfig>('watcher', (context, config) => {
  const watcher = new Watcher(context, config);
  return {
    watch: (request) => watcher.watch(request),
    unwatch: ({ service }) => watcher.unwatch(service),
  };
});
