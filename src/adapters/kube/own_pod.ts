// The pod in which Berth runs: its name, and the access to its cluster.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterAccess } from '../../protocol/clusters.ts';
import { hostInUrl } from '../url_host.ts';

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface OwnPod {
  namespace: string;
  name: string;
  /** As the service account, whose token is read from its file. */
  access: ClusterAccess;
}

/** undefined outside a pod, or in one without a service account. */
export function readOwnPod(
  env: Readonly<Record<string, string | undefined>>,
  folder = SERVICE_ACCOUNT_FOLDER,
): OwnPod | undefined {
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443';
  if (!host) return undefined;
  const address = `https://${hostInUrl(host)}:${port}`;
  if (!URL.canParse(address)) return undefined;
  try {
    return {
      namespace: readFileSync(join(folder, 'namespace'), 'utf8').trim(),
      name: env['HOSTNAME'] ?? '',
      access: {
        server: new URL(address).origin,
        ca: readFileSync(join(folder, 'ca.crt'), 'utf8'),
        tlsServerName: null,
        credential: { kind: 'pod' },
      },
    };
  } catch {
    return undefined;
  }
}
