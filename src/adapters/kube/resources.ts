// The resources by the names of their collections, under which other threads ask for them.
import type { Collection } from '../../protocol/cluster_calls.ts';
import { type Resource, workloadsResource } from './kube_cluster.ts';
import { namespacesResource } from './namespaces.ts';
import { podsResource } from './pods.ts';
import { replicaSetsResource } from './replica_sets.ts';
import { warningsResource } from './workload_events.ts';

/** The resource whose `collection` this is. */
export function resourceOf(collection: Collection): Resource<object> {
  switch (collection.of) {
    case 'workloads':
      return workloadsResource(collection.kind, collection.namespace);
    case 'namespaces':
      return namespacesResource;
    case 'pods':
      return podsResource(collection.workload);
    case 'replicasets':
      return replicaSetsResource(collection.workload);
    case 'events':
      return warningsResource(collection.namespace, collection.kind, collection.name);
  }
}
