// The operations of tethers: docs/reference.md "Endpoints".
import { operationsOf } from './operation.ts';

const operation = operationsOf('tethers');

export const tethers = {
  create: operation({
    id: 'createTether',
    kind: 'call',
    method: 'POST',
    path: '/k8s/workloads/{id}/tether',
    summary: 'Make a tether to a port of the workload; activate opens it',
    status: 201,
    body: 'NewTether',
    answer: 'TetherAdded',
    errors: ['invalid_spec', 'unknown_workload', 'port_in_use'],
    keyKind: 'id',
    needs: 'cloud',
  }),
  list: operation({
    id: 'listTethers',
    kind: 'read',
    method: 'GET',
    path: '/k8s/tethers',
    summary: 'Every tether, oldest first',
    answer: 'TetherList',
    needs: 'cloud',
  }),
  activate: operation({
    id: 'activateTether',
    kind: 'call',
    method: 'POST',
    path: '/k8s/tethers/{id}/activate',
    summary: 'Open the local port of a tether; harmless when it is open',
    answer: 'TetherActive',
    errors: ['unknown_tether', 'port_in_use'],
    keyKind: 'id',
    needs: 'cloud',
  }),
  deactivate: operation({
    id: 'deactivateTether',
    kind: 'call',
    method: 'POST',
    path: '/k8s/tethers/{id}/deactivate',
    summary: 'Close the connections and the local port of a tether; harmless when idle',
    answer: 'TetherIdle',
    errors: ['unknown_tether'],
    keyKind: 'id',
    needs: 'cloud',
  }),
  remove: operation({
    id: 'removeTether',
    kind: 'call',
    method: 'DELETE',
    path: '/k8s/tethers/{id}',
    summary: 'Close a tether and forget it',
    answer: 'TetherRemoved',
    errors: ['unknown_tether'],
    keyKind: 'id',
    needs: 'cloud',
  }),
};
