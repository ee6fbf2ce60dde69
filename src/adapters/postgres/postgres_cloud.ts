// The cloud's tables in a database that several Berths share.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { StoredWorkload } from '../../protocol/cloud.ts';
import type { CommittedCloudEvent } from '../../protocol/cloud_events.ts';
import { scopeKey, type WorkloadScope } from '../../protocol/cloud_watches.ts';
import type { SealedSecret, StoredCluster } from '../../protocol/clusters.ts';
import type { StoredGrant } from '../../protocol/grants.ts';
import type { StoredSavings } from '../../protocol/savings.ts';
import { DATABASE } from '../../settings/cloud_limits.ts';
import type { CloudBatch, CloudCommit, CloudStore } from '../storage/cloud_store.ts';
import type { DatabaseConnection } from './connection.ts';
import { type HeldLease, Statements } from './statements.ts';

type Put = [id: string, clusterId: string | null, record: string];
/** Changes to several tables, in one transaction. */
interface Changes {
  put?: Record<string, Put[]>;
  remove?: Record<string, readonly string[]>;
}

interface Row {
  id: string;
  record: string;
}

/** `sealed` with its bytes as base64. */
const encodeSecret = ({ kek, wrapped, data }: SealedSecret) => ({
  kek,
  wrapped: Buffer.from(wrapped).toString('base64'),
  data: Buffer.from(data).toString('base64'),
});

const decodeSecret = ({ kek, wrapped, data }: ReturnType<typeof encodeSecret>): SealedSecret => ({
  kek,
  wrapped: Buffer.from(wrapped, 'base64'),
  data: Buffer.from(data, 'base64'),
});

const encodeCluster = (row: StoredCluster): string =>
  JSON.stringify({ ...row, access: row.access && encodeSecret(row.access) });

function decodeCluster({ record }: Row): StoredCluster {
  const row = JSON.parse(record);
  return { ...row, access: row.access && decodeSecret(row.access) };
}

const decode = <T>({ record }: Pick<Row, 'record'>): T => JSON.parse(record);

const positionId = ({ clusterId, ...scope }: WorkloadScope & { clusterId: string }): string =>
  `${clusterId}/${scopeKey(scope)}`;
const savingsId = ({ clusterId, month, namespace }: StoredSavings): string =>
  `${clusterId}/${month}/${namespace}`;

class PostgresTables {
  private readonly statements: Statements;

  constructor(statements: Statements) {
    this.statements = statements;
  }

  async write(changes: Changes): Promise<void> {
    await this.statements.call('write_1', JSON.stringify(changes));
  }

  put(table: string, ...rows: Put[]): Promise<void> {
    return this.write({ put: { [table]: rows } });
  }

  remove(table: string, ids: readonly string[]): Promise<void> {
    return this.write({ remove: { [table]: ids } });
  }

  async all<T>(table: string): Promise<T[]> {
    const rows = await this.statements.run<Row>(`SELECT id, record FROM berth.${table} ORDER BY id`);
    return rows.map(decode<T>);
  }

  async ofCluster<T>(table: string, clusterId: string): Promise<T[]> {
    const text = `SELECT id, record FROM berth.${table} WHERE cluster_id = $1 ORDER BY id`;
    return (await this.statements.run<Row>(text, [clusterId])).map(decode<T>);
  }

  /** The rows of a cluster, `DATABASE.rowsPerPart` at a time, so that the thread has time for other work. */
  async *parts<T>(table: string, clusterId: string): AsyncIterable<T[]> {
    // One statement for all: Postgres takes three times as long to find each part by its ids.
    const text = `SELECT record FROM berth.${table} WHERE cluster_id = $1`;
    const rows = await this.statements.read<Pick<Row, 'record'>, T>(text, [clusterId], decode);
    for (let from = 0; from < rows.length; from += DATABASE.rowsPerPart) {
      yield rows.slice(from, from + DATABASE.rowsPerPart);
      await nextTurn();
    }
  }
}

function clusterTable(statements: Statements) {
  const find = async (id: string): Promise<StoredCluster | null> => {
    const [row] = await statements.run<Row>('SELECT id, record FROM berth.clusters WHERE id = $1', [id]);
    return row ? decodeCluster(row) : null;
  };
  const save = async (row: StoredCluster): Promise<boolean> =>
    (await statements.call<boolean>(
      'save_cluster_1',
      row.id,
      row.name,
      row.inCluster,
      encodeCluster(row),
    )) === true;
  let lastChange: Promise<unknown> = Promise.resolve();
  /** Runs changes one at a time, because facts are merged into the current record of a cluster. */
  const inTurn = <R>(change: () => Promise<R>): Promise<R> => {
    const result = lastChange.then(change);
    lastChange = result.catch(() => undefined);
    return result;
  };
  const table: Pick<CloudStore, 'clusters' | 'cluster' | 'addCluster' | 'saveCluster' | 'saveFacts'> = {
    clusters: async () =>
      (await statements.run<Row>('SELECT id, record FROM berth.clusters ORDER BY id')).map(decodeCluster),
    cluster: find,
    addCluster: (row) =>
      inTurn(async () => {
        const values = [row.id, row.name, row.inCluster, encodeCluster(row)];
        return (await statements.call<boolean>('add_cluster_1', ...values)) === true;
      }),
    saveCluster: (row) => inTurn(() => save(row)),
    saveFacts: (id, facts) =>
      inTurn(async () => {
        const row = await find(id);
        if (row) await save({ ...row, ...facts });
      }),
  };
  return table;
}

const putEvent = (event: CommittedCloudEvent): Put => [event.key, null, JSON.stringify(event)];

/** The changes of a batch, by table. */
const changesOf = ({ records, positions, lostPositions, events, savings }: CloudBatch): Changes => ({
  put: {
    workloads: records.flatMap(({ id, record }): Put[] =>
      record ? [[id, record.clusterId, JSON.stringify(record)]] : [],
    ),
    watches: positions.map((row): Put => [positionId(row), row.clusterId, JSON.stringify(row)]),
    outbox: events.map(putEvent),
    savings: savings.map((row): Put => [savingsId(row), row.clusterId, JSON.stringify(row)]),
  },
  remove: {
    workloads: records.flatMap(({ id, record }) => (record ? [] : [id])),
    watches: lostPositions.map(positionId),
  },
});

const hasChanges = ({ records, positions, lostPositions, events, savings }: CloudBatch): boolean =>
  [records, positions, lostPositions, events, savings].some((rows) => rows.length > 0);

/** Tokens and grants; `tell` reports what was committed. */
function principalTables(tables: PostgresTables, tell: (commit: CloudCommit) => void) {
  /** Commits changes with the events that report them. */
  async function withEvents(
    { put = {}, remove = {} }: Changes,
    events: readonly CommittedCloudEvent[],
  ): Promise<void> {
    await tables.write({ put: { ...put, outbox: events.map(putEvent) }, remove });
    tell({ views: [], events });
  }
  const table: Pick<
    CloudStore,
    'tokens' | 'saveToken' | 'removeToken' | 'grants' | 'saveGrant' | 'removeGrant'
  > = {
    tokens: () => tables.all('tokens'),
    saveToken: (row, events) =>
      withEvents({ put: { tokens: [[row.id, null, JSON.stringify(row)]] } }, events),
    async removeToken(id, subject, events) {
      const lost = (await tables.all<StoredGrant>('grants')).filter((grant) => grant.subject === subject);
      await withEvents({ remove: { tokens: [id], grants: lost.map((grant) => grant.id) } }, events);
    },
    grants: () => tables.all('grants'),
    saveGrant: (row, events) =>
      withEvents({ put: { grants: [[row.id, null, JSON.stringify(row)]] } }, events),
    removeGrant: (id, events) => withEvents({ remove: { grants: [id] } }, events),
  };
  return table;
}

/**
 * The CloudStore on a connection with a suitable schema. In the database, every change is fenced by `lease`.
 */
export function postgresCloudStore(connection: DatabaseConnection, lease: HeldLease): CloudStore {
  const statements = new Statements(connection, lease);
  const tables = new PostgresTables(statements);
  const followers = new Set<(commit: CloudCommit) => void>();
  const tell = (commit: CloudCommit): void => {
    for (const follower of followers) follower(commit);
  };
  const readCanary = async (): Promise<SealedSecret | null> => {
    const [row] = await statements.run<{ canary: string }>('SELECT canary FROM berth.vault');
    return row ? decodeSecret(JSON.parse(row.canary)) : null;
  };
  return {
    canary: {
      read: readCanary,
      async write(sealed) {
        const canary = JSON.stringify(encodeSecret(sealed));
        await statements.run('INSERT INTO berth.vault (canary) VALUES ($1) ON CONFLICT DO NOTHING', [canary]);
        return (await readCanary()) ?? sealed;
      },
    },
    ...clusterTable(statements),
    removeCluster: async (id) => void (await statements.call('remove_cluster_1', id)),
    workloads: (clusterId) => tables.parts<StoredWorkload>('workloads', clusterId),
    positions: (clusterId) => tables.ofCluster('watches', clusterId),
    savings: (clusterId) => tables.ofCluster('savings', clusterId),
    async save(batch) {
      if (hasChanges(batch)) await tables.write(changesOf(batch));
      tell({ views: batch.views, events: batch.events });
    },
    follow(onCommit) {
      followers.add(onCommit);
      return () => void followers.delete(onCommit);
    },
    untoldEvents: () => tables.all('outbox'),
    eventsTold: (keys) => tables.remove('outbox', keys),
    tethers: () => tables.all('tethers'),
    saveTether: (row) => tables.put('tethers', [row.id, null, JSON.stringify(row)]),
    removeTether: (id) => tables.remove('tethers', [id]),
    operations: () => tables.all('operations'),
    saveOperation: (row, removed) =>
      tables.write({
        put: { operations: [[row.id, null, JSON.stringify(row)]] },
        remove: { operations: removed },
      }),
    policies: () => tables.all('policies'),
    savePolicy: (row) => tables.put('policies', [row.name, null, JSON.stringify(row)]),
    removePolicy: (name) => tables.remove('policies', [name]),
    ...principalTables(tables, tell),
  };
}
