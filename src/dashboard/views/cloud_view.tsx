// Clusters, their workloads, policies, tethers, savings and events.
import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ClusterDetail } from '../../client/browser.ts';
import { visibleLine } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { underWay } from '../state/actions.ts';
import {
  changeCloud,
  cloudError,
  clusterList,
  policyList,
  tetherList,
  watchCloud,
  workloadPages,
} from '../state/cloud_data.ts';
import { go, shownPlace } from '../state/place.ts';
import { client, hasCloudToken, loginCloud } from '../state/session.ts';
import { CloudEvents } from './cloud_events_list.tsx';
import { PolicySection } from './policy_section.tsx';
import { SavingsSection } from './savings_section.tsx';
import { TetherSection } from './tether_section.tsx';
import { agoText, WorkloadSection } from './workload_rows.tsx';
import { WorkloadDetails } from './workload_view.tsx';

function CloudLogin() {
  const [token, setToken] = useState('');
  return (
    <form
      class="card cloud-login"
      aria-labelledby="cloud-login-title"
      onSubmit={(event) => {
        event.preventDefault();
        loginCloud(token);
      }}
    >
      <h2 id="cloud-login-title">The cloud has a token of its own</h2>
      <p class="soft">
        <code>berth cloud token</code> prints it. It stays in the memory of this tab.
      </p>
      <input
        class="field"
        type="password"
        autocomplete="off"
        aria-label="cloud token"
        required
        value={token}
        onInput={(event) => setToken(event.currentTarget.value)}
      />
      <button type="submit" class="button" data-kind="main">
        Use it
      </button>
      <p class="bad" role="alert">
        {cloudError.value.split('\n').map((line) => `${visibleLine(line)} `)}
      </p>
    </form>
  );
}

function ClusterCard({ cluster }: { cluster: ClusterDetail }) {
  const { id, name, provider, version, reachable, reason, last_sync_at: syncedAt, authenticated } = cluster;
  const state = reachable === null ? 'unknown' : reachable ? 'active' : 'unreachable';
  return (
    <section class="card cluster" aria-label={`cluster ${name}`}>
      <header class="card-title-row">
        <h2>{visibleLine(name)}</h2>
        <StateLabel state={authenticated === false ? 'refused' : state} />
        <Button
          icon="restart"
          kind="quiet"
          label={`sync ${name}`}
          isOff={underWay.value.has(`sync ${name}`)}
          onPress={() => void changeCloud(`sync ${name}`, () => client.cloud.sync(id))}
        />
      </header>
      <p class="soft">
        {[provider, version]
          .filter(Boolean)
          .map((text) => visibleLine(String(text)))
          .join(' · ')}
        {' · '}synced {agoText(syncedAt)}
      </p>
      {reason !== null && <p class="bad cluster-reason">{visibleLine(reason)}</p>}
    </section>
  );
}

/** The parts of the view. */
const TABS = ['workloads', 'policies', 'tethers', 'savings', 'events'] as const;

const PARTS: Readonly<Record<string, () => JSX.Element | null>> = {
  workloads: WorkloadSection,
  policies: PolicySection,
  tethers: TetherSection,
  savings: SavingsSection,
  events: CloudEvents,
};

function Tabs({ shown }: { shown: string }) {
  const counts = {
    workloads: workloadPages.rows.value.length,
    policies: policyList.value?.length ?? 0,
    tethers: tetherList.value.length,
    savings: 0,
    events: 0,
  };
  return (
    <fieldset class="chips" aria-label="parts of the cloud">
      {TABS.map((tab) => (
        <button
          type="button"
          key={tab}
          class="chip"
          aria-pressed={tab === shown}
          onClick={() => go({ query: tab === 'workloads' ? {} : { tab } })}
        >
          {tab} {counts[tab] > 0 && <span class="soft number">{counts[tab]}</span>}
        </button>
      ))}
    </fieldset>
  );
}

function CloudLists({ tab }: { tab: string }) {
  const Part = PARTS[tab] ?? WorkloadSection;
  if (clusterList.value === null)
    return <p class="empty soft">{visibleLine(cloudError.value) || 'Reading …'}</p>;
  return (
    <>
      {cloudError.value !== '' && (
        <p class="bad cloud-error" role="alert">
          {visibleLine(cloudError.value)}
        </p>
      )}
      <div class="clusters">
        {clusterList.value.map((cluster) => (
          <ClusterCard key={cluster.id} cluster={cluster} />
        ))}
        {clusterList.value.length === 0 && (
          <p class="empty soft">
            No cluster. <code>berth k8s add</code> adds one.
          </p>
        )}
      </div>
      <Part />
    </>
  );
}

function CloudHead({ children }: { children?: ComponentChildren }) {
  return (
    <header class="view-head">
      <h1 id="view-title">Cloud</h1>
      {children}
    </header>
  );
}

/** The clusters and their lists, or the selected workload. */
function CloudContent({ id }: { id: string | null }) {
  useEffect(watchCloud, []);
  if (id !== null) return <WorkloadDetails key={id} id={id} />;
  const tab = shownPlace.value.query['tab'] ?? TABS[0];
  return (
    <>
      <CloudHead>
        <Tabs shown={tab} />
      </CloudHead>
      <CloudLists tab={tab} />
    </>
  );
}

function CloudEntry() {
  return (
    <>
      <CloudHead />
      <CloudLogin />
    </>
  );
}

/** The view of the cloud, or of the workload `id`. */
export const CloudView = ({ id }: { id: string | null }) => (
  <section class="view" aria-labelledby="view-title">
    {hasCloudToken.value ? <CloudContent id={id} /> : <CloudEntry />}
  </section>
);
