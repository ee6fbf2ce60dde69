// Copies all rows of the cloud part from one store into another.
import type { StoredCluster } from '../../protocol/clusters.ts';
import { tokenSubject } from '../../protocol/principals.ts';
import type { CloudBatch, CloudStore } from './cloud_store.ts';
import type { Vault } from './vault.ts';

export interface CloudCopy {
  from: CloudStore;
  /** The vault of `from`. */
  opener: Vault;
  to: CloudStore;
  /** The vault of `to`. */
  sealer: Vault;
}

/** How many rows were copied. */
export interface CopiedCloud {
  clusters: number;
  workloads: number;
  policies: number;
  tokens: number;
}

const EMPTY: CloudBatch = {
  records: [],
  views: [],
  positions: [],
  lostPositions: [],
  events: [],
  savings: [],
};

interface CopiedTable {
  rows(store: CloudStore): Promise<{ key: string; label: string }[]>;
  remove(store: CloudStore, key: string): Promise<void>;
}

/** What may be too much in a target, in the order of its removal: first what lets somebody in. */
const TABLES: readonly CopiedTable[] = [
  {
    rows: async (store) =>
      (await store.tokens()).map(({ id, name }) => ({ key: id, label: `token ${name}` })),
    remove: (store, id) => store.removeToken(id, tokenSubject(id), []),
  },
  {
    rows: async (store) => (await store.grants()).map(({ id }) => ({ key: id, label: `grant ${id}` })),
    remove: (store, id) => store.removeGrant(id, []),
  },
  {
    rows: async (store) =>
      (await store.policies()).map(({ name }) => ({ key: name, label: `policy ${name}` })),
    remove: (store, name) => store.removePolicy(name),
  },
  {
    rows: async (store) => (await store.tethers()).map(({ id }) => ({ key: id, label: `tether ${id}` })),
    remove: (store, id) => store.removeTether(id),
  },
  {
    rows: async (store) =>
      (await store.clusters()).map(({ id, name }) => ({ key: id, label: `cluster ${name}` })),
    remove: (store, id) => store.removeCluster(id),
  },
];

/** The rows of a table that the target has and the source lacks. */
async function surplusOf(
  table: CopiedTable,
  { from, to }: Pick<CloudCopy, 'from' | 'to'>,
): Promise<{ key: string; label: string }[]> {
  const kept = new Set((await table.rows(from)).map(({ key }) => key));
  return (await table.rows(to)).filter(({ key }) => !kept.has(key));
}

/** What `copyCloud` would remove from the target, such as `token deploy`. */
export async function surplusRows(copy: Pick<CloudCopy, 'from' | 'to'>): Promise<string[]> {
  const lists = await Promise.all(TABLES.map((table) => surplusOf(table, copy)));
  return lists.flat().map(({ label }) => label);
}

async function copyCluster({ from, opener, to, sealer }: CloudCopy, row: StoredCluster): Promise<number> {
  const access = row.access && sealer.seal(row.id, opener.open(row.id, row.access));
  await to.addCluster({ ...row, access });
  let count = 0;
  for await (const part of from.workloads(row.id)) {
    count += part.length;
    await to.save({ ...EMPTY, records: part.map((record) => ({ id: record.id, record })) });
  }
  // Positions refer to the records, so they are saved after them.
  const [positions, savings] = [await from.positions(row.id), await from.savings(row.id)];
  await to.save({ ...EMPTY, positions, savings });
  return count;
}

/**
 * Makes `to` hold what `from` does, and seals the access to clusters again with the key of `to`. Can be
 * repeated, also after it was interrupted. Operations that `to` has had stay.
 */
export async function copyCloud(copy: CloudCopy): Promise<CopiedCloud> {
  const { from, to } = copy;
  for (const table of TABLES) for (const { key } of await surplusOf(table, copy)) await table.remove(to, key);
  // With their workloads, and before any is added: two may have exchanged their names.
  for (const { id } of await to.clusters()) await to.removeCluster(id);
  const clusters = await from.clusters();
  let workloads = 0;
  for (const row of clusters) workloads += await copyCluster(copy, row);
  await to.save({ ...EMPTY, events: await from.untoldEvents() });
  for (const row of await from.tethers()) await to.saveTether(row);
  for (const row of await from.operations()) await to.saveOperation(row, []);
  const policies = await from.policies();
  for (const row of policies) await to.savePolicy(row);
  const tokens = await from.tokens();
  for (const row of tokens) await to.saveToken(row, []);
  for (const row of await from.grants()) await to.saveGrant(row, []);
  return { clusters: clusters.length, workloads, policies: policies.length, tokens: tokens.length };
}
