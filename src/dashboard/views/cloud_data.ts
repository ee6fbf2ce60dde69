// Data from the cloud API, read while its view is open.
import { batch, signal } from '@preact/signals';
import type {
  CloudEvent,
  ClusterDetail,
  Policy,
  PolicyPreview,
  Savings,
  Tether,
} from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import { createRefresher } from '../../presentation/refresher.ts';
import { client, errorText, forgetCloudToken } from '../state/session.ts';
import { WorkloadPages } from './workload_pages.ts';

/** Every cluster. null: not read yet. */
export const clusterList = signal<readonly ClusterDetail[] | null>(null);
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

const REFRESH_MS = 3_000;
const REFRESH_PAUSE_MS = 250;
const PAGE_WORKLOADS = 500;
const EVENTS_SHOWN = 500;

/** The workloads. */
export const workloadPages = new WorkloadPages((from) =>
  client.cloud.workloadPage(from, { limit: PAGE_WORKLOADS }),
);
/** The ids of the workloads whose rows are rendered. */
export const workloadsInSight = new Set<string>();
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

/** Reads what is visible. Always resolves with true, because `followCloud` reads again. */
async function readCloud(): Promise<boolean> {
  const { cloud } = client;
  try {
    const [list, tethers] = await Promise.all([cloud.clusters(), cloud.tethers()]);
    const details = await Promise.all(list.map(({ id }) => cloud.cluster(id)));
    batch(() => {
      clusterList.value = details;
      tetherList.value = tethers;
    });
    await readEvents();
    await readPolicies();
    await readSavings();
    await workloadPages.refresh(workloadsInSight);
    cloudError.value = '';
  } catch (error) {
    cloudError.value = errorText(error);
    if (isBerthError(error) && (error.status === 401 || error.code === 'unproven')) forgetCloudToken();
  }
  return true;
}

/** Reads what is visible again, one read at a time. */
export const refreshCloud = createRefresher(readCloud, REFRESH_PAUSE_MS);

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

/** Reads repeatedly until `signal` aborts, but not while the tab is hidden. */
export async function followCloud(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!document.hidden) await refreshCloud();
    await new Promise((resolve) => {
      setTimeout(resolve, REFRESH_MS);
    });
  }
}
