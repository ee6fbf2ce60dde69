// Calls to a cluster from the user's own command line, with the user's own login.
import { isFailure } from '../../runtime/actor.ts';
import { systemClock } from '../../runtime/clock.ts';
import { createClusterDialer } from '../cluster_dialer.ts';
import { KubeError, kubeFailure } from '../kube/kube_errors.ts';
import { createKubeHttp, type KubeHttp } from '../kube/kube_http.ts';
import { parseKubeconfig } from '../kube/kubeconfig.ts';
import { LoginError } from './exec_plugin.ts';
import { KubeconfigError } from './kubeconfig_files.ts';

/** The user may reach any address in their own kubeconfig; the daemon has a rule of its own. */
const ANY_ADDRESS = { allow: 'any', apiOnLoopback: true } as const;

const ALIVE_MS = 60_000;

const HINTS: ReadonlyMap<number, string> = new Map([
  [401, 'Log in again, as for kubectl, and repeat the command.'],
  [403, 'Ask an administrator for the right, or to apply what `berth k8s add --print` prints.'],
]);

const TERMINATING = 'because it is being terminated';
const OTHER_NAMESPACE =
  'Repeat the command once that namespace is gone, or name another one first in --namespaces: then the ' +
  'account is made there, with rights in the named namespaces alone.';

const DIRECT = 'HTTPS_PROXY is set, which kubectl uses. Berth connects to clusters directly.';

function loginError(error: unknown): LoginError {
  const { message } = kubeFailure(error);
  // The API server denies that as if it were for want of a right.
  if (message.includes(TERMINATING)) return new LoginError(message, OTHER_NAMESPACE);
  if (error instanceof KubeError) return new LoginError(message, HINTS.get(error.status.status));
  return new LoginError(message, process.env['HTTPS_PROXY'] ? DIRECT : '');
}

/** The access in a kubeconfig as the daemon will read it. Throws a KubeconfigError. */
export function checkStandalone(kubeconfig: string): ReturnType<typeof parseKubeconfig> {
  try {
    return parseKubeconfig(kubeconfig, Date.now());
  } catch (error) {
    if (!isFailure(error)) throw error;
    throw new KubeconfigError(error.message);
  }
}

/**
 * Runs `work` on the cluster of `kubeconfig`, which must be self-contained. Throws a LoginError when a call
 * fails, or a KubeconfigError.
 */
export async function withUserCluster<T>(
  kubeconfig: string,
  work: (http: KubeHttp) => Promise<T>,
): Promise<T> {
  const dialer = createClusterDialer(checkStandalone(kubeconfig), ANY_ADDRESS);
  const http = createKubeHttp(dialer, systemClock);
  // While a call pauses, as before a retry, nothing else keeps the process alive: it would end with 0.
  const alive = setInterval(() => undefined, ALIVE_MS);
  try {
    return await work(http);
  } catch (error) {
    throw loginError(error);
  } finally {
    clearInterval(alive);
    await http.close();
  }
}
