// Service accounts of the real cluster, with rights in one namespace.
import { parseKubeconfig } from '../../src/adapters/kube/kubeconfig.ts';
import { api, create, kubeconfig } from './kube_real.ts';

/** A kubeconfig of the real server for `token`; `namespace` is that of its context. */
export function kubeconfigFor(token: string, namespace?: string): string {
  const { server, ca } = parseKubeconfig(kubeconfig(), Date.now());
  const authority = ca ? { 'certificate-authority-data': Buffer.from(ca).toString('base64') } : {};
  return JSON.stringify({
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a', namespace } }],
    clusters: [{ name: 'a', cluster: { server, ...authority } }],
    users: [{ name: 'a', user: { token } }],
  });
}

export interface ServiceAccount {
  token: string;
  /** Ends the account, and with it the token; the API server notices within seconds. */
  end(): Promise<void>;
}

/** A new account with the rights of `edit`, or with those of `rules`; it ends with the test. */
export async function serviceAccount(
  namespace: string,
  name: string,
  rules?: readonly object[],
): Promise<ServiceAccount> {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const rights = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await create(accounts, { metadata: { name } });
  if (rules) await create(`${rights}/roles`, { metadata: { name }, rules });
  const role = rules ? { kind: 'Role', name } : { kind: 'ClusterRole', name: 'edit' };
  await create(`${rights}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...role },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
  const { body } = await api('POST', `${accounts}/${name}/token`, { spec: {} });
  return {
    token: body.status.token,
    end: async () => void (await api('DELETE', `${accounts}/${name}`)),
  };
}
