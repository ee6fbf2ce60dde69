// berth k8s savings
import type { Savings } from '../../client/records.ts';
import { savingsTexts } from '../../presentation/savings_text.ts';
import { isMonth, savingsCsv } from '../../protocol/savings.ts';
import { defineCommand, flagOption, listOption, textOption } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';

const COLUMNS: readonly Column<Savings>[] = [
  { title: 'MONTH', cell: ({ month }) => month },
  { title: 'CLUSTER', cell: ({ cluster }) => cluster, canShrink: true },
  { title: 'NAMESPACE', cell: ({ namespace }) => namespace, canShrink: true },
  { title: 'POD HOURS', cell: (row) => savingsTexts(row).pods, alignRight: true },
  { title: 'CPU HOURS', cell: (row) => savingsTexts(row).cpu, alignRight: true },
  { title: 'GIB HOURS', cell: (row) => savingsTexts(row).memory, alignRight: true },
];

function monthOf(option: string, text: string | undefined): string | undefined {
  if (text === undefined || isMonth(text)) return text;
  throw new UsageError(`${option} must be a month such as 2026-11`);
}

export const savingsCommand = defineCommand({
  about:
    'Prints what workloads have saved while they slept, by month (UTC), cluster and namespace: the hours of their pods, ' +
    'and those of the CPU cores and GiB of memory that these request. What sleeps now counts until now.',
  args: [],
  options: {
    cluster: textOption('--cluster <cluster>', 'only those of this cluster', 'cluster'),
    namespace: listOption('-n, --namespace <names>', 'only those of these namespaces'),
    from: textOption('--from <month>', 'not before this month, such as 2026-11'),
    to: textOption('--to <month>', 'not after this month'),
    csv: flagOption('--csv', 'as CSV, in seconds and bytes'),
  },
  examples: [
    ['berth k8s savings --from 2026-11', 'since November'],
    ['berth k8s savings --csv > savings.csv', 'for a spreadsheet'],
  ],
  run: async ({ client: connect, out }, _args, { cluster, namespace: namespaces, csv, ...given }) => {
    const from = monthOf('--from', given.from);
    const to = monthOf('--to', given.to);
    const client = await connect();
    const at = cluster === undefined ? undefined : (await findCluster(client, cluster)).id;
    const rows = await client.cloud.savings({ cluster: at, namespaces, from, to });
    if (csv) out.raw(savingsCsv(rows));
    else out.rows(rows, COLUMNS, 'No workload has slept yet.');
  },
});
