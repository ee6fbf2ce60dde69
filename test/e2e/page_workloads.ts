// Daemons with clusters for the page to show.
import type { Page } from 'playwright-core';
import { afterThisTest } from '../kit/actors.ts';
import { type Daemon, startDaemon } from '../kit/daemon.ts';
import { type Double, kubeDouble, workload } from '../kit/kube_double.ts';
import type { Device } from './browser.ts';
import { openBerth, TOKEN } from './page_services.ts';

const CLOUD_TOKEN = 'cloud-token-of-the-test';

/** A daemon with the token and the cloud token; on the port and state of an earlier one where they are given. */
export const cloudDaemon = (port = 0, stateDir?: string): Promise<Daemon> =>
  startDaemon({
    config: `port = ${port}\n[auth]\ntoken = "${TOKEN}"\n[cloud]\ntoken = "${CLOUD_TOKEN}"`,
    ...(stateDir ? { stateDir } : {}),
  });

/** Asks the daemon with its cloud token; throws unless it agrees. */
export async function askCloud(daemon: Daemon, method: string, path: string, body?: unknown): Promise<any> {
  const answer = await daemon.request(method, path, body, { authorization: `Bearer ${CLOUD_TOKEN}` });
  if (answer.status >= 400) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

/** Adds a cluster with the Deployments `namespace/name`, each with two replicas, and reads it. */
export async function addCluster(daemon: Daemon, name: string, paths: readonly string[]): Promise<Double> {
  const cluster = await kubeDouble();
  afterThisTest(() => cluster.stop());
  for (const path of paths) {
    const [namespace = '', of = ''] = path.split('/');
    cluster.put('Deployment', workload(namespace, of, 2));
  }
  const { id } = await askCloud(daemon, 'POST', '/k8s/clusters', { name, kubeconfig: cluster.kubeconfig });
  await askCloud(daemon, 'POST', `/k8s/clusters/${id}/sync`);
  return cluster;
}

/** The id of a workload. */
export async function idOf(daemon: Daemon, name: string): Promise<string> {
  const all: { id: string; name: string }[] = await askCloud(daemon, 'GET', '/k8s/workloads');
  const found = all.find((one) => one.name === name);
  if (!found) throw new Error(`no workload ${name}`);
  return found.id;
}

/** Types a cloud token into the page, which shows the view of the cloud. */
export async function giveCloudToken(page: Page, token = CLOUD_TOKEN): Promise<void> {
  await page.getByLabel('cloud token').fill(token);
  await page.getByLabel('cloud token').press('Enter');
}

/** The page with the cloud token given, in the view of the cloud. */
export async function openCloud(daemon: Daemon, device?: Device): Promise<Page> {
  const page = await openBerth(daemon, '#/cloud', device);
  await giveCloudToken(page);
  return page;
}
