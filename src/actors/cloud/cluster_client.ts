// The client of a cluster whose connections are on another thread.
import { restoredError } from '../../adapters/kube/carried_errors.ts';
import type { KubeCluster, KubeListing, Resource, WatchHandler } from '../../adapters/kube/kube_cluster.ts';
import { Pace } from '../../adapters/kube/pace.ts';
import type { ServiceAccountName } from '../../protocol/cluster_account.ts';
import type {
  ClusterProtocol,
  PatchStep,
  WatchedChange,
  WorkloadReference,
} from '../../protocol/cluster_calls.ts';
import type { ClusterAccess } from '../../protocol/clusters.ts';
import { fail } from '../../protocol/errors.ts';
import {
  type Clock,
  isFailure,
  type MessageKind,
  type MessageOf,
  type Ref,
  type ReplyOf,
  tolerateFailure,
} from '../../runtime/actor.ts';
import { unpackRows } from '../../runtime/msgpack.ts';
import type { WatchGate } from './watch_gate.ts';

/** Only for a reply that got lost: calls end earlier, and so does a silent watch. */
const ASK_MS = 900_000;

export interface ClusterClientOptions {
  access: ClusterAccess;
  /** The actor with the connections. */
  cluster: Ref<ClusterProtocol>;
  /** Starts the thread of that actor. */
  ensure: () => Promise<unknown>;
  clock: Clock;
  /** Of the watches of all clusters. */
  gate: WatchGate;
}

/** The events that change a row. */
const countOf = (events: readonly (WatchedChange<unknown> | null)[]): number =>
  events.filter((event) => event !== null && event.type !== 'bookmark').length;

class ClusterClient implements KubeCluster {
  private readonly options: ClusterClientOptions;
  private opened: Promise<unknown> | null = null;
  private isClosed = false;
  private calls = 0;

  constructor(options: ClusterClientOptions) {
    this.options = options;
  }

  version(): Promise<string> {
    return this.ask('version', {});
  }

  capabilities(namespaces: readonly string[] | null) {
    return this.ask('capabilities', { namespaces });
  }

  rights(namespaces: readonly string[] | null) {
    return this.ask('rights', { namespaces });
  }

  requestToken(account: ServiceAccountName, lifetimeS: number): Promise<string> {
    return this.ask('requestToken', { account, lifetimeS });
  }

  getWorkload(workload: WorkloadReference) {
    return this.ask('getWorkload', { workload });
  }

  patchWorkload(workload: WorkloadReference, steps: readonly PatchStep[], isDryRun = false) {
    return this.ask('patchWorkload', { workload, steps, isDryRun });
  }

  autoscalers(workload: WorkloadReference) {
    return this.ask('autoscalers', { workload });
  }

  currentVersion<Row extends object>({ collection }: Resource<Row>, signal?: AbortSignal): Promise<string> {
    return this.numbered(signal, (call) => this.send('currentVersion', { call, collection }));
  }

  list<Row extends object>({ collection }: Resource<Row>, signal?: AbortSignal): Promise<KubeListing<Row>> {
    return this.numbered(signal, async (call) => {
      const rows: Row[] = [];
      let part = await this.send('list', { call, collection });
      for (;;) {
        // The rows of the collection that was asked for.
        for (const row of unpackRows(part.rows) as Row[]) rows.push(row);
        if (part.version !== null) return { rows, version: part.version };
        signal?.throwIfAborted();
        part = await this.send('moreRows', { call });
      }
    });
  }

  watch<Row extends object>(
    { collection }: Resource<Row>,
    from: string,
    { onOpen, onEvent }: WatchHandler<Row>,
    signal: AbortSignal,
  ): Promise<void> {
    return this.numbered(signal, async (call) => {
      await this.send('watch', { call, collection, from });
      onOpen();
      const pace = new Pace(this.options.clock, signal);
      for (;;) {
        signal.throwIfAborted();
        const { events, isEnded } = await this.send('moreEvents', { call });
        // The rows of the collection that was asked for.
        const changes = events as (WatchedChange<Row> | null)[];
        await this.options.gate.pass(countOf(changes), async () => {
          for (const event of changes) await pace.run(() => onEvent(event));
        });
        if (isEnded) return;
      }
    });
  }

  async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const { opened } = this;
    // If the thread has ended, so have its connections.
    if (opened)
      await tolerateFailure(
        opened.then(() => this.options.cluster.ask('close', {})),
        () => null,
      );
  }

  private async ask<K extends MessageKind<ClusterProtocol>>(
    kind: K,
    message: MessageOf<ClusterProtocol, K>,
  ): Promise<ReplyOf<ClusterProtocol, K>> {
    await this.ready();
    return this.send(kind, message);
  }

  /** Runs a call that `signal` ends, with everything that it leaves at the cluster. */
  private async numbered<R>(signal: AbortSignal | undefined, work: (call: number) => Promise<R>): Promise<R> {
    await this.ready();
    signal?.throwIfAborted();
    this.calls += 1;
    const call = this.calls;
    const cancel = (): void => {
      // A message to an actor that has ended would start it again.
      if (!this.isClosed) this.options.cluster.tell('cancel', { call });
    };
    signal?.addEventListener('abort', cancel);
    try {
      return await work(call);
    } finally {
      signal?.removeEventListener('abort', cancel);
      cancel();
    }
  }

  /** Sends at once, so that a `cancel` never overtakes its call. */
  private async send<K extends MessageKind<ClusterProtocol>>(
    kind: K,
    message: MessageOf<ClusterProtocol, K>,
  ): Promise<ReplyOf<ClusterProtocol, K>> {
    try {
      return await this.options.cluster.ask(kind, message, { deadlineMs: ASK_MS });
    } catch (error) {
      // The actor is new, or will be: it does not know the access.
      if (isFailure(error) && (error.code === 'gone' || error.code === 'crashed')) this.opened = null;
      throw restoredError(error);
    }
  }

  /** Resolves when the actor knows the access. Fails cluster_unreachable when the client is closed. */
  private async ready(): Promise<void> {
    if (!this.isClosed) {
      this.opened ??= this.open();
      await this.opened;
    }
    if (this.isClosed) throw fail('cluster_unreachable', 'the connections to this cluster are closed');
  }

  private async open(): Promise<void> {
    const { cluster, ensure, access } = this.options;
    try {
      await ensure();
      await cluster.ask('open', { access });
    } catch (error) {
      this.opened = null;
      throw restoredError(error);
    }
  }
}

/** The client of a cluster over messages to the actor with its connections. */
export const createClusterClient = (options: ClusterClientOptions): KubeCluster => new ClusterClient(options);
