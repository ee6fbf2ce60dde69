// One workload: its state with the reason, its actions, what decides on its sleep, its tethers and events.
import { useEffect, useState } from 'preact/hooks';
import type { CloudEvent, Workload } from '../../client/browser.ts';
import { cloudEventParts } from '../../presentation/cloud_event_text.ts';
import { visibleLine, whenText } from '../../presentation/format.ts';
import { nextSwitchText, whoDecides } from '../../presentation/policy_text.ts';
import { StateLabel, StateShape } from '../frame/status_mark.tsx';
import { clusterNames, tetherList, watchWorkload, workloadPages } from '../state/cloud_data.ts';
import { linkTo } from '../state/place.ts';
import { client, errorText } from '../state/session.ts';
import { tenSeconds } from '../state/ticker.ts';
import { openNamespaceOf } from '../state/workload_tree.ts';
import { cloudEventState } from './cloud_events_list.tsx';
import { type Fact, FactCard } from './fact_card.tsx';
import { tetherAddress } from './tether_section.tsx';
import { AutoSleep, agoText, SwitchButton } from './workload_rows.tsx';

const EVENTS_SHOWN = 30;

/** Why the workload has its state, and whether what is shown may be out of date. */
function Why({ workload }: { workload: Workload }) {
  const { state, sleep_reason: slept, wake_reason: woke, stale_since: stale } = workload;
  const reason = (state === 'awake' || state === 'waking' ? woke : null) ?? slept;
  if (reason === null && stale === null) return null;
  return (
    <div class="why">
      {reason !== null && <p>{visibleLine(reason)}</p>}
      {stale !== null && (
        <p class="bad">Its cluster has not been watched since {whenText(stale, tenSeconds.value)}.</p>
      )}
    </div>
  );
}

function factsOf(workload: Workload): Fact[] {
  const { kind, namespace, cluster_id: cluster, replicas, ready_replicas: ready } = workload;
  const { desired_replicas: saved, managed_by: managers, after, policy } = workload;
  const next = nextSwitchText(workload, tenSeconds.value);
  const faults = [...(policy?.faults ?? []), ...(after?.faults ?? [])];
  return [
    ['Kind', kind],
    ['Cluster', visibleLine(clusterNames.value.get(cluster) ?? cluster)],
    ['Namespace', visibleLine(namespace)],
    ['Replicas', `${replicas}, ${ready} ready`],
    replicas === 0 && saved !== null && ['Wakes with', saved],
    ['Last activity', agoText(workload.last_activity_at)],
    ['Auto-sleep', <AutoSleep key="auto-sleep" workload={workload} />],
    next !== '' && ['Next switch', visibleLine([next, whoDecides(workload)].filter(Boolean).join(', '))],
    after !== null && ['Woken after', visibleLine(after.workloads.join(', '))],
    ...managers.map(({ tool, settings }): Fact => {
      return ['Managed by', visibleLine(`${tool}. To let it sleep: ${settings}`)];
    }),
    faults.length > 0 && [
      'Warnings',
      <span key="faults" class="bad">
        {visibleLine(faults.join('; '))}
      </span>,
    ],
  ];
}

function Tethers({ id }: { id: string }) {
  const own = tetherList.value.filter(({ workload_id: of }) => of === id);
  return (
    <section class="card" aria-labelledby="tethers-title">
      <h2 id="tethers-title">Tethers</h2>
      {own.length === 0 && <p class="soft">None.</p>}
      {own.map((tether) => (
        <div key={tether.tether_id} class="event-row">
          <StateLabel state={tether.state} />
          <span class="number">{tetherAddress(tether)}</span>
          <span class="soft">{visibleLine(tether.label ?? '')}</span>
        </div>
      ))}
    </section>
  );
}

/** The newest events of a workload, read again when its state changes. null: not read yet. */
function useEvents({ id, state }: Workload) {
  const [events, setEvents] = useState<readonly CloudEvent[] | string | null>(null);
  useEffect(() => {
    const end = new AbortController();
    const { signal } = end;
    const ask = async (): Promise<void> => {
      for await (const page of client.cloud.historyPages({ workload: id, limit: EVENTS_SHOWN, signal })) {
        setEvents(page);
        break;
      }
    };
    ask().catch((error: unknown) => {
      if (!signal.aborted) setEvents(errorText(error));
    });
    return () => end.abort();
  }, [id, state]);
  return events;
}

function OwnEvents({ workload }: { workload: Workload }) {
  const events = useEvents(workload);
  return (
    <section class="card" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      {events === null && <p class="soft">Reading …</p>}
      {events?.length === 0 && <p class="soft">Nothing yet.</p>}
      {typeof events === 'string' && <p class="bad">{visibleLine(events)}</p>}
      {Array.isArray(events) && events.map((event) => <OwnEvent key={event.id} event={event} />)}
    </section>
  );
}

const OwnEvent = ({ event }: { event: CloudEvent }) => (
  <div class="event-row" data-type={event.type}>
    <time class="soft number" dateTime={event.at}>
      {whenText(event.at, tenSeconds.value)}
    </time>
    <StateShape state={cloudEventState(event)} />
    <span class="cloud-event-type">{visibleLine(event.type)}</span>
    <span class="event-text soft">{visibleLine(cloudEventParts(event).join(' '))}</span>
  </div>
);

function Missing() {
  return (
    <p class="empty">
      {workloadPages.isWhole.value ? 'There is no such workload. It may have been removed.' : 'Reading …'}{' '}
      <a href={linkTo('cloud')}>All workloads</a>
    </p>
  );
}

/** The view of the workload `id`. */
export function WorkloadDetails({ id }: { id: string }) {
  const workload = workloadPages.rows.value.find((one) => one.id === id);
  useEffect(() => watchWorkload(id), [id]);
  useEffect(() => {
    if (workload) openNamespaceOf(workload);
  }, [id, workload === undefined]);
  if (!workload) return <Missing />;
  return (
    <>
      <header class="view-head">
        <h1 id="view-title">{visibleLine(workload.name)}</h1>
        <StateLabel state={workload.state} />
        <a class="head-place" href={linkTo('cloud', null, { q: workload.namespace })}>
          {visibleLine(workload.namespace)}
        </a>
        <div class="actions">
          <SwitchButton workload={workload} keyHint />
        </div>
      </header>
      <div class="view-body">
        <Why workload={workload} />
        <div class="columns">
          <FactCard facts={factsOf(workload)} />
          <Tethers id={id} />
          <OwnEvents workload={workload} />
        </div>
      </div>
    </>
  );
}
