// A second API server of the local cluster, on a port of its own with the same etcd. Tests stop and start it
// while others use the first one.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get } from 'node:https';
import { parseKubeconfig } from '../../src/adapters/kube/kubeconfig.ts';
import { afterThisTest, realTime } from './actors.ts';
import { freePort } from './free_ports.ts';
import { clusterFile, kubeconfig } from './kube_real.ts';

/** The command line of the cluster's own API server; null where it is on another machine or not readable. */
function ownArguments(): string[] | null {
  const pidFile = clusterFile('run/pids/kube-apiserver');
  if (pidFile === null) return null;
  try {
    const pid = readFileSync(pidFile, 'utf8').trim();
    const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
    return words[0]?.endsWith('/kube-apiserver') ? words : null;
  } catch {
    return null;
  }
}

/** A server that has not answered by then is asked again. */
const ANSWER_MS = 2_000;

const args = ownArguments();
/** Whether `apiServer` is available. */
export const hasApiServer: boolean = args !== null;

export interface ApiServer {
  kubeconfig: string;
  /** Kills it, as a crash would. */
  stop(): Promise<void>;
  /** Resolves when it answers. */
  start(): Promise<void>;
}

/** A running API server; it ends with the test. */
export async function apiServer(): Promise<ApiServer> {
  const port = freePort();
  const [program = '', ...given] = args ?? [];
  const own = given.map((word, at) => (given[at - 1] === '--secure-port' ? String(port) : word));
  const server = `https://127.0.0.1:${port}`;
  const { ca } = parseKubeconfig(kubeconfig(), Date.now());
  let child: ChildProcess | null = null;
  const isLive = (): Promise<boolean> =>
    new Promise((resolve) => {
      const asked = get(
        `${server}/livez`,
        { ...(ca ? { ca } : {}), agent: false, timeout: ANSWER_MS },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode === 200);
        },
      );
      // A server that is starting may take a connection and not answer on it.
      asked.on('timeout', () => asked.destroy());
      asked.on('error', () => resolve(false));
    });
  const stop = async (): Promise<void> => {
    const ending = child;
    child = null;
    if (!ending || ending.exitCode !== null) return;
    ending.kill('SIGKILL');
    await once(ending, 'exit');
  };
  const start = async (): Promise<void> => {
    const started = spawn(program, own, { stdio: ['ignore', 'ignore', 'pipe'] });
    child = started;
    let said = '';
    started.stderr.on('data', (part) => {
      said = (said + part).slice(-2_000);
    });
    while (!(await isLive())) {
      if (started.exitCode !== null) throw new Error(`the API server has ended: ${said}`);
      await realTime.advance(50);
    }
  };
  afterThisTest(stop);
  await start();
  return { kubeconfig: kubeconfig().replace(/server: .*/, `server: ${server}`), stop, start };
}
