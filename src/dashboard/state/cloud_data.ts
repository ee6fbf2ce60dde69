// Data from the cloud API, read while the tab is visible and has a cloud token: the workloads for the list at
// the left, and the rest while the view of the cloud shows it.
import { batch, computed, signal } from '@preact/signals';
import type {
  CloudEvent,
  ClusterDetail,
  Policy,
  PolicyPreview,
  Savings,
  Tether,
  Workload,
} from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { perform } from './actions.ts';
import { client, errorText, forgetCloudToken, hasCloudToken } from './session.ts';
import { isTabVisible } from './visible_tab.ts';
import { followWorkloadStates, noteLastEvent } from './workload_events.ts';
import { WorkloadPages } from './workload_pages.ts';

/** Every cluster. null: not read yet. */
export const clusterList = signal<readonly ClusterDetail[] | null>(null);
/** The names of the clusters by id. */
export const clusterNames = computed(
  (): ReadonlyMap<string, string> => new Map((clusterList.value ?? []).map(({ id, name }) => [id, name])),
);
export const tetherList = signal<readonly Tether[]>([]);
/** The events of the cloud, the newest first. null: not read yet. */
export const cloudEventList = signal<readonly CloudEvent[] | null>(null);
/** Every policy. null: not read yet. */
export const policyList = signal<readonly Policy[] | null>(null);
/** The preview of the selected policy; null: none is selected, or it is not read yet. */
export const chosenPreview = signal<PolicyPreview | null>(null);
/** The savings by month, cluster and namespace. null: not read yet. */
export const savingsList = signal<readonly Savings[] | null>(null);
/** Why the last read failed; '': it did not fail. */
export const cloudError = signal('');

/** The pause between two reads while the view of the cloud is visible, and while only the list is. */
const REFRESH_MS = 3_000;
const LIST_REFRESH_MS = 10_000;
/** The pause before the replicas of workloads in sight are read again after an event. */
const AFTER_EVENT_MS = 1_000;
const REFRESH_PAUSE_MS = 250;
const PAGE_WORKLOADS = 500;
const EVENTS_SHOWN = 500;

/** The workloads. */
export const workloadPages = new WorkloadPages((from) =>
  client.cloud.workloadPage(from, { limit: PAGE_WORKLOADS }),
);
/** How many rendered rows show a workload, by its id. */
const rowsInSight = new Map<string, number>();
/** Whether the view of the cloud is visible. */
let isViewInSight = false;
/** Whether the events are visible. */
let hasEventsInSight = false;

async function readEvents(): Promise<void> {
  if (!hasEventsInSight) return;
  for await (const page of client.cloud.historyPages({ limit: EVENTS_SHOWN })) {
    const [newest] = page;
    if (newest?.id !== cloudEventList.peek()?.[0]?.id || cloudEventList.peek() === null)
      cloudEventList.value = page;
    break;
  }
}

/** The policy whose preview is visible; null: the policies are not visible. */
let policiesInSight: { preview: string } | null = null;

/** Reads the policies and the visible preview. Hidden policies are read once, as their tab counts them. */
async function readPolicies(): Promise<void> {
  if (policiesInSight === null && policyList.peek() !== null) return;
  const name = policiesInSight?.preview ?? '';
  const policies = await client.cloud.policies();
  const isThere = policies.some((policy) => policy.name === name);
  const preview = isThere ? await client.cloud.previewPolicy(name) : null;
  batch(() => {
    policyList.value = policies;
    chosenPreview.value = preview;
  });
}

/** Whether the savings are visible. */
let hasSavingsInSight = false;

async function readSavings(): Promise<void> {
  if (hasSavingsInSight) savingsList.value = await client.cloud.savings();
}

/** Reads the clusters, and in the view of the cloud their state too, which the list does not show. */
async function readClusters(): Promise<void> {
  const known = new Map((clusterList.peek() ?? []).map((one) => [one.id, one]));
  clusterList.value = await Promise.all(
    (await client.cloud.clusters()).map(async (one) => {
      const before = isViewInSight ? undefined : known.get(one.id);
      return before ? { ...before, ...one } : client.cloud.cluster(one.id);
    }),
  );
}

async function readTethers(): Promise<void> {
  if (isViewInSight) tetherList.value = await client.cloud.tethers();
}

/** Forgets a token that the daemon does not accept, and what it has shown: the next one may see less. */
function forgetCloud(): void {
  batch(() => {
    forgetCloudToken();
    workloadPages.forget();
    clusterList.value = null;
    tetherList.value = [];
    cloudEventList.value = null;
    policyList.value = null;
    chosenPreview.value = null;
    savingsList.value = null;
  });
}

/** Reads what is visible. Always resolves with true, because `followCloud` reads again. */
async function readCloud(): Promise<boolean> {
  try {
    await Promise.all([readClusters(), readTethers()]);
    await readEvents();
    await readPolicies();
    await readSavings();
    await noteLastEvent();
    await workloadPages.refresh(rowsInSight);
    cloudError.value = '';
  } catch (error) {
    cloudError.value = errorText(error);
    if (isBerthError(error) && (error.status === 401 || error.code === 'unproven')) forgetCloud();
  }
  return true;
}

/** Reads what is visible again, one read at a time. */
const refreshCloud = createRefresher(readCloud, REFRESH_PAUSE_MS);

/** Also reads the events until the returned function is called. */
export function watchCloudEvents(): () => void {
  hasEventsInSight = true;
  void refreshCloud();
  return () => {
    hasEventsInSight = false;
  };
}

/** Also reads the savings until the returned function is called. */
export function watchSavings(): () => void {
  hasSavingsInSight = true;
  void refreshCloud();
  return () => {
    hasSavingsInSight = false;
  };
}

/** Also reads the policies, and the preview of the policy `preview` ('': none), until the returned call. */
export function watchPolicies(preview: string): () => void {
  const sight = { preview };
  policiesInSight = sight;
  void refreshCloud();
  return () => {
    if (policiesInSight === sight) policiesInSight = null;
  };
}

/** Also reads the page of the workload `id` with each refresh, until the returned function is called. */
export function watchWorkload(id: string): () => void {
  const change = (by: number): void => {
    const count = (rowsInSight.get(id) ?? 0) + by;
    if (count > 0) rowsInSight.set(id, count);
    else rowsInSight.delete(id);
  };
  change(1);
  return () => change(-1);
}

/** Ends the pause before the next read. */
let readNow = (): void => {};

/** Also reads what only the view of the cloud shows, until the returned function is called. */
export function watchCloud(): () => void {
  isViewInSight = true;
  readNow();
  return () => {
    isViewInSight = false;
  };
}

/** Performs a change in the cloud, then reads the cloud's data again. */
export async function changeCloud(title: string, work: () => Promise<unknown>): Promise<void> {
  await perform(title, work);
  await refreshCloud();
}

/** The actions on a workload. */
export type WorkloadAction = 'sleep' | 'wake';

/** An action on a workload, as `sleep shop/web`. */
export const workloadActionTitle = (action: WorkloadAction, { namespace, name }: Workload): string =>
  `${action} ${namespace}/${name}`;

/**
 * Browsers open six connections to a host, and each request waits for its cluster, a wake also for what the
 * workload depends on. So two are under way at once; those for one workload follow each other.
 */
const lanes = [Promise.resolve(), Promise.resolve()];

function inLane(id: string, work: () => Promise<unknown>): Promise<unknown> {
  const lane = (id.codePointAt(id.length - 1) ?? 0) % lanes.length;
  const done = (lanes[lane] ?? Promise.resolve()).then(work);
  lanes[lane] = done.then(
    () => undefined,
    () => undefined,
  );
  return done;
}

/** Performs `action` on a workload. */
export const actOnWorkload = (action: WorkloadAction, workload: Workload): Promise<void> =>
  changeCloud(workloadActionTitle(action, workload), () =>
    inLane(workload.id, () => client.cloud[action](workload.id)),
  );

let isRefreshDue = false;

/** Reads the replicas of workloads in sight again after their state has changed. */
function onStates(states: ReadonlyMap<string, unknown>): void {
  if (isRefreshDue || ![...states.keys()].some((id) => rowsInSight.has(id))) return;
  isRefreshDue = true;
  setTimeout(() => {
    isRefreshDue = false;
    void refreshCloud();
  }, AFTER_EVENT_MS);
}

/** Follows the cloud for as long as the page lives. */
export async function followCloud(): Promise<never> {
  followWorkloadStates(workloadPages, onStates);
  isTabVisible.subscribe(() => readNow());
  for (;;) {
    const pause = new Promise<void>((resolve) => {
      readNow = resolve;
    });
    if (hasCloudToken.peek() && isTabVisible.peek()) await refreshCloud();
    setTimeout(readNow, isViewInSight ? REFRESH_MS : LIST_REFRESH_MS);
    await pause;
  }
}
