// Clusters, their workloads by namespace, and the tethers to them.
import { useEffect, useState } from 'preact/hooks';
import type { ClusterDetail, Tether, Workload } from '../../client/browser.ts';
import { compareNames, countText, spanText, visibleLine } from '../../presentation/format.ts';
import { Button } from '../frame/button.tsx';
import { StateLabel } from '../frame/status_mark.tsx';
import { VirtualRows } from '../frame/virtual_rows.tsx';
import { perform, underWay } from '../state/actions.ts';
import { setFilter, shownPlace } from '../state/place.ts';
import { client, hasCloudToken, loginCloud } from '../state/session.ts';
import { tenSeconds } from '../state/ticker.ts';
import {
  cloudError,
  clusterList,
  followCloud,
  refreshCloud,
  tetherList,
  workloadList,
} from './cloud_data.ts';

const ROW_HEIGHT = 36;

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
        <code>berth cloud-token</code> prints it. It stays in the memory of this tab.
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

/** Does something in the cloud, then reads it again. */
async function change(title: string, work: () => Promise<unknown>): Promise<void> {
  await perform(title, work);
  await refreshCloud();
}

const agoText = (time: string | null): string =>
  time === null ? 'never' : `${spanText(tenSeconds.value - Date.parse(time))} ago`;

function ClusterCard({ cluster }: { cluster: ClusterDetail }) {
  const { id, name, provider, version, reachable, last_sync_at: syncedAt, authenticated } = cluster;
  const state = reachable === null ? 'unknown' : reachable ? 'active' : 'unreachable';
  return (
    <section class="card cluster" aria-label={`cluster ${name}`}>
      <header class="card-title-row">
        <h2>{visibleLine(name)}</h2>
        <StateLabel state={authenticated === false ? 'refused' : state} />
      </header>
      <p class="soft">
        {[provider, version]
          .filter(Boolean)
          .map((text) => visibleLine(String(text)))
          .join(' · ')}
        {' · '}synced {agoText(syncedAt)}
      </p>
      <Button
        icon="restart"
        text="sync"
        label={`sync ${name}`}
        isOff={underWay.value.has(`sync ${name}`)}
        onPress={() => void change(`sync ${name}`, () => client.cloud.sync(id))}
      />
    </section>
  );
}

function AutoSleep({ workload }: { workload: Workload }) {
  const { id, name, auto_sleep_enabled: isOn, idle_timeout_minutes: minutes } = workload;
  const set = (settings: { auto_sleep_enabled?: boolean; idle_timeout_minutes?: number }): void =>
    void change(`auto-sleep of ${name}`, () => client.cloud.setAutoSleep(id, settings));
  return (
    <span class="auto-sleep">
      <input
        type="checkbox"
        aria-label={`auto-sleep of ${name}`}
        checked={isOn}
        onChange={(event) => set({ auto_sleep_enabled: event.currentTarget.checked })}
      />
      <input
        type="number"
        class="field number"
        aria-label={`minutes until ${name} sleeps`}
        min={1}
        value={minutes}
        onChange={(event) => set({ idle_timeout_minutes: event.currentTarget.valueAsNumber })}
      />
      <span class="soft">min</span>
    </span>
  );
}

function WorkloadRow({ workload }: { workload: Workload }) {
  const { id, name, namespace, kind, state, replicas, ready_replicas: ready, stale_since: stale } = workload;
  const isAsleep = replicas === 0;
  const action = isAsleep ? 'wake' : 'sleep';
  return (
    <div class="table-row workload-row" data-name={name}>
      <StateLabel state={state} detail={stale === null ? '' : 'stale'} />
      <span class="cell-name" title={`${namespace}/${name}`}>
        {visibleLine(name)}
      </span>
      <span class="soft cell-section">
        {visibleLine(namespace)} · {kind}
      </span>
      <span class="number" title="ready of all replicas">
        {ready}/{replicas}
      </span>
      <span class="soft number cell-uptime" title="last activity">
        {agoText(workload.last_activity_at)}
      </span>
      <AutoSleep workload={workload} />
      <Button
        icon={action}
        text={action}
        label={`${action} ${name}`}
        isOff={underWay.value.has(`${action} ${name}`)}
        onPress={() => void change(`${action} ${name}`, () => client.cloud[action](id))}
      />
    </div>
  );
}

const BYTES = ['B', 'kB', 'MB', 'GB'];

function bytesText(bytes: number): string {
  const unit = Math.min(BYTES.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${(bytes / 1_000 ** unit).toFixed(unit === 0 ? 0 : 1)} ${BYTES[unit]}`;
}

function TetherRow({ tether }: { tether: Tether }) {
  const { tether_id: id, workload_id: of, container_port: port, local_port: local, state, label } = tether;
  const workload = workloadList.value.find((one) => one.id === of);
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
        onPress={() => void change(`${action} ${name}`, () => client.cloud[action](id))}
      />
    </div>
  );
}

function wantedWorkloads(): readonly Workload[] {
  const words = (shownPlace.value.query['q'] ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return workloadList.value
    .filter(({ name, namespace, state, kind }) => {
      const text = `${name} ${namespace} ${state} ${kind}`.toLowerCase();
      return words.every((word) => text.includes(word));
    })
    .sort((one, other) => compareNames(one.namespace, other.namespace) || compareNames(one.name, other.name));
}

function CloudLists() {
  useEffect(() => {
    const end = new AbortController();
    void followCloud(end.signal);
    return () => end.abort();
  }, []);
  const found = wantedWorkloads();
  if (clusterList.value === null)
    return <p class="empty soft">{visibleLine(cloudError.value) || 'Reading …'}</p>;
  return (
    <>
      <p class="bad cloud-error" role="alert">
        {visibleLine(cloudError.value)}
      </p>
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
      {tetherList.value.length > 0 && (
        <section aria-label="tethers" class="tethers">
          {tetherList.value.map((tether) => (
            <TetherRow key={tether.tether_id} tether={tether} />
          ))}
        </section>
      )}
      <div class="tools">
        <input
          type="search"
          class="field"
          aria-label="search the workloads"
          placeholder="Name, namespace or state"
          value={shownPlace.value.query['q'] ?? ''}
          onInput={(event) => setFilter('q', event.currentTarget.value)}
        />
        <span class="soft number">{countText(found.length, 'workload')}</span>
      </div>
      <VirtualRows
        label="Workloads"
        items={found}
        rowHeight={ROW_HEIGHT}
        keyOf={({ id }) => id}
        row={(workload) => <WorkloadRow workload={workload} />}
      />
    </>
  );
}

/** The view of the cloud. */
export function CloudView() {
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <h1 id="view-title">Cloud</h1>
      </header>
      {hasCloudToken.value ? <CloudLists /> : <CloudLogin />}
    </section>
  );
}
