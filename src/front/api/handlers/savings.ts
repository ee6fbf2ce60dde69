// The handler of savings. It asks the owner, because the savings of sleeping workloads grow all the time.
import { CSV_TYPE, type savings } from '../../../api/savings.ts';
import { fail } from '../../../protocol/errors.ts';
import { isMonth, savingsCsv } from '../../../protocol/savings.ts';
import { savingsItem } from '../../views/savings_json.ts';
import { assertCluster } from '../cloud_rights.ts';
import type { HandlersOf } from '../handler.ts';
import { headersOf } from '../reply.ts';

const CSV_HEADERS = headersOf(CSV_TYPE);

function assertMonth(path: string, month: string | null): void {
  if (month === null || isMonth(month)) return;
  const message = `${path} must be a month such as 2026-11`;
  throw fail('invalid_spec', message, { details: [{ path, message }] });
}

export const savingsHandlers: HandlersOf<typeof savings> = {
  list: async (request) => {
    const { views } = request.app.cloud;
    const { cluster_id: clusterId, namespace: namespaces, from, to, format } = request.query;
    assertCluster(views, clusterId, request.principal);
    assertMonth('from', from);
    assertMonth('to', to);
    const rows = await request.app.ref('workloads').ask('savings', { clusterId, namespaces, from, to });
    const viewer = request.principal;
    const shown = viewer
      ? rows.filter((row) => viewer.mayInNamespace('viewer', row.clusterId, row.namespace))
      : rows;
    const items = shown.map((row) =>
      savingsItem(row, views.subject({ clusterId: row.clusterId }).cluster ?? ''),
    );
    const isCsv = format === 'csv' || (format === null && request.accept.includes('text/csv'));
    if (!isCsv) return items;
    request.headers = CSV_HEADERS;
    return Buffer.from(savingsCsv(items));
  },
};
