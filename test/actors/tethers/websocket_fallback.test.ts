// Tethers without SPDY: a real account that may get forwards, which is the right for WebSockets, but not
// create them, which is the right for SPDY.
import { beforeAll } from 'vitest';
import { api, describeReal, sandbox } from '../../kit/kube_real.ts';
import { field, podsOf, server } from './tether_kit.ts';
import { carriesAsAnyWay } from './transport_cases.ts';

describeReal('a tether over WebSockets', () => {
  const box = sandbox();
  const pods = podsOf(box, 'web');
  let token = '';

  beforeAll(async () => {
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${box.namespace}`;
    const accounts = `/api/v1/namespaces/${box.namespace}/serviceaccounts`;
    await api('POST', accounts, { metadata: { name: 'getter' } });
    await api('POST', `${rbac}/roles`, {
      metadata: { name: 'getter' },
      rules: [
        { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
        { apiGroups: [''], resources: ['pods/portforward'], verbs: ['get'] },
      ],
    });
    await api('POST', `${rbac}/rolebindings`, {
      metadata: { name: 'getter' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'getter' },
      subjects: [{ kind: 'ServiceAccount', name: 'getter', namespace: box.namespace }],
    });
    token = (await api('POST', `${accounts}/getter/token`, { spec: {} })).body.status.token;
    await box.create('Deployment', server('web', 1));
    await pods.ready(1);
  }, 60_000);

  carriesAsAnyWay((containerPort = 7000) => field({ sandbox: box, name: 'web', token, containerPort }), pods);
});
