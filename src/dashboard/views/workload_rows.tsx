// Workloads by namespace: their replicas, when they were last used, and their sleep.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Workload } from '../../client/browser.ts';
import { countText, spanText, visibleLine } from '../../presentation/format.ts';
import { nextSwitchText, whoDecides } from '../../presentation/policy_text.ts';
import { wordsOfSearch } from '../../presentation/sections.ts';
import {
  countInState,
  foundWorkloads,
  type WorkloadGroup,
  workloadGroupsOf,
} from '../../presentation/workload_groups.ts';
import { requestWorkloadAction } from '../frame/action_question.tsx';
import { Button } from '../frame/button.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { underWay } from '../state/actions.ts';
import {
  changeCloud,
  clusterNames,
  watchWorkload,
  workloadActionTitle,
  workloadPages,
} from '../state/cloud_data.ts';
import { linkTo, setFilter, shownPlace } from '../state/place.ts';
import { client } from '../state/session.ts';
import { tenSeconds } from '../state/ticker.ts';

const ROW_HEIGHT = 36;
const STATES: readonly Workload['state'][] = ['awake', 'waking', 'sleeping', 'asleep'];

/** How long ago `time` was; `never` for null. */
export const agoText = (time: string | null): string =>
  time === null ? 'never' : `${spanText(tenSeconds.value - Date.parse(time))} ago`;

interface AutoSleepSettings {
  auto_sleep_enabled?: boolean;
  idle_timeout_minutes?: number;
}

/** The auto-sleep of a workload, which a person can change. */
export function AutoSleep({ workload }: { workload: Workload }) {
  const { id, auto_sleep_enabled: isOn, idle_timeout_minutes: minutes } = workload;
  const name = `${workload.namespace}/${workload.name}`;
  // Shown until the cloud has it, so that the controls do not jump back and forth.
  const [asked, setAsked] = useState<AutoSleepSettings>({});
  // What is typed stays until it is entered, however often the workload is read meanwhile.
  const [typed, setTyped] = useState<string | null>(null);
  const set = async (what: string, settings: AutoSleepSettings): Promise<void> => {
    setAsked(settings);
    // The title names the setting, because one under way would swallow the other.
    await changeCloud(`${what} of ${name}`, () => client.cloud.setAutoSleep(id, settings));
    setAsked((now) => (now === settings ? {} : now));
  };
  return (
    <span class="auto-sleep">
      <input
        type="checkbox"
        aria-label={`auto-sleep of ${name}`}
        checked={asked.auto_sleep_enabled ?? isOn}
        onChange={(event) => void set('auto-sleep', { auto_sleep_enabled: event.currentTarget.checked })}
      />
      <input
        type="number"
        class="field number"
        aria-label={`minutes until ${name} sleeps`}
        min={1}
        value={typed ?? asked.idle_timeout_minutes ?? minutes}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onBlur={() => setTyped(null)}
        onChange={(event) => {
          setTyped(null);
          void set('minutes', { idle_timeout_minutes: event.currentTarget.valueAsNumber });
        }}
      />
      <span class="soft">min</span>
    </span>
  );
}

/** When policies or annotations next switch the workload, who decides, and what is wrong with that. */
function NextSwitch({ workload }: { workload: Workload }) {
  const faults = workload.policy?.faults ?? [];
  const text = nextSwitchText(workload, tenSeconds.value);
  const who = whoDecides(workload);
  return (
    <span
      class="soft number cell-switch"
      title={visibleLine([text, who, ...faults].filter(Boolean).join('; '))}
    >
      {faults.length > 0 && <span class="bad">{countText(faults.length, 'warning')} </span>}
      {text} {text !== '' && <span class="switch-who">{visibleLine(who)}</span>}
    </span>
  );
}

/** The button that puts a workload to sleep, or wakes it. */
export function SwitchButton({ workload, keyHint = false }: { workload: Workload; keyHint?: boolean }) {
  const action = workload.replicas === 0 ? 'wake' : 'sleep';
  const title = workloadActionTitle(action, workload);
  return (
    <Button
      icon={action}
      text={action}
      label={title}
      isOff={underWay.value.has(title)}
      onPress={() => requestWorkloadAction(action, workload)}
      {...(keyHint && { keyHint: action === 'wake' ? 's' : 'x' })}
    />
  );
}

function WorkloadRow({ workload }: { workload: Workload }) {
  const { id, name, namespace, kind, state, replicas, ready_replicas: ready, stale_since: stale } = workload;
  useEffect(() => watchWorkload(id), [id]);
  return (
    <div class="table-row workload-row" data-name={name}>
      <StateLabel state={state} detail={stale === null ? '' : 'stale'} />
      <a class="cell-name" href={linkTo('cloud', id)} title={visibleLine(`${namespace}/${name}`)}>
        {visibleLine(name)}
      </a>
      <span class="soft cell-section">{kind}</span>
      <span class="number" title="ready of all replicas">
        {ready}/{replicas}
      </span>
      <span class="soft number cell-uptime" title="last activity">
        {agoText(workload.last_activity_at)}
      </span>
      <NextSwitch workload={workload} />
      <AutoSleep workload={workload} />
      <SwitchButton workload={workload} />
    </div>
  );
}

type Row =
  | { key: string; kind: 'head'; group: WorkloadGroup }
  | { key: string; kind: 'workload'; workload: Workload };

function NamespaceHead({ group: { namespace, cluster, workloads } }: { group: WorkloadGroup }) {
  const asleep = countInState(workloads, 'asleep');
  return (
    <div class="namespace-head">
      <h2>{visibleLine(namespace)}</h2>
      <span class="soft">{visibleLine(cluster)}</span>
      <span class="soft number">
        {countText(workloads.length, 'workload')}
        {asleep > 0 && `, ${asleep} asleep`}
      </span>
    </div>
  );
}

const rowsOf = (workloads: readonly Workload[], clusters: ReadonlyMap<string, string>): Row[] =>
  workloadGroupsOf(workloads, clusters).flatMap((group): Row[] => [
    { key: group.key, kind: 'head', group },
    ...group.workloads.map((workload): Row => ({ key: workload.id, kind: 'workload', workload })),
  ]);

function StateChips({ found }: { found: readonly Workload[] }) {
  const chosen = shownPlace.value.query['state'] ?? '';
  const counts = new Map<string, number>();
  for (const { state } of found) counts.set(state, (counts.get(state) ?? 0) + 1);
  return (
    <fieldset class="chips" aria-label="workloads by state">
      {STATES.filter((state) => counts.has(state) || state === chosen).map((state) => (
        <button
          type="button"
          key={state}
          class="chip"
          aria-pressed={state === chosen}
          onClick={() => setFilter('state', state === chosen ? '' : state)}
        >
          <span class="number">{counts.get(state) ?? 0}</span> {state}
        </button>
      ))}
    </fieldset>
  );
}

/** The workloads of all clusters, with their search. */
export function WorkloadSection() {
  const { q = '', state = '' } = shownPlace.value.query;
  const clusters = clusterNames.value;
  const found = foundWorkloads(workloadPages.rows.value, wordsOfSearch(q), clusters);
  const shown = useMemo(
    () => (state === '' ? found : found.filter((workload) => workload.state === state)),
    [found, state],
  );
  const rows = useMemo(() => rowsOf(shown, clusters), [shown, clusters]);
  return (
    <>
      <div class="tools">
        <input
          type="search"
          class="field cloud-search"
          aria-label="search the workloads"
          placeholder="Name, namespace, cluster or kind"
          value={shownPlace.value.query['q'] ?? ''}
          onInput={(event) => setFilter('q', event.currentTarget.value)}
        />
        <StateChips found={found} />
        <span class="soft number" role="status">
          {countText(shown.length, 'workload')}
          {!workloadPages.isWhole.value && ', reading'}
        </span>
      </div>
      <div class="table-row table-head workload-row">
        <span>State</span>
        <span>Name</span>
        <span class="cell-section">Kind</span>
        <span>Ready</span>
        <span class="cell-uptime">Last activity</span>
        <span class="cell-switch">Next switch</span>
        <span class="auto-sleep">Auto-sleep</span>
        <span />
      </div>
      <VirtualRows
        label="Workloads"
        items={rows}
        rowHeight={ROW_HEIGHT}
        keyOf={({ key }) => key}
        row={(row) =>
          row.kind === 'head' ? <NamespaceHead group={row.group} /> : <WorkloadRow workload={row.workload} />
        }
      />
    </>
  );
}
