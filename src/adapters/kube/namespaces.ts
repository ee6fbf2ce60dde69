// The namespaces of a cluster, by name.
import { isNamespace } from '../../protocol/names.ts';
import type { Resource } from './kube_cluster.ts';
import { boundedText } from './untrusted_values.ts';
import { type V1Namespace, wire } from './wire_types.ts';

/** The names of all namespaces. */
export const namespacesResource: Resource<string> = {
  description: 'namespaces',
  path: '/api/v1/namespaces',
  query: {},
  rowOf: (object) => {
    const name = boundedText(wire<V1Namespace>(object)?.metadata?.name, 63);
    return isNamespace(name) ? name : undefined;
  },
};
