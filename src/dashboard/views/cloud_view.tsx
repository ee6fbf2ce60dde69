// Clusters, their workloads, the tethers to them, and what has happened there.
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { ClusterDetail, Tether } from '../../client/browser.ts';
import { countText, visibleLine } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { underWay } from '../state/actions.ts';
import { go, shownPlace } from '../state/place.ts';
import { client, hasCloudToken, loginCloud } from '../state/session.ts';
import { cloudError, clusterList, followCloud, policyList, tetherList, workloadPages } from './cloud_data.ts';
import { CloudEvents } from './cloud_events_list.tsx';
import { PolicySection } from './policy_section.tsx';
import { agoText, changeCloud, WorkloadSection } from './workload_rows.tsx';

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
  const { id, name, provider, version, reachable, last_sync_at: syncedAt, authenticated } = cluster;
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
    </section>
  );
}

const BYTES = ['B', 'kB', 'MB', 'GB'];

function bytesText(bytes: number): string {
  const unit = Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${BYTES[unit]}`;
}

function TetherRow({ tether }: { tether: Tether }) {
  const { tether_id: id, workload_id: of, container_port: port, local_port: local, state, label } = tether;
  const workload = workloadPages.rows.value.find((one) => one.id === of);
  const name = label ?? `${workload?.name ?? of}:${port}`;
  const action = state === 'active' ? 'deactivate' : 'activate';
  return (
    <div class="table-row tether-row">
      <StateLabel state={state} />
      <span class="cell-name">{visibleLine(name)}</span>
      <span class="number">{local === null ? '' : `localhost:${local} → ${port}`}</span>
      <span class="number soft">
        {countText(tether.connections, 'connection')} · {bytesText(tether.bytes_in)} in ·{' '}
        {bytesText(tether.bytes_out)} out
      </span>
      <span class="bad">{visibleLine(tether.last_error ?? '')}</span>
      <Button
        text={action}
        label={`${action} ${name}`}
        onPress={() => void changeCloud(`${action} ${name}`, () => client.cloud[action](id))}
      />
    </div>
  );
}

/** The parts of the view. */
const TABS = ['workloads', 'policies', 'tethers', 'events'] as const;

const PARTS: Readonly<Record<string, () => JSX.Element>> = {
  workloads: WorkloadSection,
  policies: PolicySection,
  tethers: TetherList,
  events: CloudEvents,
};

function Tabs({ shown }: { shown: string }) {
  const counts = {
    workloads: workloadPages.rows.value.length,
    policies: policyList.value?.length ?? 0,
    tethers: tetherList.value.length,
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

function TetherList() {
  return (
    <section aria-label="tethers" class="tethers">
      {tetherList.value.map((tether) => (
        <TetherRow key={tether.tether_id} tether={tether} />
      ))}
      {tetherList.value.length === 0 && (
        <p class="empty soft">
          No tether. <code>berth k8s tether</code> opens a local port to a workload.
        </p>
      )}
    </section>
  );
}

function CloudLists({ tab }: { tab: string }) {
  useEffect(() => {
    const end = new AbortController();
    void followCloud(end.signal);
    return () => end.abort();
  }, []);
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

/** The view of the cloud. */
export function CloudView() {
  const tab = shownPlace.value.query['tab'] ?? TABS[0];
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Cloud</h1>
        {hasCloudToken.value && <Tabs shown={tab} />}
      </header>
      {hasCloudToken.value ? <CloudLists tab={tab} /> : <CloudLogin />}
    </section>
  );
}
