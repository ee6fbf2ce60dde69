// What the cloud API says, while its view is in sight.
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
/** What has been asked of the cloud and what has happened there, the newest first. null: not read yet. */
export const cloudEventList = signal<readonly CloudEvent[] | null>(null);
/** Every policy. null: not read yet. */
export const policyList = signal<readonly Policy[] | null>(null);
/** What the policy that is selected will do; null: none is, or it is not read yet. */
export const chosenPreview = signal<PolicyPreview | null>(null);
/** What workloads have saved, by month, cluster and namespace. null: not read yet. */
export const savingsList = signal<readonly Savings[] | null>(null);
/** Why the last reading has failed; '' if it has not. */
export const cloudError = signal('');

const REFRESH_MS = 3_000;
const REFRESH_PAUSE_MS = 250;
const PAGE_WORKLOADS = 500;
const EVENTS_SHOWN = 500;

/** The workloads. */
export const workloadPages = new WorkloadPages((from) =>
  client.cloud.workloadPage(from, { limit: PAGE_WORKLOADS }),
);
/** The ids of the workloads whose rows are drawn. */
export const workloadsInSight = new Set<string>();
/** Whether the events are in sight. */
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

/** Whether the policies are in sight, and the one whose preview is; null: they are not. */
let policiesInSight: { preview: string } | null = null;

async function readPolicies(): Promise<void> {
  if (policiesInSight === null) return;
  const { preview: name } = policiesInSight;
  const policies = await client.cloud.policies();
  const isThere = policies.some((policy) => policy.name === name);
  const preview = isThere ? await client.cloud.previewPolicy(name) : null;
  batch(() => {
    policyList.value = policies;
    chosenPreview.value = preview;
  });
}

/** Whether the savings are in sight. */
let hasSavingsInSight = false;

async function readSavings(): Promise<void> {
  if (hasSavingsInSight) savingsList.value = await client.cloud.savings();
}

/** Reads what is in sight. Resolves with true in any case: `followCloud` reads again. */
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

/** Reads what is in sight again, one reading at a time. */
export const refreshCloud = createRefresher(readCloud, REFRESH_PAUSE_MS);

/** Reads the events too until the returned function is called. */
export function watchCloudEvents(): () => void {
  hasEventsInSight = true;
  void refreshCloud();
  return () => {
    hasEventsInSight = false;
  };
}

/** Reads the savings too until the returned function is called. */
export function watchSavings(): () => void {
  hasSavingsInSight = true;
  void refreshCloud();
  return () => {
    hasSavingsInSight = false;
  };
}

/** Reads the policies too, and what `preview` will do ('': none), until the returned function is called. */
export function watchPolicies(preview: string): () => void {
  const sight = { preview };
  policiesInSight = sight;
  void refreshCloud();
  return () => {
    if (policiesInSight === sight) policiesInSight = null;
  };
}

/** Reads until `signal` aborts, as long as the tab is seen. */
export async function followCloud(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!document.hidden) await refreshCloud();
    await new Promise((resolve) => {
      setTimeout(resolve, REFRESH_MS);
    });
  }
}
