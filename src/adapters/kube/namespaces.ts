// The namespaces of a cluster, by name.
import { isNamespace } from '../../protocol/names.ts';
import type { SleepAnnotations } from '../../protocol/policies.ts';
import type { Resource } from './kube_cluster.ts';
import { readSleepAnnotations } from './sleep_annotations.ts';
import { boundedText } from './untrusted_values.ts';
import { type V1Namespace, wire } from './wire_types.ts';

/** A namespace, with the sleep annotations for its workloads; null if none. */
export interface NamespaceRow {
  name: string;
  sleep: SleepAnnotations | null;
}

/** All namespaces. */
export const namespacesResource: Resource<NamespaceRow> = {
  collection: { of: 'namespaces' },
  description: 'namespaces',
  path: '/api/v1/namespaces',
  query: {},
  rowOf: (object) => {
    const metadata = wire<V1Namespace>(object)?.metadata;
    const name = boundedText(metadata?.name, 63);
    return isNamespace(name) ? { name, sleep: readSleepAnnotations(metadata?.annotations) } : undefined;
  },
};
