// The cloud's tables in the embedded store of this daemon.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import { scopeKey, type WatchPosition, type WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { StoredCluster } from '../../protocol/clusters.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import { timeOfUlid } from '../../protocol/ulid.ts';
import type { CloudBatch, CloudCommit, CloudStore, StoredFacts } from './cloud_store.ts';
import type { Store } from './store_tables.ts';

/** The caller handles the error; the next change proceeds all the same. */
const ignore = (): void => {};

const positionKey = ({ clusterId, ...scope }: WorkloadScope & { clusterId: string }): string =>
  `${clusterId}/${scopeKey(scope)}`;

const savingsKey = ({ clusterId, month, namespace }: StoredSavings): string =>
  `${clusterId}/${month}/${namespace}`;

/** Adds and changes clusters. */
function clusterTable(store: Store) {
  const clusters = store.table('clusters');
  const rows = (): StoredCluster[] => clusters.all().map(([, row]) => row);
  let lastChange: Promise<unknown> = Promise.resolve();

  /** A change sees an earlier one only once that is on disk, so changes run one at a time. */
  function inTurn<R>(change: () => Promise<R>): Promise<R> {
    const result = lastChange.then(change);
    lastChange = result.catch(ignore);
    return result;
  }

  return {
    clusters: async () => rows(),
    cluster: async (id: string) => clusters.get(id) ?? null,
    addCluster: (row: StoredCluster) =>
      inTurn(async () => {
        const isTaken = rows().some((other) => other.name === row.name || (other.inCluster && row.inCluster));
        if (!isTaken) await clusters.put(row.id, row);
        return !isTaken;
      }),
    saveCluster: (row: StoredCluster) =>
      inTurn(async () => {
        if (rows().some(({ id, name }) => name === row.name && id !== row.id)) return false;
        if (clusters.get(row.id)) await clusters.put(row.id, row);
        return true;
      }),
    saveFacts: (id: string, facts: StoredFacts) =>
      inTurn(async () => {
        const row = clusters.get(id);
        if (row) await clusters.put(id, { ...row, ...facts });
      }),
  };
}

/** Commits of changes with the events that report them. */
function eventTable(store: Store) {
  const outbox = store.table('outbox');
  const followers = new Set<(commit: CloudCommit) => void>();
  return {
    /** Commits `changes`, which the caller has just requested. */
    async commit(changes: readonly Promise<void>[], { views, events }: CloudCommit) {
      // Requested in one turn, so they form one commit.
      await Promise.all([...changes, ...events.map((event) => outbox.put(event.key, event))]);
      for (const follower of followers) follower({ views, events });
    },
    follow(onCommit: (commit: CloudCommit) => void) {
      followers.add(onCommit);
      return () => void followers.delete(onCommit);
    },
    untoldEvents: async () => outbox.all().map(([, event]) => event),
    async eventsTold(keys: readonly string[]) {
      await Promise.all(keys.map((key) => outbox.remove(key)));
    },
  };
}

/** The records of workloads, and what is committed with them by `commit`. */
function workloadTables(store: Store, commit: ReturnType<typeof eventTable>['commit']) {
  const workloads = store.table('workloads');
  const watches = store.table('watches');
  const savings = store.table('savings');

  /** Requested in one turn, so the changes form one commit. */
  const write = (batch: CloudBatch): Promise<void>[] => [
    ...batch.records.map(({ id, record }) => (record ? workloads.put(id, record) : workloads.remove(id))),
    ...batch.lostPositions.map((scope) => watches.remove(positionKey(scope))),
    ...batch.positions.map((position) => watches.put(positionKey(position), position)),
    ...batch.savings.map((row) => savings.put(savingsKey(row), row)),
  ];

  async function positionsOf(clusterId: string): Promise<WatchPosition[]> {
    const found: WatchPosition[] = [];
    for await (const part of store.parts('watches', `${clusterId}/`))
      for (const [, position] of part) found.push(position);
    return found;
  }

  async function savingsOf(clusterId: string): Promise<StoredSavings[]> {
    const found: StoredSavings[] = [];
    for await (const part of store.parts('savings', `${clusterId}/`))
      for (const [, row] of part) found.push(row);
    return found;
  }

  async function* workloadsOf(clusterId: string): AsyncIterable<StoredWorkload[]> {
    // Ids of workloads begin with the time of their cluster's: see `derivedUlid`.
    for await (const part of store.parts('workloads', timeOfUlid(clusterId))) {
      yield part.flatMap(([, row]) => (row.clusterId === clusterId ? [row] : []));
    }
    await nextTurn();
  }

  return {
    workloads: workloadsOf,
    positions: positionsOf,
    savings: savingsOf,
    save: (batch: CloudBatch) => commit(write(batch), batch),
  };
}

/** The embedded CloudStore. Another one of the same file, on another thread, follows its commits alone. */
export function embeddedCloudStore(store: Store): CloudStore {
  const vault = store.table('vault');
  const tethers = store.table('tethers');
  const operations = store.table('operations');
  const policies = store.table('policies');
  const tokens = store.table('tokens');
  const grants = store.table('grants');
  const { commit, ...ofEvents } = eventTable(store);
  const ofWorkloads = workloadTables(store, commit);
  const withEvents = (changes: readonly Promise<void>[], events: readonly CommittedCloudEvent[]) =>
    commit(changes, { views: [], events });
  return {
    canary: {
      read: async () => vault.get('canary') ?? null,
      async write(sealed) {
        if (!vault.get('canary')) await vault.put('canary', sealed);
        return vault.get('canary') ?? sealed;
      },
    },
    ...clusterTable(store),
    ...ofEvents,
    ...ofWorkloads,
    async removeCluster(id) {
      const positions = await ofWorkloads.positions(id);
      const savings = await ofWorkloads.savings(id);
      const ids: string[] = [];
      for await (const part of ofWorkloads.workloads(id)) ids.push(...part.map((row) => row.id));
      // Requested in one turn, so they form one commit.
      await Promise.all([
        store.table('clusters').remove(id),
        ...ids.map((key) => store.table('workloads').remove(key)),
        ...positions.map((position) => store.table('watches').remove(positionKey(position))),
        ...savings.map((row) => store.table('savings').remove(savingsKey(row))),
      ]);
    },
    tethers: async () => tethers.all().map(([, row]) => row),
    saveTether: (row) => tethers.put(row.id, row),
    removeTether: (id) => tethers.remove(id),
    operations: async () => operations.all().map(([, row]) => row),
    async saveOperation(row, removed) {
      // Requested in one turn, so they form one commit.
      await Promise.all([operations.put(row.id, row), ...removed.map((id) => operations.remove(id))]);
    },
    policies: async () => policies.all().map(([, row]) => row),
    savePolicy: (row) => policies.put(row.name, row),
    removePolicy: (name) => policies.remove(name),
    tokens: async () => tokens.all().map(([, row]) => row),
    saveToken: (row, events) => withEvents([tokens.put(row.id, row)], events),
    removeToken(id, subject, events) {
      const lost = grants.all().filter(([, grant]) => grant.subject === subject);
      return withEvents([tokens.remove(id), ...lost.map(([key]) => grants.remove(key))], events);
    },
    grants: async () => grants.all().map(([, row]) => row),
    saveGrant: (row, events) => withEvents([grants.put(row.id, row)], events),
    removeGrant: (id, events) => withEvents([grants.remove(id)], events),
  };
}
