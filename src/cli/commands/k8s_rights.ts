// berth k8s rights
import { defineCommand, flagOption } from '../kit/command.ts';
import { EXIT_CODE, UsageError } from '../kit/exit_codes.ts';
import { findCluster } from '../kit/k8s_lookup.ts';
import type { Column } from '../kit/output.ts';

interface RightRow {
  cluster: string;
  namespace: string | null;
  verb: string;
  resource: string;
  allowed: boolean;
  optional: boolean;
  without: string;
}

const styleOf = ({ allowed, optional }: RightRow) => (allowed ? 'green' : optional ? 'yellow' : 'red');

const COLUMNS: readonly Column<RightRow>[] = [
  { title: 'RIGHT', cell: ({ verb, resource }) => `${verb} ${resource}` },
  { title: 'NAMESPACE', cell: ({ namespace }) => namespace ?? '(all)' },
  { title: 'ALLOWED', cell: ({ allowed }) => (allowed ? 'yes' : 'no'), style: styleOf },
  { title: 'WITHOUT IT', cell: ({ without }) => without, canShrink: true },
];

export const clusterRightsCommand = defineCommand({
  about:
    'Asks each cluster what its account may do of what Berth uses, everywhere it looks for workloads. Ends ' +
    'with 1 if a right is missing that something needs.',
  args: [
    { syntax: '[clusters...]', about: 'the clusters, by name or id; default: all', completes: 'cluster' },
  ],
  options: { missing: flagOption('--missing', 'only those that are missing') },
  run: async ({ client, out }, references, { missing }) => {
    const daemon = await client();
    const all = await daemon.cloud.clusters();
    if (all.length === 0) throw new UsageError('there are no clusters', '`berth k8s add` registers one.');
    const chosen =
      references.length === 0 ? all : await Promise.all(references.map((one) => findCluster(daemon, one)));
    const rows: RightRow[] = [];
    for (const { id, name } of chosen)
      for (const right of (await daemon.cloud.rights(id)).rights) rows.push({ cluster: name, ...right });
    const shown = missing ? rows.filter(({ allowed }) => !allowed) : rows;
    const several = chosen.length > 1 ? [{ title: 'CLUSTER', cell: ({ cluster }: RightRow) => cluster }] : [];
    out.rows(shown, [...several, ...COLUMNS], 'No right is missing.');
    return rows.some(({ allowed, optional }) => !allowed && !optional) ? EXIT_CODE.failed : undefined;
  },
});
