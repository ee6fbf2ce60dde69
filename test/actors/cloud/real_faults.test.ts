// What a real Kubernetes does that a status does not tell: ending pods, quotas, adopted ReplicaSets, webhooks,
// other writers, accounts with few rights and accounts that end.
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { parseKubeconfig } from '../../../src/adapters/kube/kubeconfig.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime } from '../../kit/actors.ts';
import { certificate } from '../../kit/certificates.ts';
import { type Cloud, cloud, clusterInput, eventually } from '../../kit/cloud.ts';
import { kubeconfigFor, serviceAccount } from '../../kit/kube_accounts.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, create, describeReal, kubeconfig, sandbox, sleeper } from '../../kit/kube_real.ts';

/** Seconds that a pod takes to end, and so the time in which all of them are ending. */
const ENDING_S = 2;
/** One way through the network of a distant cluster. */
const DELAY_MS = 60;
const WRITE_INTERVAL_MS = 100;
/** How long a slow webhook takes: more than a read of a cluster may. */
const WEBHOOK_MS = Number(process.env['BERTH_TEST_WEBHOOK_MS'] ?? CLOUD.headersTimeoutMs + 1_000);

describeReal('a real cluster in trouble', () => {
  const mine = sandbox();
  const named = (name: string): string => `${mine.namespace}/${name}`;
  const begin = async (config = kubeconfig()): Promise<Cloud> => {
    const here = await cloud();
    await here.add(config);
    return here;
  };
  const pods = async (name: string): Promise<Json[]> =>
    (await api('GET', `/api/v1/namespaces/${mine.namespace}/pods?labelSelector=app%3D${name}`)).body.items;
  const sleep = (here: Cloud, id: string) =>
    here.workloads.ask('sleep', { id, by: 'request', holdMs: null }, { deadlineMs: 120_000 });
  const wake = (here: Cloud, id: string, waitMs: number | null) =>
    here.workloads.ask('wake', { id, by: 'request', waitMs }, { deadlineMs: 120_000 });

  it.each([
    ['StatefulSet', { serviceName: 's', podManagementPolicy: 'Parallel' }],
    ['Deployment', {}],
  ])('a wake of a %s whose pods are all terminating waits for one that remains', async (kind, spec) => {
    const name = `ending-${kind.toLowerCase()}`;
    const object = sleeper(name, 2, {
      spec,
      container: {
        command: ['sh', '-c', `trap 'sleep ${ENDING_S}; exit' TERM; while :; do sleep 0.1; done`],
      },
    });
    object.spec.template.spec.terminationGracePeriodSeconds = 2 * ENDING_S;
    await mine.create(kind, object);
    const here = await begin();
    const { id } = await here.until(named(name), (row) => row.ready_replicas === 2);
    await sleep(here, id);
    await eventually(async () => (await pods(name)).every((pod) => pod.metadata.deletionTimestamp));
    expect(await wake(here, id, 60_000)).toEqual({ replicas: 2 });
    const isUp = ({ metadata, status }: Json): boolean =>
      !metadata.deletionTimestamp &&
      status.conditions.some((one: Json) => one.type === 'Ready' && one.status === 'True');
    expect((await pods(name)).some(isUp)).toBe(true);
  });

  it('a wake whose pods a quota prevents reports the quota', async () => {
    for (const kind of ['Deployment', 'StatefulSet']) {
      await mine.create(
        kind,
        sleeper(`poor-${kind.toLowerCase()}`, 0, { spec: kind === 'Deployment' ? {} : { serviceName: 's' } }),
      );
    }
    const here = await begin();
    const quotas = `/api/v1/namespaces/${mine.namespace}/resourcequotas`;
    await create(quotas, { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } });
    // The API server enforces a quota only some time after it was created, and a pod made before stays.
    const probe = { metadata: { name: 'probe' }, spec: sleeper('probe', 1).spec.template.spec };
    await eventually(async () => {
      const { body } = await api('POST', `/api/v1/namespaces/${mine.namespace}/pods?dryRun=All`, probe);
      return /exceeded quota/.test(body.message);
    });
    for (const kind of ['deployment', 'statefulset']) {
      const { id } = here.find(named(`poor-${kind}`));
      const failure = await eventually(async () => {
        const error: Json = await wake(here, id, 500).catch((caught: unknown) => caught);
        return /exceeded quota/.test(error.message) ? error : undefined;
      });
      expect(failure).toMatchObject({
        code: 'ready_timeout',
        message: /FailedCreate: .*exceeded quota: none/,
      });
    }
  });

  it('the pods of a ReplicaSet of another name that a Deployment has adopted are found', async () => {
    const set = sleeper('adopter', 1, { metadata: { name: 'orphan', labels: { app: 'adopter' } } });
    const path = `/apis/apps/v1/namespaces/${mine.namespace}/replicasets`;
    await create(path, set);
    await mine.create('Deployment', sleeper('adopter', 1));
    const owners = async (): Promise<Json[]> =>
      (await api('GET', `${path}/orphan`)).body.metadata.ownerReferences ?? [];
    await eventually(async () => (await owners()).length === 1);
    const here = await begin();
    const { id } = await here.until(named('adopter'), (row) => row.ready_replicas === 1);
    expect(await wake(here, id, 30_000)).toEqual({ replicas: 1 });
    const { workload } = await eventually(async () => {
      const target = await here.workloads.ask('tetherTarget', { id });
      return target.workload.replicaSet === 'orphan' ? target : undefined;
    });
    expect(workload.selector).toBe('app=adopter');
  });

  const hookName = `${mine.namespace}.example.com`;
  /** Has a webhook asked about every change of a Deployment of this test. */
  async function guard(hook: Json): Promise<void> {
    await create('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
      metadata: { name: hookName },
      webhooks: [
        {
          name: hookName,
          admissionReviewVersions: ['v1'],
          sideEffects: 'None',
          failurePolicy: 'Fail',
          // Unique, because a run that is killed leaves its webhook behind.
          namespaceSelector: { matchLabels: { guarded: mine.namespace } },
          rules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['deployments'] },
          ],
          ...hook,
        },
      ],
    });
    const label = async (guarded: string | null): Promise<void> => {
      const change = { metadata: { labels: { guarded } } };
      await api('PATCH', `/api/v1/namespaces/${mine.namespace}`, change, 'application/merge-patch+json');
    };
    await label(mine.namespace);
    afterThisTest(() => label(null));
  }

  it('a webhook that does not respond is named', async () => {
    await mine.create('Deployment', sleeper('guarded', 1, { container: { image: 'none:none' } }));
    const here = await begin();
    await guard({ timeoutSeconds: 1, clientConfig: { url: 'https://127.0.0.1:1/' } });
    const { id } = here.find(named('guarded'));
    const failure = await eventually(async () => {
      // The API server takes a moment to know the webhook.
      const answer: Json = await sleep(here, id).catch((caught: unknown) => caught);
      if (answer.code === undefined) await wake(here, id, null).catch(() => undefined);
      return answer.code === undefined ? undefined : answer;
    });
    expect(failure).toMatchObject({
      code: 'admission_denied',
      message: expect.stringContaining(`The webhook "${hookName}" of the cluster has not answered`),
    });
  });

  it('a webhook that takes longer than the limit of a read is awaited', async () => {
    await mine.create('Deployment', sleeper('slow', 1, { container: { image: 'none:none' } }));
    const ca = certificate({ commonName: 'webhook ca' });
    const leaf = certificate({ commonName: 'webhook', issuer: ca, names: ['127.0.0.1'] });
    let asked = 0;
    const server = createHttpsServer({ cert: leaf.cert, key: leaf.key }, (request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', async () => {
        const { uid, userInfo } = JSON.parse(Buffer.concat(parts).toString()).request;
        const isOurs = userInfo.username !== 'system:serviceaccount:kube-system:deployment-controller';
        if (isOurs) asked += 1;
        // Once only: what is tested is one answer that takes long.
        if (isOurs && asked === 1) await realTime.advance(WEBHOOK_MS);
        const answer = { uid, allowed: true };
        response.setHeader('content-type', 'application/json');
        response.end(
          JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer }),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => void server.close());
    const { port } = server.address() as AddressInfo;
    const caBundle = Buffer.from(ca.cert).toString('base64');
    const here = await begin();
    const { id } = here.find(named('slow'));
    await guard({ timeoutSeconds: 30, clientConfig: { url: `https://127.0.0.1:${port}/`, caBundle } });
    await eventually(async () => {
      expect(await sleep(here, id)).toEqual({ replicas: 0, slept: true });
      // The API server takes a moment to know the webhook.
      if (asked === 0) await wake(here, id, null);
      return asked > 0;
    });
    expect((await mine.get('Deployment', 'slow')).spec.replicas).toBe(0);
  }, 120_000);

  it('sleeps and wakes succeed over a slow network while others write to the object all the time', async () => {
    await mine.create('Deployment', sleeper('busy', 2, { container: { image: 'none:none' } }));
    const server = new URL(parseKubeconfig(kubeconfig(), Date.now()).server);
    const proxy = createServer((client) => {
      const far = connect(Number(server.port || 443), server.hostname);
      const carry = (from: Socket, to: Socket): void => {
        from.on('error', () => to.destroy()).on('close', () => setTimeout(() => to.destroy(), DELAY_MS));
        from.on('data', (bytes: Buffer) => setTimeout(() => to.writable && to.write(bytes), DELAY_MS));
      };
      carry(client, far);
      carry(far, client);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    afterThisTest(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    const through = kubeconfig().replace(
      /server: .*/,
      `server: https://127.0.0.1:${port}\n    tls-server-name: ${server.hostname}`,
    );
    const here = await begin(through);
    let isOver = false;
    let writes = 0;
    const writing = (async () => {
      for (; !isOver; writes += 1) {
        const patch = { metadata: { annotations: { written: String(writes) } } };
        await api('PATCH', mine.path('Deployment', 'busy'), patch, 'application/merge-patch+json');
        await realTime.advance(WRITE_INTERVAL_MS);
      }
    })();
    const { id } = here.find(named('busy'));
    for (let round = 0; round < 4; round += 1) {
      expect(await sleep(here, id)).toEqual({ replicas: 0, slept: true });
      expect(await wake(here, id, null)).toEqual({ replicas: 2 });
    }
    isOver = true;
    await writing;
    expect(writes).toBeGreaterThan(0);
  });

  describe('an account', () => {
    const detail = (here: Cloud, id: string): Json => JSON.parse(here.views.cluster(id) ?? '');

    it('of one namespace can be used once the namespace is given', async () => {
      await mine.create('Deployment', sleeper('limited', 1, { container: { image: 'none:none' } }));
      const { token } = await serviceAccount(mine.namespace, 'editor');
      const here = await cloud();
      const register = (name: string, config: string, namespaces: string[]) =>
        here.clusters.ask('register', { input: clusterInput({ name, kubeconfig: config, namespaces }) });
      const { id } = await register('unnamed', kubeconfigFor(token), []);
      await expect(here.clusters.ask('sync', { id })).rejects.toMatchObject({
        code: 'cluster_denied',
        detail: { hint: /name these in `namespaces`/ },
      });
      for (const [name, config, namespaces] of [
        ['registered', kubeconfigFor(token), [mine.namespace, 'default']],
        ['in the kubeconfig', kubeconfigFor(token, mine.namespace), []],
      ] as const) {
        const { id: other } = await register(name, config, [...namespaces]);
        expect((await here.clusters.ask('sync', { id: other })).synced).toBeGreaterThanOrEqual(1);
        expect(detail(here, other)).toMatchObject({
          scope: [
            { kind: 'Deployment', namespaces: [mine.namespace] },
            { kind: 'StatefulSet', namespaces: [mine.namespace] },
          ],
          capabilities: { sync: true, watch: true, sleep: true, tether: true, denied: [] },
        });
        const row = here.list(other).find((one) => one.name === 'limited');
        expect(await sleep(here, row.id)).toEqual({ replicas: 0, slept: true });
        expect(await wake(here, row.id, null)).toEqual({ replicas: 1 });
      }
    });

    it('that was revoked is detected, and renewed with everything kept', async () => {
      await mine.create('Deployment', sleeper('kept', 0));
      const first = await serviceAccount(mine.namespace, 'first');
      const second = await serviceAccount(mine.namespace, 'second');
      const here = await cloud();
      const id = await here.add(kubeconfigFor(first.token, mine.namespace));
      expect(detail(here, id).credentials_expire_at).toMatch(/^20/);
      const { id: workloadId } = here.find(named('kept'));
      await here.workloads.ask('autoSleep', { id: workloadId, enabled: true, minutes: 55 });
      await first.end();
      await eventually(async () => {
        await here.clusters.ask('sync', { id }).catch(() => undefined);
        return detail(here, id).authenticated === false;
      });
      const nothing = { name: null, provider: null, namespaces: null, renewToken: false };
      const change = { ...nothing, kubeconfig: kubeconfigFor(second.token, mine.namespace) };
      await here.clusters.ask('change', { id, change });
      await eventually(() => detail(here, id).authenticated === true);
      expect(here.find(named('kept'))).toMatchObject({ id: workloadId, idle_timeout_minutes: 55 });
      await mine.scale('Deployment', 'kept', 1);
      await here.until(named('kept'), (row) => row.replicas === 1);
    });
  });
});
