// Policies: what each selects, when it puts workloads to sleep, and what it does next to each workload.
import { useEffect } from 'preact/hooks';
import type { Policy, PolicyPreview } from '../../client/browser.ts';
import { countText, visibleLine, whenText } from '../../presentation/format.ts';
import { policySelects, policyWindows, switchText, whoDecides } from '../../presentation/policy_text.ts';
import { StateLabel } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { chosenPreview, policyList, watchPolicies } from '../state/cloud_data.ts';
import { setFilter, shownPlace } from '../state/place.ts';
import { tenSeconds } from '../state/ticker.ts';

const ROW_HEIGHT = 36;
const SWITCHES_SHOWN = 4;

type Previewed = PolicyPreview['workloads'][number];

function PolicyRow({ policy, isChosen }: { policy: Policy; isChosen: boolean }) {
  const { name, selected, decided, warning, idle_timeout_minutes: minutes } = policy;
  const windows = policyWindows(policy);
  return (
    <div class="table-row policy-row" data-name={name}>
      <button
        type="button"
        class="chip"
        aria-pressed={isChosen}
        aria-label={`preview of ${name}`}
        onClick={() => setFilter('policy', isChosen ? '' : name)}
      >
        {visibleLine(name)}
      </button>
      <span title={policySelects(policy)}>{visibleLine(policySelects(policy))}</span>
      <span title={windows}>{visibleLine(windows)}</span>
      <span class="soft number">{minutes === null ? '' : `unused for ${minutes}m`}</span>
      <span class={warning === null ? 'soft number' : 'bad'} title={warning ?? undefined}>
        {warning === null
          ? `decides on ${decided} of ${countText(selected, 'workload')}`
          : visibleLine(warning)}
      </span>
    </div>
  );
}

function PreviewRow({ workload }: { workload: Previewed }) {
  const { namespace, name, state, switches, policy } = workload;
  const faults = policy?.faults.join('; ') ?? '';
  const times = switches.map(({ at, to }) => `${to} ${whenText(at, tenSeconds.value)}`);
  const [next] = switches;
  return (
    <div class="table-row preview-row" data-name={name}>
      <StateLabel state={state} />
      <span class="cell-name" title={`${namespace}/${name}`}>
        {visibleLine(`${namespace}/${name}`)}
      </span>
      <span class="soft" title={faults}>
        {visibleLine(whoDecides(workload))} {faults !== '' && <span class="bad">{visibleLine(faults)}</span>}
      </span>
      <span class="number">{next ? switchText(next, tenSeconds.value) : 'no switch'}</span>
      <span class="soft number" title={times.join('\n')}>
        {times.slice(0, SWITCHES_SHOWN).join(', ')}
      </span>
    </div>
  );
}

function Preview({ preview: { name, workloads } }: { preview: PolicyPreview }) {
  return (
    <>
      <div class="namespace-head">
        <h2>What {visibleLine(name)} does next</h2>
        <span class="soft number">{countText(workloads.length, 'workload')}</span>
      </div>
      <div class="table-row table-head preview-row">
        <span>State</span>
        <span>Workload</span>
        <span>Decided by</span>
        <span>Next switch</span>
        <span>All switches</span>
      </div>
      <VirtualRows
        label={`workloads that ${name} selects`}
        items={workloads}
        rowHeight={ROW_HEIGHT}
        keyOf={({ id }) => id}
        row={(workload) => <PreviewRow workload={workload} />}
      />
    </>
  );
}

/** The policies, and the preview of the chosen policy. */
export function PolicySection() {
  const chosen = shownPlace.value.query['policy'] ?? '';
  useEffect(() => watchPolicies(chosen), [chosen]);
  const policies = policyList.value;
  const preview = chosenPreview.value;
  if (policies === null) return <p class="empty soft">Reading …</p>;
  return (
    <section aria-label="policies" class="policies">
      {policies.length === 0 && (
        <p class="empty soft">
          No policy. <code>berth k8s policy set nights -n shop --window "Mon-Fri 20:00-07:00"</code> makes
          one.
        </p>
      )}
      {policies.length > 0 && (
        <div class="table-row table-head policy-row">
          <span>Policy</span>
          <span>Workloads</span>
          <span>Asleep</span>
          <span>Idle</span>
          <span>Decides</span>
        </div>
      )}
      <div class="policy-rows">
        {policies.map((policy) => (
          <PolicyRow key={policy.name} policy={policy} isChosen={policy.name === chosen} />
        ))}
      </div>
      {preview?.name === chosen && <Preview preview={preview} />}
    </section>
  );
}
