// deploy/chart by Helm itself: what it renders, and a release on the real cluster through an upgrade.
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { afterThisTest } from '../kit/actors.ts';
import '../kit/built_program.ts';
import { eventually } from '../kit/eventually.ts';
import {
  CHART,
  chartForOldCluster,
  hasHelm,
  helm,
  NO_HELM,
  postRenderer,
  render,
  valuesOf,
} from '../kit/helm.ts';
import type { Json } from '../kit/kube_double.ts';
import { api, create, describeReal, sandbox } from '../kit/kube_real.ts';
import { hasPostgres, NO_POSTGRES, type PostgresServer, startPostgres } from '../kit/postgres.ts';

/** As Kubernetes reads it: 0440 is octal. */
const YAML = { version: '1.1', merge: true } as const;
const objectsOf = (text: string): Json[] => parseAllDocuments(text, YAML).map((document) => document.toJS());
const ofKind = (objects: readonly Json[], kind: string): Json =>
  objects.find((object) => object.kind === kind) ?? expect.unreachable(`no ${kind}`);

const baseOf = (name: string): Json => parse(readFileSync(join(CHART, '../base', name), 'utf8'), YAML);

/** The pod of a Deployment without what depends on the release: its image and the labels of its selector. */
function podOf(deployment: Json): Json {
  const { spec } = structuredClone(deployment).spec.template;
  for (const constraint of spec.topologySpreadConstraints) delete constraint.labelSelector;
  for (const container of [...spec.initContainers, ...spec.containers]) {
    delete container.image;
    delete container.imagePullPolicy;
  }
  return spec;
}

describe.skipIf(!hasHelm)(`the chart${NO_HELM}`, () => {
  it('passes the linter, and renders the pods of the base', async () => {
    expect(await helm('lint', '--strict', CHART)).toContain('0 chart(s) failed');
    const objects = objectsOf(await render());
    const deployment = ofKind(objects, 'Deployment');
    const base = baseOf('deployment.yaml');
    expect(podOf(deployment)).toEqual(podOf(base));
    expect([deployment.spec.replicas, deployment.spec.strategy]).toEqual([
      base.spec.replicas,
      base.spec.strategy,
    ]);
    expect(ofKind(objects, 'ConfigMap').data).toEqual(baseOf('config.yaml').data);
    expect(ofKind(objects, 'Service').spec.ports).toEqual(baseOf('service.yaml').spec.ports);
  });

  it('selects its own pods alone, also beside another release', async () => {
    const objects = objectsOf(await render());
    const labels = { 'app.kubernetes.io/name': 'berth', 'app.kubernetes.io/instance': 'berth' };
    const deployment = ofKind(objects, 'Deployment');
    const { template } = deployment.spec;
    expect(template.metadata.labels).toEqual(labels);
    expect([
      deployment.spec.selector.matchLabels,
      template.spec.topologySpreadConstraints[0].labelSelector.matchLabels,
      ofKind(objects, 'Service').spec.selector,
      ofKind(objects, 'PodDisruptionBudget').spec.selector.matchLabels,
      ofKind(objects, 'NetworkPolicy').spec.podSelector.matchLabels,
    ]).toEqual(Array(5).fill(labels));
  });

  it('renders every option that its values document', async () => {
    const objects = objectsOf(
      await render([
        ...['image.repository=r.example.com/b', 'image.tag=1.0', 'image.pullPolicy=Always', 'replicas=2'],
        ...['imagePullSecrets[0].name=pull', 'secretName=own', 'serviceAccountName=account'],
        ...['resources.limits.memory=2Gi', 'nodeSelector.disk=fast', 'tolerations[0].key=team'],
        ...['affinity.nodeAffinity.x=y', 'config=[cloud]'],
        ...['ingress.enabled=true', 'ingress.className=nginx', 'ingress.host=b.example.com'],
        ...['ingress.tlsSecretName=tls', 'ingress.annotations.own=a'],
        String.raw`ingress.annotations.nginx\.ingress\.kubernetes\.io/proxy-read-timeout="60"`,
        ...['serviceMonitor.enabled=true', 'serviceMonitor.labels.release=prometheus'],
        ...['serviceMonitor.tokenSecret.name=viewer', 'serviceMonitor.tokenSecret.key=t'],
      ]),
    );
    const { replicas, template } = ofKind(objects, 'Deployment').spec;
    const { containers, initContainers, volumes, ...pod } = template.spec;
    expect(replicas).toBe(2);
    expect(pod).toMatchObject({
      imagePullSecrets: [{ name: 'pull' }],
      serviceAccountName: 'account',
      nodeSelector: { disk: 'fast' },
      tolerations: [{ key: 'team' }],
      affinity: { nodeAffinity: { x: 'y' } },
    });
    for (const container of [...initContainers, ...containers]) {
      expect(container).toMatchObject({ image: 'r.example.com/b:1.0', imagePullPolicy: 'Always' });
      const secrets = container.env.flatMap(({ valueFrom }: Json) => valueFrom?.secretKeyRef.name ?? []);
      expect(secrets).toEqual(['own', 'own']);
    }
    expect(containers[0].resources.limits.memory).toBe('2Gi');
    expect(volumes.find(({ name }: Json) => name === 'secret').secret.secretName).toBe('own');
    expect(ofKind(objects, 'ConfigMap').data['config.toml']).toBe('[cloud]\n');
    const ingress = ofKind(objects, 'Ingress');
    expect(ingress.metadata.annotations).toEqual({
      own: 'a',
      'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
      'nginx.ingress.kubernetes.io/proxy-read-timeout': '"60"',
      'nginx.ingress.kubernetes.io/proxy-send-timeout': '3600',
    });
    expect(ingress.spec).toMatchObject({
      ingressClassName: 'nginx',
      tls: [{ hosts: ['b.example.com'], secretName: 'tls' }],
      rules: [{ host: 'b.example.com' }],
    });
    const monitor = ofKind(objects, 'ServiceMonitor');
    expect(monitor.metadata.labels.release).toBe('prometheus');
    const credentials = { name: 'viewer', key: 't' };
    expect(monitor.spec.endpoints).toEqual(
      ['/metrics', '/k8s/metrics'].map((path) => ({ port: 'http', path, authorization: { credentials } })),
    );
  });
});

const PORT = 11_613;
const OWN_KINDS = ['services', 'configmaps', 'serviceaccounts'];
const TOKEN = randomBytes(24).toString('hex');
const base64 = (value: string | Buffer): string => Buffer.from(value).toString('base64');

describeReal('a release of the chart', () => {
  const { namespace } = sandbox();
  const core = `/api/v1/namespaces/${namespace}`;
  const release = ['--namespace', namespace, '--kubeconfig', process.env['BERTH_TEST_KUBECONFIG'] ?? ''];
  let postgres: PostgresServer;

  beforeAll(async () => {
    if (hasPostgres) postgres = await startPostgres();
  });
  afterAll(() => postgres?.remove());

  /** The URL of a new database as pods reach it: over the address of their node. */
  async function databaseUrl(): Promise<string> {
    const url = new URL(await postgres.createDatabase());
    const { body } = await api('GET', '/api/v1/nodes');
    const { address } = body.items[0].status.addresses.find(({ type }: Json) => type === 'InternalIP');
    const way = createServer((client) => {
      const server = connect(postgres.port, '127.0.0.1');
      client.pipe(server).pipe(client);
      for (const [one, other] of [
        [client, server],
        [server, client],
      ] as const)
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
    });
    await new Promise<void>((resolve) => way.listen(0, address, resolve));
    afterThisTest(() => void way.close());
    const bound = way.address();
    url.hostname = address;
    url.port = String(typeof bound === 'object' ? bound?.port : '');
    url.searchParams.set('sslmode', 'disable');
    return url.href;
  }

  /** The addresses of the pods that the service would ask now. */
  async function ready(): Promise<string[]> {
    const { body } = await api('GET', `${core}/endpoints/berth`);
    return (body.subsets ?? []).flatMap(({ addresses }: Json) => (addresses ?? []).map(({ ip }: Json) => ip));
  }

  async function ask(
    ip: string,
    method: string,
    path: string,
    body?: Json,
  ): Promise<{ status: number; body: Json }> {
    const answer = await fetch(`http://${ip}:${PORT}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: await answer.json() };
  }

  it.skipIf(!hasHelm || !hasPostgres)(
    `installs, serves every request during an upgrade, and leaves nothing${NO_HELM}${NO_POSTGRES}`,
    { timeout: 300_000 },
    async () => {
      await create(`${core}/secrets`, {
        metadata: { name: 'berth' },
        data: {
          key: base64(randomBytes(32)),
          token: base64(TOKEN),
          'database-url': base64(await databaseUrl()),
        },
      });
      const chart = chartForOldCluster();
      const put = (...values: string[]): Promise<string> =>
        helm(
          ...['upgrade', '--install', 'berth', chart, ...release, '--wait', '--timeout', '240s'],
          ...['--post-renderer', postRenderer(), ...valuesOf(['resources.requests.memory=64Mi', ...values])],
        );
      await put();
      const first = await ready();
      expect(first).toHaveLength(3);
      const [one = ''] = first;
      const kubeconfig = JSON.stringify({
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
        clusters: [{ name: 'a', cluster: { server: 'https://192.0.2.1:6443' } }],
        users: [{ name: 'a', user: { token: 't' } }],
      });
      expect((await ask(one, 'POST', '/k8s/clusters', { name: 'far', kubeconfig })).status).toBe(201);
      const names = async (ip: string): Promise<Json> => {
        const { status, body } = await ask(ip, 'GET', '/k8s/clusters');
        return [status, status === 200 && body.map(({ name }: Json) => name)];
      };
      for (const ip of first) expect(await names(ip)).toEqual([200, ['far']]);

      // Clients that try again, as docs/server.md asks of them, notice nothing of the upgrade.
      let isOver = false;
      let answered = 0;
      const clients = (async () => {
        while (!isOver) {
          await eventually(async () => {
            const [ip = ''] = await ready();
            return JSON.stringify(await names(ip).catch(() => null)) === '[200,["far"]]';
          });
          answered += 1;
          await pause(20);
        }
      })();
      await put('config=[cloud]\nbind = "0.0.0.0"\nbehind_tls = true\nkey_file = "/etc/berth/secret/key"\n');
      isOver = true;
      await clients;
      expect(answered).toBeGreaterThan(0);
      await eventually(async () => (await ready()).length === 3);
      const second = await ready();
      expect(second.filter((ip) => first.includes(ip))).toEqual([]);
      for (const ip of second) expect(await names(ip)).toEqual([200, ['far']]);

      await helm('uninstall', 'berth', ...release);
      const selected = 'labelSelector=app.kubernetes.io%2Finstance%3Dberth';
      await eventually(async () => {
        const lists = await Promise.all(OWN_KINDS.map((kind) => api('GET', `${core}/${kind}?${selected}`)));
        return lists.every(({ body }) => body.items.length === 0);
      });
    },
  );
});
