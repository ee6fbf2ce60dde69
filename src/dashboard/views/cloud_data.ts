// What the cloud API says, while its view is in sight. It has no events on the stream: it is asked again.
import { batch, signal } from '@preact/signals';
import type { ClusterDetail, Tether, Workload } from '../../client/browser.ts';
import { isBerthError } from '../../client/browser.ts';
import { client, errorText, forgetCloudToken } from '../state/session.ts';

/** Every cluster. null: not read yet. */
export const clusterList = signal<readonly ClusterDetail[] | null>(null);
export const workloadList = signal<readonly Workload[]>([]);
export const tetherList = signal<readonly Tether[]>([]);
/** Why the last reading has failed; '' if it has not. */
export const cloudError = signal('');

const REFRESH_MS = 3_000;

/** Reads everything once. */
export async function refreshCloud(signal?: AbortSignal): Promise<void> {
  const { cloud } = client;
  try {
    const [list, found, open] = await Promise.all([
      cloud.clusters({ signal }),
      cloud.workloads({ signal }),
      cloud.tethers({ signal }),
    ]);
    const details = await Promise.all(list.map(({ id }) => cloud.cluster(id, { signal })));
    batch(() => {
      clusterList.value = details;
      workloadList.value = found;
      tetherList.value = open;
      cloudError.value = '';
    });
  } catch (error) {
    if (signal?.aborted) return;
    cloudError.value = errorText(error);
    if (isBerthError(error) && (error.status === 401 || error.code === 'unproven')) forgetCloudToken();
  }
}

/** Reads until `signal` aborts, as long as the tab is seen. */
export async function followCloud(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!document.hidden) await refreshCloud(signal);
    await new Promise((resolve) => {
      setTimeout(resolve, REFRESH_MS);
    });
  }
}
