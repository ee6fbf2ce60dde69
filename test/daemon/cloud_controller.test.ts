// Which threads the cloud part starts, and when.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { newChangePermit } from '../../src/adapters/change_permit.ts';
import { CloudController } from '../../src/daemon/cloud_controller.ts';
import type { ClustersProtocol } from '../../src/protocol/clusters.ts';
import { NO_QUOTAS } from '../../src/protocol/quotas.ts';
import type { ThreadsProtocol } from '../../src/protocol/threads.ts';
import { Failure } from '../../src/runtime/actor.ts';
import { loadSettings } from '../../src/settings/config.ts';
import { tempDir, world } from '../kit/actors.ts';

async function link() {
  const here = world();
  const clusters = await here.stand<ClustersProtocol>('clusters');
  const threads = {
    ensure: vi.fn(async () => {}),
    ensureFor: vi.fn(async () => {}),
    onRestarted: () => {},
    silenceOf: () => null,
    read: async () => [],
    stop: async () => [],
  };
  const cloud = new CloudController(here.node, threads, {
    changePermit: newChangePermit(true),
    keyFile: '',
    tetherPorts: [20_000, 20_001],
    sweepMs: 1_000,
    allowInCluster: false,
    databaseUrl: '',
    advertised: null,
    relay: null,
    remote: null,
    isServer: false,
    quotas: NO_QUOTAS,
  });
  await cloud.front(await loadSettings(undefined, { XDG_CONFIG_HOME: tempDir() }), 'token');
  return { cloud, clusters, threads, starter: here.ref<ThreadsProtocol>('threads') };
}

it('starts no thread if no cluster was ever registered', async () => {
  const { cloud, threads } = await link();
  cloud.resume(join(tempDir(), 'none'));
  expect(threads.ensure).not.toHaveBeenCalled();
});

it('starts the cloud thread if a cluster may be registered, and a tethers thread on request', async () => {
  const { cloud, clusters, threads, starter } = await link();
  const keyFile = join(tempDir(), 'key');
  writeFileSync(keyFile, '');
  cloud.resume(keyFile);
  await clusters.next('viewsReady');
  expect(threads.ensure.mock.calls).toEqual([['cloud']]);
  expect(threads.ensureFor).not.toHaveBeenCalled();
  expect(await starter.ask('ensure', { address: 'tether:T1' })).toBeNull();
  expect(threads.ensureFor.mock.calls).toEqual([['tether:T1']]);
  threads.ensureFor.mockRejectedValueOnce(new Failure('gone', 'tethers-0 died too often'));
  await expect(starter.ask('ensure', { address: 'tether:T1' })).rejects.toMatchObject({ code: 'gone' });
});
