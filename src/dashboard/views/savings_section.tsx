// What workloads saved while asleep, by month, cluster and namespace, and in total.
import { useEffect } from 'preact/hooks';
import type { Savings } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { savingsTexts } from '../../presentation/savings_text.ts';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { cloudError, savingsList, watchSavings } from '../state/cloud_data.ts';

const ROW_HEIGHT = 32;

const sum = (rows: readonly Savings[], of: (row: Savings) => number): number =>
  rows.reduce((total, row) => total + of(row), 0);

function Figure({ title, hours }: { title: string; hours: string }) {
  return (
    <div>
      <dt class="soft">{title}</dt>
      <dd class="number">{hours} h</dd>
    </div>
  );
}

/** The sums over all rows. */
function Totals({ rows }: { rows: readonly Savings[] }) {
  const { pods, cpu, memory } = savingsTexts({
    pod_seconds: sum(rows, (row) => row.pod_seconds),
    cpu_request_core_seconds: sum(rows, (row) => row.cpu_request_core_seconds),
    memory_request_byte_seconds: sum(rows, (row) => row.memory_request_byte_seconds),
  });
  return (
    <dl class="figures" aria-label="saved in all">
      <Figure title="Pods" hours={pods} />
      <Figure title="CPU cores" hours={cpu} />
      <Figure title="GiB of memory" hours={memory} />
    </dl>
  );
}

function SavingsRow({ row }: { row: Savings }) {
  const { pods, cpu, memory } = savingsTexts(row);
  return (
    <div class="table-row savings-row" data-namespace={row.namespace}>
      <span class="number soft">{row.month}</span>
      <span class="soft">{visibleLine(row.cluster)}</span>
      <span class="cell-name">{visibleLine(row.namespace)}</span>
      <span class="number cell-figure">{pods}</span>
      <span class="number cell-figure">{cpu}</span>
      <span class="number cell-figure">{memory}</span>
    </div>
  );
}

/** The savings of every workload. */
export function SavingsSection() {
  useEffect(watchSavings, []);
  const rows = savingsList.value;
  if (rows === null) return cloudError.value === '' ? <p class="empty soft">Reading …</p> : null;
  if (rows.length === 0)
    return (
      <p class="empty soft">
        Nothing is saved yet: counted is the time for which Berth itself has put a workload to sleep.
      </p>
    );
  return (
    <>
      <Totals rows={rows} />
      <div class="table-row table-head savings-row">
        <span>Month (UTC)</span>
        <span>Cluster</span>
        <span>Namespace</span>
        <span class="cell-figure">Pod hours</span>
        <span class="cell-figure">CPU hours</span>
        <span class="cell-figure">GiB hours</span>
      </div>
      <VirtualRows
        label="Savings"
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={({ month, cluster_id: id, namespace }) => `${month} ${id} ${namespace}`}
        row={(row) => <SavingsRow row={row} />}
      />
    </>
  );
}
