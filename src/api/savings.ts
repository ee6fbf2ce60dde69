// The operation of savings: docs/reference.md "Savings".
import { operationsOf } from './operation.ts';

const operation = operationsOf('savings');

/** The content type of savings as CSV. */
export const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

const month = (what: string) => ({ kind: 'word', summary: `${what}, such as 2026-11 (UTC)` }) as const;

export const savings = {
  list: operation({
    id: 'listSavings',
    kind: 'call',
    method: 'GET',
    path: '/k8s/savings',
    agentRight: 'never',
    summary: 'What workloads have saved while asleep, by month, cluster and namespace',
    query: {
      cluster_id: { kind: 'word', summary: 'Only those of this cluster' },
      namespace: { kind: 'list', summary: 'Only those of these namespaces' },
      from: month('Not before this month'),
      to: month('Not after this month'),
      format: {
        kind: 'word',
        of: ['json', 'csv'],
        summary: 'csv: as CSV, as with Accept: text/csv; default json',
      },
    },
    answer: 'SavingsList',
    errors: ['invalid_spec', 'unknown_cluster'],
    needs: 'cloud',
  }),
};
