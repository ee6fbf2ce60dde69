// What `berth cloud move` copies, into a target that holds something else.
import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { copyCloud, surplusRows } from '../../../src/adapters/storage/copy_cloud.ts';
import { createVault } from '../../../src/adapters/storage/vault.ts';
import type { StoredCluster } from '../../../src/protocol/clusters.ts';
import { tempDir } from '../../kit/actors.ts';
import { openCloudStore } from '../../kit/cloud.ts';

const cluster = (id: string, name: string): StoredCluster => ({
  ...{ id, name, provider: 'other', inCluster: false, createdAt: 1, lastSyncAt: null },
  ...{ version: null, capabilities: null, access: null },
});
const token = (id: string) => ({
  ...{ id, name: id, hash: 'x', createdAt: 1, createdBy: 'me', expiresAt: null, lastUsedAt: null },
});

it('the target holds what the source does, whatever it held', async () => {
  const [from, to] = [openCloudStore(tempDir()).cloudStore, openCloudStore(tempDir()).cloudStore];
  for (const row of [cluster('a', 'one'), cluster('b', 'two')]) await from.addCluster(row);
  await from.saveToken(token('kept'), []);
  // Two have exchanged their names there.
  for (const row of [cluster('a', 'two'), cluster('b', 'one'), cluster('c', 'three')])
    await to.addCluster(row);
  for (const id of ['kept', 'revoked']) await to.saveToken(token(id), []);
  expect(await surplusRows({ from, to })).toEqual(['token revoked', 'cluster three']);
  const vault = createVault(randomBytes(32));
  const copied = await copyCloud({ from, opener: vault, to, sealer: vault });
  expect(copied).toEqual({ clusters: 2, workloads: 0, policies: 0, tokens: 1 });
  expect(await to.clusters()).toEqual(await from.clusters());
  expect(await to.tokens()).toEqual(await from.tokens());
  expect(await surplusRows({ from, to })).toEqual([]);
});
