// The cluster of the benchmark `tether`: workloads, an account that may only use WebSockets, and kubectl.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { KubeCluster } from '../src/adapters/kube/kube_cluster.ts';
import { podsResource } from '../src/adapters/kube/pods.ts';

/** The kubeconfig of the cluster; empty if none is given. */
export const KUBECONFIG = process.env['BERTH_TEST_KUBECONFIG'] ?? '';
const BESIDE = join(dirname(KUBECONFIG), 'bin/kubectl');
const KUBECTL = existsSync(BESIDE) ? BESIDE : 'kubectl';

const SERVE = `#!/bin/sh
read -r what a
case "$what" in
  down) i=0; while [ $i -lt $a ]; do cat /tmp/block; i=$((i+1)); done ;;
  up) head -c $a > /dev/null; echo done ;;
esac
`;

/** A Deployment that serves a page on port 8080, and sends or receives any number of bytes on port 7000. */
export const workload = (name: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name },
  spec: {
    replicas: 1,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'main',
            image: 'busybox:1.35',
            imagePullPolicy: 'IfNotPresent',
            env: [{ name: 'SERVE', value: SERVE }],
            command: [
              'sh',
              '-c',
              'mkdir /tmp/www && echo "hello from $(hostname)" > /tmp/www/index.html && printf "%s" ' +
                '"$SERVE" > /tmp/serve && chmod +x /tmp/serve && head -c 1048576 /dev/urandom > /tmp/block ' +
                '&& (nc -ll -p 7000 -e /tmp/serve &) && exec httpd -f -p 8080 -h /tmp/www',
            ],
          },
        ],
      },
    },
  },
});

/** The name of the account's ClusterRoleBinding. It is in no namespace, so it is removed separately. */
export const viewOf = (namespace: string): string => `${namespace}-view`;

/** An account that may only `get` port forwards: a WebSocket needs `get`, SPDY needs `create`. */
const getter = (namespace: string): object => ({
  apiVersion: 'v1',
  kind: 'List',
  items: [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'getter' } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: viewOf(namespace) },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'getter', namespace }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'getter' },
      rules: [{ apiGroups: [''], resources: ['pods/portforward'], verbs: ['get'] }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'getter' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'getter' },
      subjects: [{ kind: 'ServiceAccount', name: 'getter', namespace }],
    },
  ],
});

export const kubectl = (args: string[], input = ''): string =>
  execFileSync(KUBECTL, ['--kubeconfig', KUBECONFIG, ...args], { input, encoding: 'utf8' });

/** The kubeconfig of the account `getter`, on the same cluster. */
export function getterKubeconfig(namespace: string): string {
  kubectl(['-n', namespace, 'apply', '-f', '-'], JSON.stringify(getter(namespace)));
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/getter/token`;
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const answer = JSON.parse(kubectl(['create', '--raw', path, '-f', '-'], JSON.stringify(asked)));
  const view = JSON.parse(kubectl(['config', 'view', '--raw', '--minify', '-o', 'json']));
  view.users[0].user = { token: answer.status.token };
  return JSON.stringify(view);
}

export const adminKubeconfig = (): string => readFileSync(KUBECONFIG, 'utf8');

/** Starts `kubectl port-forward` to a pod. `ports` are the local ports for 7000 and 8080. */
export async function portForward(
  namespace: string,
  pod: string,
): Promise<{ child: ChildProcess; ports: number[] }> {
  const args = ['--kubeconfig', KUBECONFIG, '-n', namespace, 'port-forward', `pod/${pod}`, ':7000', ':8080'];
  const child = spawn(KUBECTL, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ports = await new Promise<number[]>((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (text) => {
      said += text;
      const found = ['7000', '8080'].map((port) =>
        Number(new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${port}`).exec(said)?.[1]),
      );
      if (found.every(Number.isInteger)) resolve(found);
    });
    child.on('exit', () => reject(new Error('kubectl port-forward ended')));
  });
  return { child, ports };
}

/** Scales a workload and waits until its pods match. */
export function scaler(cluster: KubeCluster, namespace: string, name: string) {
  const target = { kind: 'Deployment' as const, namespace, name };
  const until = async (fits: (ready: number, all: number) => boolean): Promise<void> => {
    for (;;) {
      const { rows } = await cluster.list(podsResource({ ...target, selector: `app=${name}` }));
      if (fits(rows.filter(({ isReady }) => isReady).length, rows.length)) return;
    }
  };
  const to = (replicas: number) =>
    cluster.patchWorkload(target, [{ op: 'replace', path: '/spec/replicas', value: replicas }]);
  return {
    async down(): Promise<void> {
      await to(0);
      await until((_, all) => all === 0);
    },
    async up(): Promise<void> {
      await to(1);
      await until((ready) => ready === 1);
    },
  };
}
