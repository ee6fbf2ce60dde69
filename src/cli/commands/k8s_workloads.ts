// berth k8s workloads, sleep, wake, auto-sleep
import type { Cluster, Workload } from '../../client/records.ts';
import { countText } from '../../presentation/format.ts';
import { WORKLOAD_STATES } from '../../protocol/workload_kinds.ts';
import { runBatch } from '../kit/batch.ts';
import {
  choiceOption,
  defineCommand,
  durationOption,
  listOption,
  negatedFlagOption,
  textOption,
} from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { formatElapsed } from '../kit/format.ts';
import { findCluster, findWorkload } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';
import { bulkOptions, changeMany, isBulk } from './k8s_bulk.ts';

const STATE_STYLES = { awake: 'green', sleeping: 'yellow', asleep: 'blue', waking: 'yellow' } as const;
const MINUTE_MS = 60_000;
const DEFAULT_WAKE_WAIT_MS = 300_000;

/** With several clusters, each row names its cluster. */
const columns = (clusters: readonly Cluster[], isWide: boolean): readonly Column<Workload>[] => [
  ...(clusters.length > 1 || isWide ? [clusterColumn(clusters)] : []),
  ...COLUMNS,
];

const clusterColumn = (clusters: readonly Cluster[]): Column<Workload> => ({
  title: 'CLUSTER',
  cell: ({ cluster_id }) => clusters.find(({ id }) => id === cluster_id)?.name ?? cluster_id,
});

const COLUMNS: readonly Column<Workload>[] = [
  { title: 'NAMESPACE', cell: ({ namespace }) => namespace, canShrink: true },
  { title: 'NAME', cell: ({ name }) => name, canShrink: true },
  { title: 'KIND', cell: ({ kind }) => kind },
  { title: 'STATE', cell: ({ state }) => state, style: ({ state }) => STATE_STYLES[state] },
  {
    title: 'READY',
    cell: ({ ready_replicas, replicas }) => `${ready_replicas}/${replicas}`,
    alignRight: true,
  },
  {
    title: 'AUTO-SLEEP',
    cell: (one) => (one.auto_sleep_enabled ? `after ${one.idle_timeout_minutes} min` : 'off'),
  },
  { title: 'LAST USE', cell: ({ last_activity_at }) => formatElapsed(last_activity_at), alignRight: true },
  { title: 'WAKES TO', cell: ({ desired_replicas }) => desired_replicas, alignRight: true, wideOnly: true },
  {
    title: 'REASON',
    cell: ({ sleep_reason, wake_reason }) => sleep_reason ?? wake_reason,
    wideOnly: true,
  },
  { title: 'STALE', cell: ({ stale_since }) => formatElapsed(stale_since), alignRight: true, wideOnly: true },
  { title: 'ID', cell: ({ id }) => id, wideOnly: true },
];

const clusterOption = textOption('--cluster <cluster>', 'only workloads of this cluster', 'cluster');
const workloadsArgument = {
  syntax: '[workloads...]',
  about: 'by name, namespace/name, kind/name or id',
  completes: 'workload',
} as const;

/** What a list without workloads says. */
function emptyText(hasClusters: boolean, isSelection: boolean): string {
  if (!hasClusters) return 'There are no clusters. `berth k8s add` registers one.';
  return isSelection
    ? 'No workload is selected.'
    : 'There are no workloads. `berth k8s sync` discovers those of your clusters.';
}

/** Names the clusters whose workloads may have changed since they were last seen, with the oldest time. */
function noteStale(context: CommandContext, clusters: readonly Cluster[], shown: readonly Workload[]): void {
  for (const { id, name } of clusters) {
    const times = shown.flatMap((one) => (one.cluster_id === id && one.stale_since ? one.stale_since : []));
    const [oldest] = times.sort((one, other) => Date.parse(one) - Date.parse(other));
    if (oldest !== undefined)
      context.out.note(`Workloads of ${name} are shown as they were ${formatElapsed(oldest)} ago.`);
  }
}

export const workloadListCommand = defineCommand({
  options: {
    cluster: clusterOption,
    namespace: listOption('-n, --namespace <names>', 'only workloads of these namespaces'),
    selector: textOption(
      '-l, --selector <selector>',
      'only workloads with these labels, as app=web,tier!=db',
    ),
    state: choiceOption('--state <state>', 'only workloads in this state', WORKLOAD_STATES),
  },
  run: async (context, _names, { cluster, namespace, selector, state }) => {
    const client = await context.client();
    const clusters = await client.cloud.clusters();
    const only = cluster === undefined ? undefined : await findCluster(client, cluster);
    const isSelection = namespace.length > 0 || selector !== undefined || state !== undefined;
    const shown = await client.cloud.workloads({
      cluster: only?.id,
      namespaces: namespace,
      states: state && [state],
      selector,
    });
    context.out.rows(
      shown,
      columns(only ? [only] : clusters, context.out.format === 'wide'),
      emptyText(clusters.length > 0, isSelection),
    );
    noteStale(context, clusters, shown);
  },
});

export const sleepCommand = defineCommand({
  about:
    'Saves the replica count in the workload itself. Leaves alone a workload that already sleeps. ' +
    'Without names, all workloads of --namespace, --selector and --cluster.',
  args: [workloadsArgument],
  options: {
    cluster: clusterOption,
    ...bulkOptions,
    hold: durationOption('--hold <time>', 'for so long no connection through a tether wakes it'),
  },
  run: async (context, names, { hold, ...selection }) => {
    if (isBulk(names, selection)) return changeMany(context, 'asleep', selection, hold);
    const { cluster } = selection;
    const client = await context.client();
    return runBatch(context, { names }, 'putting to sleep', async (reference) => {
      const { id, name, replicas } = await findWorkload(client, reference, cluster);
      const answer = await client.cloud.sleep(id, { hold });
      const text = `is going to sleep (had ${countText(replicas, 'replica')})`;
      return {
        record: { id, name, ...answer },
        text: replicas === 0 ? 'is asleep already' : text,
        isUnchanged: replicas === 0,
      };
    });
  },
});

export const wakeCommand = defineCommand({
  about:
    'Restores the saved replica count, or 1 if none is saved. Returns once one pod is ready. ' +
    'Without names, all workloads of --namespace, --selector and --cluster, without waiting for pods.',
  args: [workloadsArgument],
  options: {
    cluster: clusterOption,
    ...bulkOptions,
    wait: negatedFlagOption('--no-wait', 'return at once'),
    timeout: durationOption('--timeout <time>', 'time to wait for a ready pod; default 5m'),
  },
  run: async (context, names, { wait, timeout = DEFAULT_WAKE_WAIT_MS, ...selection }) => {
    if (isBulk(names, selection)) return changeMany(context, 'awake', selection);
    const { cluster } = selection;
    const client = await context.client();
    return runBatch(context, { names }, 'waking', async (reference) => {
      const { id, name } = await findWorkload(client, reference, cluster);
      const answer = await client.cloud.wake(id, wait ? { wait, timeout } : {});
      return {
        record: { id, name, ...answer },
        text: `is ${wait ? 'awake' : 'waking'} with ${countText(answer.replicas, 'replica')}`,
      };
    });
  },
});

export const autoSleepCommand = defineCommand({
  about: 'A workload is put to sleep once nothing has passed through its tethers for the given time.',
  args: [
    { syntax: '<workload>', about: 'by name, namespace/name, kind/name or id', completes: 'workload' },
    { syntax: '[switch]', about: 'on or off', completes: ['on', 'off'] },
  ],
  options: {
    cluster: clusterOption,
    after: durationOption('--after <time>', 'idle time, in whole minutes such as 30m'),
  },
  examples: [['berth k8s auto-sleep shop/web on --after 45m', 'sleep after 45 idle minutes']],
  run: async (context, [reference = '', asked], { cluster, after }) => {
    if (asked !== undefined && asked !== 'on' && asked !== 'off')
      throw new UsageError(`say on or off, not ${asked}`);
    if (after !== undefined && (after < MINUTE_MS || after % MINUTE_MS !== 0)) {
      throw new UsageError('--after must be whole minutes, such as 30m');
    }
    const client = await context.client();
    const { id, name } = await findWorkload(client, reference, cluster);
    const settings = {
      ...(asked === undefined ? {} : { auto_sleep_enabled: asked === 'on' }),
      ...(after === undefined ? {} : { idle_timeout_minutes: after / MINUTE_MS }),
    };
    const isChange = Object.keys(settings).length > 0;
    const now = await (isChange ? client.cloud.setAutoSleep(id, settings) : client.cloud.autoSleep(id));
    const text = now.auto_sleep_enabled
      ? `sleeps after ${now.idle_timeout_minutes} idle minutes`
      : 'is never put to sleep by itself';
    context.out.record({ id, name, ...now }, () => `${name} ${text}`);
  },
});
