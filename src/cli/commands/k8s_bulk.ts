// Puts to sleep or wakes all workloads that a selector, namespaces or a cluster select:
// docs/reference.md "Bulk sleep and wake".
import { BerthError } from '../../client/errors.ts';
import { countText } from '../../presentation/format.ts';
import { batchReporter } from '../kit/batch.ts';
import { flagOption, listOption, textOption } from '../kit/command.ts';
import type { CommandContext } from '../kit/context.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import { createProgress } from '../kit/progress.ts';

export const bulkOptions = {
  namespace: listOption('-n, --namespace <names>', 'without names: all workloads of these namespaces'),
  selector: textOption(
    '-l, --selector <selector>',
    'without names: all with these labels, as app=web,tier!=db',
  ),
  dryRun: flagOption('--dry-run', 'without names: print which would be changed, and change nothing'),
};

export interface BulkOptions {
  cluster: string | undefined;
  namespace: readonly string[];
  selector: string | undefined;
  dryRun: boolean;
}

/** Whether options rather than names select the workloads. Throws a UsageError for both or neither. */
export function isBulk(
  names: readonly string[],
  { cluster, namespace, selector, dryRun }: BulkOptions,
): boolean {
  const isSelected = namespace.length > 0 || selector !== undefined;
  if (names.length > 0 && (isSelected || dryRun))
    throw new UsageError('--namespace, --selector and --dry-run are for many workloads, in place of names');
  if (names.length === 0 && !isSelected && cluster === undefined)
    throw new UsageError('name the workloads, or select them by --namespace, --selector or --cluster');
  return names.length === 0;
}

/** Puts all selected workloads to sleep, or wakes them, and prints a line for each. */
export async function changeMany(
  context: CommandContext,
  to: 'asleep' | 'awake',
  { cluster, namespace, selector, dryRun }: BulkOptions,
  hold?: number,
): Promise<number | undefined> {
  const client = await context.client();
  const cluster_id = cluster === undefined ? undefined : (await findCluster(client, cluster)).id;
  const selection = {
    ...(cluster_id === undefined ? {} : { cluster_id }),
    ...(namespace.length === 0 ? {} : { namespaces: [...namespace] }),
    ...(selector === undefined ? {} : { selector }),
    dry_run: dryRun,
  };
  const { results } = await (to === 'asleep'
    ? client.cloud.sleepMany({ ...selection, ...(hold === undefined ? {} : { hold }) })
    : client.cloud.wakeMany(selection));
  const report = batchReporter(context, createProgress(context.out));
  const done = to === 'asleep' ? 'is going to sleep' : 'is waking';
  for (const record of results) {
    const { outcome, replicas, code, message } = record;
    const name = `${record.kind.toLowerCase()}/${record.namespace}/${record.name}`;
    const count = countText(replicas ?? 0, 'replica');
    const text = {
      changed: to === 'asleep' ? done : `${done} with ${count}`,
      unchanged: to === 'asleep' ? 'is asleep already' : `is awake with ${count}`,
      would_change: to === 'asleep' ? `would sleep (has ${count})` : 'would wake',
    };
    if (outcome === 'failed') report.failed(name, new BerthError(code ?? 'failed', message ?? ''));
    else report.done(name, { record, text: text[outcome], isUnchanged: outcome === 'unchanged' });
  }
  if (results.length === 0) context.out.note('Nothing is selected.');
  return report.end();
}
