// Rights by labels end with the labels: docs/reference.md "Roles and grants".
import { expect, it } from 'vitest';
import type { PrincipalsProtocol } from '../../../src/protocol/principals.ts';
import { tempDir } from '../../kit/actors.ts';
import { cloud, doubleWith, openCloudStore } from '../../kit/cloud.ts';
import type { Json } from '../../kit/kube_double.ts';

const BY = { who: 'token', from: '127.0.0.1', operationId: null };

it('a tether ends when its workload loses the label by which its owner has the right to it', async () => {
  const double = await doubleWith('hello');
  const label = (team: string): void =>
    double.change('Deployment', 'web', 'hello', (object: Json) => {
      object.metadata.labels = { team };
    });
  label('web');
  const { cloudStore: store } = openCloudStore(tempDir());
  const here = await cloud({ shared: store });
  const clusterId = await here.add(double.kubeconfig);
  const { id: workloadId } = here.find('web/hello');
  const principals = here.world.ref<PrincipalsProtocol>('principals');
  const { token } = await principals.ask('createToken', { name: 'ci', expiresAt: null, by: BY });
  const scope = { clusterId: null, namespace: null, labels: 'team=web' };
  const to = { kind: 'token', name: 'ci' } as const;
  await principals.ask('createGrant', { input: { to, role: 'waker', ...scope }, by: BY });
  const owners = [`token:${token.id}`];
  expect(await principals.ask('mayKeep', { owners, workloadId })).toEqual({ isAllowed: true });
  const tether = { id: 'T1', clusterId, workloadId, containerPort: 80, label: null, wake: true };
  await store.saveTether({ ...tether, owners, localPort: 1, active: true });
  label('hr');
  expect(await here.tethers.next('revoked')).toEqual({ ids: ['T1'] });
});
