// Copies all rows of the cloud part from one store into another.
import type { StoredCluster } from '../../protocol/clusters.ts';
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

/** A cluster with another id already has the name, so this cluster was not copied. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError';
}

async function copyCluster({ from, opener, to, sealer }: CloudCopy, row: StoredCluster): Promise<number> {
  const access = row.access && sealer.seal(row.id, opener.open(row.id, row.access));
  const sealed = { ...row, access };
  const isKept = (await to.cluster(row.id)) ? await to.saveCluster(sealed) : await to.addCluster(sealed);
  if (!isKept) throw new NameTakenError(`another cluster is registered as ${row.name}, or as the pod's own`);
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
 * Copies everything, and seals the access to clusters again with the key of `to`. Rows with the same ids are
 * replaced, so a copy can be repeated. Throws a NameTakenError.
 */
export async function copyCloud(copy: CloudCopy): Promise<CopiedCloud> {
  const { from, to } = copy;
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
