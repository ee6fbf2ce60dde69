// berth k8s tether, tethers, untether
import { isBerthError } from '../../client/errors.ts';
import type { Tether } from '../../client/records.ts';
import { TETHER } from '../../settings/cloud_limits.ts';
import { runBatch } from '../kit/batch.ts';
import { defineCommand, durationOption, flagOption, negatedFlagOption, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findTether, findWorkload, tetheredWorkload, workloadName } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';
import { tetherRemotely } from './k8s_tether_remote.ts';

type TetherRow = Tether & { fullName: string };

const COLUMNS: readonly Column<TetherRow>[] = [
  {
    title: 'ADDRESS',
    cell: ({ local_port, previous_port }) =>
      local_port === null
        ? ''
        : `localhost:${local_port}${previous_port === null ? '' : ` (was ${previous_port})`}`,
  },
  {
    title: 'STATE',
    cell: ({ state }) => state,
    style: ({ state }) => (state === 'active' ? 'green' : 'dim'),
  },
  { title: 'WORKLOAD', cell: ({ fullName, pod }) => (pod === null ? fullName : `${fullName} (${pod})`) },
  { title: 'POD PORT', cell: ({ container_port }) => container_port, alignRight: true },
  { title: 'LABEL', cell: ({ label }) => label },
  { title: 'OPEN', cell: ({ connections }) => connections, alignRight: true },
  { title: 'IN', cell: ({ bytes_in }) => bytes_in, alignRight: true, wideOnly: true },
  { title: 'OUT', cell: ({ bytes_out }) => bytes_out, alignRight: true, wideOnly: true },
  { title: 'ID', cell: ({ tether_id }) => tether_id, wideOnly: true },
  { title: 'LAST ERROR', cell: ({ last_error }) => last_error },
];

export const tetherCommand = defineCommand({
  about:
    'Forwards every connection on the local port to a ready pod, and wakes the workload if it sleeps. The ' +
    'tether stays, across restarts of the daemon, until `berth k8s untether` closes it. Any program on ' +
    'this machine can connect to the port.',
  args: [
    { syntax: '<workload>', about: 'by name, namespace/name, kind/name or id', completes: 'workload' },
    { syntax: '<port>', about: 'the port in the pod' },
  ],
  options: {
    cluster: textOption('--cluster <cluster>', 'only workloads of this cluster', 'cluster'),
    label: textOption('--label <text>', 'name of the tether'),
    wake: negatedFlagOption('--no-wake', 'do not wake the workload on a connection'),
    pod: textOption('--pod <name>', 'only this pod of a StatefulSet'),
    notReady: flagOption('--allow-not-ready', 'use a running pod while none is ready'),
    halfClosedTimeout: durationOption(
      '--half-closed-timeout <duration>',
      'how long a pod may be silent after the client has half-closed; default 60s',
    ),
    remote: textOption(
      '--remote <url>',
      'to a workload of the Berth there, without a daemon, until Ctrl-C; its token: BERTH_REMOTE_TOKEN',
    ),
  },
  examples: [
    ['curl "$(berth k8s tether shop/web 8080)/"', 'stdout is only the address'],
    ['berth k8s tether --remote https://berth.example.com shop/db 5432', 'without a daemon'],
  ],
  run: async (
    context,
    [reference = '', port = ''],
    { cluster, label, wake, pod, notReady, halfClosedTimeout, remote },
  ) => {
    const number = /^\d+$/.test(port) ? Number(port) : 0;
    if (number < 1 || number > 65535) throw new UsageError(`the port must be from 1 to 65535, not ${port}`);
    if (remote !== undefined) {
      const halfClosedTimeoutMs = halfClosedTimeout ?? TETHER.halfClosedTimeoutMs;
      const way = { wake, pod: pod ?? null, allowNotReady: notReady, halfClosedTimeoutMs };
      const input = { reference, cluster, containerPort: number, label: label ?? null, ...way };
      return tetherRemotely(context, remote, input);
    }
    const client = await context.client();
    const workload = await findWorkload(client, reference, cluster);
    const { tether_id } = await client.cloud.tether(workload.id, {
      container_port: number,
      wake,
      ...(label === undefined ? {} : { label }),
      ...(pod === undefined ? {} : { pod }),
      ...(notReady ? { allow_not_ready: true } : {}),
      ...(halfClosedTimeout === undefined ? {} : { half_closed_timeout: halfClosedTimeout }),
    });
    const open = await client.cloud.activate(tether_id);
    if (!context.out.isData) {
      context.out.note(
        `${workloadName(workload)} port ${number} is at localhost:${open.local_port}; ` +
          `\`berth k8s untether ${open.local_port}\` closes it`,
      );
    }
    context.out.record(
      { ...open, workload_id: workload.id, container_port: number },
      () => `localhost:${open.local_port}`,
    );
  },
});

/** Ignores errors of the Berth that holds the workloads: the list of tethers works without workload names. */
function withoutNames(error: unknown): [] {
  if (isBerthError(error) && error.code.startsWith('remote_')) return [];
  throw error;
}

export const tetherListCommand = defineCommand({
  run: async (context) => {
    const client = await context.client();
    const tethers = await client.cloud.tethers();
    const empty = 'There are no tethers. `berth k8s tether` opens one.';
    if (context.out.isData || tethers.length === 0) {
      context.out.rows(tethers, [], empty);
      return;
    }
    const workloads = await client.cloud.workloads().catch(withoutNames);
    const named = (one: Tether): string => {
      const workload = tetheredWorkload(one, workloads);
      return workload ? workloadName(workload) : one.workload_id;
    };
    context.out.rows(
      tethers.map((one) => ({ ...one, fullName: named(one) })),
      COLUMNS,
      empty,
    );
  },
});

export const untetherCommand = defineCommand({
  about: 'Closes open connections and frees the local port.',
  args: [{ syntax: '<tethers...>', about: 'by local port, label, workload or id', completes: 'tether' }],
  run: async (context, tethers) => {
    const client = await context.client();
    return runBatch(context, { names: tethers }, 'closing', async (reference) => {
      const { tether_id } = await findTether(client, reference);
      await client.cloud.deactivate(tether_id);
      await client.cloud.removeTether(tether_id);
      return { record: { tether_id, removed: true }, text: 'is closed' };
    });
  },
});
