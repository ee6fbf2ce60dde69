// The rows of workloads in the list at the left.
import { useEffect } from 'preact/hooks';
import type { Workload } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { clusterList, watchWorkload, workloadPages } from '../state/cloud_data.ts';
import { keptSearch, linkTo } from '../state/place.ts';
import { selectedWorkloadId, toggleNamespace, type WorkloadTreeRow } from '../state/workload_tree.ts';
import { ClippedName } from './clipped_name.tsx';
import { Icon } from './icon.tsx';
import { StateShape } from './status_mark.tsx';

type RowOf<Kind> = Extract<WorkloadTreeRow, { kind: Kind }>;

function AwakeCount({ awake, all }: { awake: number; all: number }) {
  return (
    <span class="soft number" title="awake of all">
      {awake}/{all}
      {!workloadPages.isWhole.value && ' …'}
    </span>
  );
}

const WorkloadsHead = ({ awake, all }: RowOf<'workloads'>) => (
  <div class="section-head">
    <h2>Workloads</h2>
    <AwakeCount awake={awake} all={all} />
  </div>
);

function NamespaceRow({ group: { key, namespace, cluster, workloads }, awake, isOpen }: RowOf<'namespace'>) {
  const isOfMany = (clusterList.value?.length ?? 0) > 1;
  return (
    <button
      type="button"
      class="list-row namespace-row"
      aria-expanded={isOpen}
      data-namespace={namespace}
      title={visibleLine(`${namespace} in ${cluster}`)}
      onClick={() => toggleNamespace(key)}
    >
      <Icon name="chevron" />
      <span class="row-name">{visibleLine(namespace)}</span>
      {isOfMany && <span class="soft row-cluster">{visibleLine(cluster)}</span>}
      <AwakeCount awake={awake} all={workloads.length} />
    </button>
  );
}

/** The ready of all replicas of a workload that is awake, or the word of its state. */
function WorkloadState({ workload: { state, ready_replicas: ready, replicas } }: { workload: Workload }) {
  if (state !== 'awake') return <span class="soft row-usage">{state}</span>;
  return (
    <>
      <span class="hidden-text">{state}</span>
      <span class="soft number row-usage" title="ready of all replicas">
        {ready}/{replicas}
      </span>
    </>
  );
}

function WorkloadItem({ workload }: { workload: Workload }) {
  const { id, name, namespace, state, stale_since: stale } = workload;
  useEffect(() => watchWorkload(id), [id]);
  return (
    <a
      class="list-row workload-item"
      href={linkTo('cloud', id, keptSearch())}
      aria-current={selectedWorkloadId.value === id ? 'page' : undefined}
      data-name={name}
      title={visibleLine(`${namespace}/${name}: ${state}`)}
    >
      <StateShape state={state} />
      <span class="row-name">
        <ClippedName name={visibleLine(name)} />
      </span>
      {stale !== null && <span class="soft row-usage">stale</span>}
      <WorkloadState workload={workload} />
    </a>
  );
}

/** A row of workloads. */
export function WorkloadTree({ row }: { row: WorkloadTreeRow }) {
  if (row.kind === 'workloads') return <WorkloadsHead {...row} />;
  if (row.kind === 'namespace') return <NamespaceRow {...row} />;
  return <WorkloadItem workload={row.workload} />;
}
