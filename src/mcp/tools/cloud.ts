// Tools for workloads in Kubernetes.
import { z } from '../../adapters/zod.ts';
import { TetherActive } from '../../api/tethers_shapes.ts';
import { Replicas, Workload } from '../../api/workloads_shapes.ts';
import { durationMs, linesOf } from '../fields.ts';
import { defineTool, inputShape } from '../tool.ts';

const workloadId = z.string().min(1).describe('Its id, from `workloads`');

const workloads = defineTool({
  name: 'workloads',
  title: 'List workloads',
  description: 'The Deployments and StatefulSets of the registered Kubernetes clusters, with their replicas.',
  effect: 'reads',
  isRepeatable: true,
  operations: ['listWorkloads'],
  input: inputShape({ cluster_id: z.string().optional().describe('Only those of this cluster') }),
  output: z.object({ workloads: z.array(Workload) }),
  run: async ({ client, signal }, { cluster_id: cluster }) => ({
    workloads: await client.cloud.workloads({ cluster, signal }),
  }),
  text: ({ workloads: found }) =>
    linesOf(
      found,
      ({ id, namespace, name, state, replicas }) =>
        `${id} ${namespace}/${name}  ${state}, ${replicas} replicas`,
      'There are no workloads. `berth k8s add` registers a cluster.',
    ),
});

const sleep = defineTool({
  name: 'workload_sleep',
  title: 'Put a workload to sleep',
  description: 'Saves the replica count of a workload and scales it to 0. Harmless when it is asleep.',
  effect: 'ends',
  isRepeatable: true,
  operations: ['sleepWorkload'],
  input: inputShape({
    id: workloadId,
    hold: durationMs('For so long no connection through a tether wakes it'),
  }),
  output: Replicas,
  run: ({ client, signal }, { id, hold }) => client.cloud.sleep(id, { hold, signal }),
  text: (_answer, { id }) => `${id} sleeps.`,
});

const wake = defineTool({
  name: 'workload_wake',
  title: 'Wake a workload',
  description: 'Restores the saved replica count of a workload. Harmless when it is awake.',
  effect: 'changes',
  isRepeatable: true,
  operations: ['wakeWorkload'],
  input: inputShape({
    id: workloadId,
    wait: z.boolean().optional().describe('true: return when a pod is Ready'),
    timeout: durationMs('How long to wait for that'),
  }),
  output: Replicas,
  run: ({ client, signal }, { id, wait, timeout }) => client.cloud.wake(id, { wait, timeout, signal }),
  text: ({ replicas }, { id }) => `${id} has ${replicas} replicas.`,
  progress: async (_call, { id }) => `waiting for a pod of ${id}`,
});

const open = defineTool({
  name: 'tether_open',
  title: 'Open a tether',
  description:
    'A local port that leads to a port of a workload; a connection to it wakes the workload. Answers with ' +
    'the local port. A tether that is there already and has default settings is used again.',
  effect: 'changes',
  isRepeatable: true,
  operations: ['listTethers', 'createTether', 'activateTether'],
  input: inputShape({
    workload_id: workloadId,
    container_port: z.int().min(1).max(65_535).describe('The port in the pod'),
    label: z.string().optional().describe('A name for people'),
  }),
  output: TetherActive,
  run: async ({ client: { cloud }, signal }, { workload_id, ...tether }) => {
    const known = (await cloud.tethers({ signal })).find(
      (one) =>
        one.workload_id === workload_id &&
        one.container_port === tether.container_port &&
        (tether.label === undefined || one.label === tether.label) &&
        // Another one may lead elsewhere, or nowhere while the workload sleeps.
        one.wake &&
        one.pod === null &&
        !one.allow_not_ready,
    );
    const { tether_id } = known ?? (await cloud.tether(workload_id, tether, { signal }));
    return cloud.activate(tether_id, { signal });
  },
  text: ({ local_port }) => `127.0.0.1:${local_port} leads to the workload.`,
});

export const CLOUD_TOOLS = [workloads, sleep, wake, open];
