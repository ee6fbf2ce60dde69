// The operations of clusters: docs/reference.md "Endpoints".
import { operationsOf } from './operation.ts';

const operation = operationsOf('clusters');

export const clusters = {
  list: operation({
    id: 'listClusters',
    kind: 'read',
    method: 'GET',
    path: '/k8s/clusters',
    summary: 'Every registered cluster, oldest first',
    answer: 'ClusterList',
    needs: 'cloud',
  }),
  register: operation({
    id: 'registerCluster',
    kind: 'call',
    method: 'POST',
    path: '/k8s/clusters',
    summary: 'Register a cluster; no connection is made',
    status: 201,
    body: 'NewCluster',
    answer: 'ClusterAdded',
    errors: ['invalid_spec', 'name_in_use'],
    needs: 'cloud',
  }),
  read: operation({
    id: 'getCluster',
    kind: 'read',
    method: 'GET',
    path: '/k8s/clusters/{id}',
    summary: 'One cluster, with what is known of it and what the account may do',
    answer: 'ClusterDetail',
    missing: 'unknown_cluster',
    keyKind: 'id',
    needs: 'cloud',
  }),
  remove: operation({
    id: 'removeCluster',
    kind: 'call',
    method: 'DELETE',
    path: '/k8s/clusters/{id}',
    summary: 'Forget a cluster and close its tethers; its workloads are left as they are',
    answer: 'ClusterRemoved',
    errors: ['unknown_cluster'],
    keyKind: 'id',
    needs: 'cloud',
  }),
  sync: operation({
    id: 'syncCluster',
    kind: 'call',
    method: 'POST',
    path: '/k8s/clusters/{id}/sync',
    summary: 'List the Deployments and StatefulSets of a cluster, and watch them from now on',
    answer: 'Synced',
    errors: ['unknown_cluster', 'cluster_unreachable', 'cluster_denied'],
    keyKind: 'id',
    needs: 'cloud',
  }),
};
