import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import {
  type KubeCluster,
  openKubeCluster,
  workloadsResource,
} from '../../../src/adapters/kube/kube_cluster.ts';
import { kubeFailure } from '../../../src/adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../../src/adapters/kube/kube_http.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest, realTime, virtualClock } from '../../kit/actors.ts';
import { certificate } from '../../kit/certificates.ts';
import { eventually } from '../../kit/eventually.ts';
import { type Double, type Fault, kubeDouble, workload } from '../../kit/kube_double.ts';

const ANY = { allow: 'any', apiOnLoopback: true };
const hello = { kind: 'Deployment', namespace: 'web', name: 'hello' } as const;
const deployments = workloadsResource('Deployment');

let double: Double;
let cluster: KubeCluster;
beforeEach(async () => {
  double = await kubeDouble();
  cluster = openKubeCluster(double.access, ANY, realTime);
});
afterEach(async () => {
  await cluster.close();
  await double.stop();
});
const any = (): boolean => true;
/** Advances the clock in small steps, so that sockets keep pace, until `work` is over. */
async function untilOver(work: Promise<unknown>, turn: () => Promise<void>): Promise<void> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await turn();
    await Promise.race([over, realTime.advance(5)]);
  }
  await over;
}
const saidOf = async (work: Promise<unknown>): Promise<{ code: string; message: string }> => {
  const error = await work.then(
    () => new Error('it succeeded'),
    (caught: unknown) => kubeFailure(caught),
  );
  return { code: 'code' in error ? String(error.code) : '', message: error.message };
};

describe('a listing', () => {
  it('reads every page, in two requests of 500 and one of the rest', async () => {
    for (let index = 0; index < 1_203; index += 1)
      double.put('Deployment', workload('web', `w${index}`, index % 3));
    const { rows, version } = await cluster.list(deployments);
    expect(rows).toHaveLength(1_203);
    expect(new Set(rows.map((row) => row.uid)).size).toBe(1_203);
    expect(version).toBe(String(100 + 1_203));
    expect(double.requests.map(({ query }) => [query.get('limit'), query.has('continue')])).toEqual([
      ['500', false],
      ['500', true],
      ['500', true],
    ]);
  });

  it('starts again when its pages have expired meanwhile, the last time with a single page', async () => {
    for (let index = 0; index < 600; index += 1) double.put('Deployment', workload('web', `w${index}`, 1));
    const expired = { kind: 'status', status: 410, reason: 'Expired' } as const;
    double.fault(({ query }) => query.has('continue'), expired, 9);
    expect((await cluster.list(deployments)).rows).toHaveLength(600);
    expect(double.requests.map(({ query }) => query.get('limit'))).toEqual([
      ...['500', '500', '500', '500'],
      String(CLOUD.maxWorkloadsPerKind),
    ]);
    double.fault(any, expired, 9);
    expect(await saidOf(cluster.list(deployments))).toMatchObject({
      code: 'cluster_unreachable',
      message: /410/,
    });
  });

  it('does not read for ever from a server that repeats its token', async () => {
    const page = { metadata: { resourceVersion: '1', continue: 'again' }, items: [] };
    double.fault(any, { kind: 'raw', status: 200, headers: {}, body: JSON.stringify(page) }, 99);
    expect((await cluster.list(deployments)).rows).toEqual([]);
    expect(double.requests).toHaveLength(2);
  });

  it('does not read for ever from a server that gives empty pages with ever new tokens', async () => {
    let asked = 0;
    const empty = {
      kind: 'raw' as const,
      status: 200,
      headers: {},
      get body() {
        asked += 1;
        return JSON.stringify({ metadata: { resourceVersion: '1', continue: `token ${asked}` }, items: [] });
      },
    };
    double.fault(any, empty, 1_000);
    expect(await saidOf(cluster.list(deployments))).toMatchObject({
      code: 'cluster_unreachable',
      message: /more than 800 pages/,
    });
    expect(asked).toBe(800);
  });

  it('uses few connections for many calls', async () => {
    double.put('Deployment', workload('web', 'hello', 1));
    const rows = await Promise.all(Array.from({ length: 70 }, () => cluster.getWorkload(hello)));
    expect(rows.every((row) => row?.seen.replicas === 1)).toBe(true);
    expect(
      await saidOf(Promise.all(Array.from({ length: 80 }, () => cluster.getWorkload(hello)))),
    ).toMatchObject({
      code: 'daemon_busy',
    });
  });
});

describe('a watch', () => {
  it('uses the connection on which its version was read', async () => {
    const stop = new AbortController();
    for (let round = 1; round <= 3; round += 1) {
      const version = await cluster.currentVersion(deployments);
      const opened = new Promise<void>((resolve) => {
        const handler = { onOpen: resolve, onEvent: () => undefined };
        cluster.watch(deployments, version, handler, stop.signal).catch(() => undefined);
      });
      await opened;
      expect(double.connections).toBe(round);
    }
    stop.abort();
  });
});

describe('a workload', () => {
  it('becomes a row with few fields', async () => {
    double.put(
      'Deployment',
      workload('web', 'hello', 2, { labels: { 'argocd.argoproj.io/instance': 'shop' } }),
    );
    expect((await cluster.getWorkload(hello))?.seen).toEqual({
      ...hello,
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      version: '101',
      createdAt: null,
      generation: 1,
      replicas: 2,
      pods: 2,
      ready: 2,
      observed: true,
      labels: '\napp=hello\nargocd.argoproj.io/instance=shop\n',
      selector: 'app=hello',
      replicaSet: null,
      requests: { cpu: 0, memory: 0 },
      receipt: null,
      wakeReceipt: null,
      activity: null,
      sleep: null,
      scaledBy: 'kubectl-client-side-apply',
      keeper: 'Argo CD',
    });
    expect(await cluster.getWorkload({ ...hello, name: 'absent' })).toBeNull();
  });
});

describe('a patch', () => {
  it("is a JSON patch with Berth's field manager", async () => {
    double.put('Deployment', workload('web', 'hello', 2));
    const seen = await cluster.patchWorkload(hello, [{ op: 'replace', path: '/spec/replicas', value: 0 }]);
    expect(seen).toMatchObject({ replicas: 0, scaledBy: 'berth' });
    expect(double.requests.at(-1)).toMatchObject({
      method: 'PATCH',
      contentType: 'application/json-patch+json',
    });
    expect(double.requests.at(-1)?.query.get('fieldManager')).toBe('berth');
  });
});

describe('failures', () => {
  beforeEach(() => double.put('Deployment', workload('web', 'hello', 2)));

  it.each<[string, Fault, string, RegExp]>([
    [
      'a redirect',
      { kind: 'raw', status: 302, headers: { location: 'http://169.254.169.254/' }, body: '' },
      'cluster_unreachable',
      /302.*redirect/,
    ],
    [
      'a permanent redirect',
      { kind: 'raw', status: 308, headers: { location: '/version' }, body: '' },
      'cluster_unreachable',
      /308/,
    ],
    [
      'a page of a proxy',
      { kind: 'raw', status: 200, headers: {}, body: '<html>' },
      'cluster_unreachable',
      /does not speak/,
    ],
    [
      'another object',
      { kind: 'raw', status: 200, headers: {}, body: '{"metadata":{"name":"other"}}' },
      'cluster_unreachable',
      /not the Deployment/,
    ],
    [
      'an error page',
      { kind: 'raw', status: 503, headers: {}, body: '<html>' },
      'cluster_unreachable',
      /answered 503/,
    ],
    [
      '500',
      { kind: 'status', status: 500, message: 'etcd\u0007 \n\n is away' },
      'cluster_unreachable',
      /answered 500 .*: etcd is away$/,
    ],
    [
      '401',
      { kind: 'status', status: 401, reason: 'Unauthorized', message: 'Unauthorized' },
      'cluster_denied',
      /401/,
    ],
    [
      '403',
      { kind: 'status', status: 403, message: 'no' },
      'cluster_denied',
      /may not get deployments.apps hello in namespace web: no/,
    ],
    ['an answer without end', { kind: 'endless' }, 'cluster_unreachable', /more than 4194304 bytes/],
  ])('%s is explained', async (_, fault, code, message) => {
    double.fault(any, fault);
    expect(await saidOf(cluster.getWorkload(hello))).toEqual({
      code,
      message: expect.stringMatching(message),
    });
    expect(double.requests).toHaveLength(1);
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
  });

  it('that repeat the request are reported without the token', async () => {
    const { credential } = double.access;
    const token = credential.kind === 'token' ? credential.token : '';
    expect(token.length).toBeGreaterThan(8);
    for (const message of [`you sent Bearer ${token}`, `${'x'.repeat(280)} ${token}`]) {
      double.fault(any, { kind: 'status', status: 400, reason: token, message });
      const said = await saidOf(cluster.list(deployments));
      expect(said.message).toContain('[removed]');
      expect(said.message).not.toContain(token.slice(0, 8));
    }
  });

  it('of a connection are retried for a read, and explained when they persist', async () => {
    double.fault(any, { kind: 'reset' }, CLOUD.maxReadRetries);
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
    double.fault(any, { kind: 'reset' }, CLOUD.maxReadRetries + 1);
    expect(await saidOf(cluster.getWorkload(hello))).toEqual({
      code: 'cluster_unreachable',
      message: expect.stringMatching(/does not answer/),
    });
  });

  it('of an untrusted certificate are explained, with what to check', async () => {
    const { cert } = certificate({ commonName: 'another ca' });
    for (const wrong of [{ ca: cert }, { tlsServerName: 'another.example' }]) {
      const other = openKubeCluster({ ...double.access, ...wrong }, ANY, realTime);
      const error = await other.getWorkload(hello).catch(kubeFailure);
      await other.close();
      expect(error).toMatchObject({
        code: 'cluster_unreachable',
        message: expect.stringMatching(/cannot be reached: .*certificate/),
        detail: { hint: expect.stringContaining('certificate-authority-data') },
      });
    }
  });

  it('by a response that is not HTTP, or never final, are explained as any other', async () => {
    double.fault(any, { kind: 'not http' });
    expect(await saidOf(cluster.getWorkload(hello))).toEqual({
      code: 'cluster_unreachable',
      message: expect.stringMatching(/does not answer: .*HTTP/),
    });
    double.fault(any, { kind: 'interim' });
    expect(await saidOf(cluster.getWorkload(hello))).toEqual({
      code: 'cluster_unreachable',
      message: expect.stringMatching(/interim answers/),
    });
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
  });

  it('of a connection are not retried for a change', async () => {
    double.fault(any, { kind: 'reset' });
    const steps = [{ op: 'replace', path: '/spec/replicas', value: 0 }] as const;
    expect(await saidOf(cluster.patchWorkload(hello, steps))).toMatchObject({ code: 'cluster_unreachable' });
    expect(double.requests).toHaveLength(1);
  });

  it('of all connections at once cause no read to fail', async () => {
    const ready = await Promise.all(Array.from({ length: 8 }, () => cluster.getWorkload(hello)));
    expect(ready).toHaveLength(8);
    // Each of the connections that are open breaks in the middle of a call.
    double.fault(any, { kind: 'reset' }, 8);
    const answers = await Promise.all(Array.from({ length: 60 }, () => cluster.getWorkload(hello)));
    expect(answers.map((answer) => answer?.seen.replicas)).toEqual(Array(60).fill(2));
  });

  it('let one call test whether the cluster is back while the others wait', async () => {
    const clock = virtualClock();
    const patient = openKubeCluster(double.access, ANY, clock);
    afterThisTest(() => patient.close());
    await double.stop();
    for (let call = 0; call < CLOUD.circuitBreaker.failureThreshold; call += 1)
      await saidOf(patient.getWorkload(hello));
    await double.start();
    await clock.advance(CLOUD.circuitBreaker.initialOpenMs);
    let isHeld = true;
    double.fault(() => isHeld, { kind: 'late', ms: 300 }, 1);
    const calls = Array.from({ length: 20 }, () => patient.getWorkload(hello));
    await eventually(() => double.requests.length > 0);
    expect(double.requests).toHaveLength(1);
    isHeld = false;
    expect((await Promise.all(calls)).every((answer) => answer?.seen.replicas === 2)).toBe(true);
    expect(double.requests).toHaveLength(20);
  });

  it('with 429 are retried after the time that the server requests', async () => {
    double.fault(any, { kind: 'status', status: 429, headers: { 'retry-after': '0' } }, 3);
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
    expect(double.requests).toHaveLength(4);
  });

  it('with 429 and a request to retry at once cause no flood of requests', async () => {
    double.fault(any, { kind: 'status', status: 429, headers: { 'retry-after': '0' } }, Infinity);
    const clock = virtualClock();
    const http = createKubeHttp(createClusterDialer(double.access, ANY), clock);
    afterThisTest(() => http.close());
    const deadlineMs = 1.5 * CLOUD.minRetryAfterMs;
    const refused = expect(http.call({ action: 'read', path: '/version', deadlineMs })).rejects.toMatchObject(
      { status: { status: 429 } },
    );
    await untilOver(refused, () => clock.advance(deadlineMs / 20));
    expect(double.requests.length).toBeLessThanOrEqual(2);
  });

  it('of an unreachable cluster pause requests for some time, which are then retried', async () => {
    const clock = virtualClock();
    const patient = openKubeCluster(double.access, ANY, clock);
    afterThisTest(() => patient.close());
    const { port } = double;
    await double.stop();
    for (let call = 0; call < 3; call += 1)
      expect(await saidOf(patient.getWorkload(hello))).toMatchObject({
        code: 'cluster_unreachable',
        message: /ECONNREFUSED/,
      });
    const refusal = { code: 'cluster_unreachable', message: /retrying shortly/ };
    expect(await saidOf(patient.getWorkload(hello))).toMatchObject(refusal);
    await double.start();
    expect(double.port).toBe(port);
    await clock.advance(CLOUD.circuitBreaker.initialOpenMs - 1);
    expect(await saidOf(patient.getWorkload(hello))).toMatchObject(refusal);
    await clock.advance(1);
    expect((await patient.getWorkload(hello))?.seen.replicas).toBe(2);
  });

  it('with an error response do not count as unreachable', async () => {
    double.fault(any, { kind: 'status', status: 500 }, 10);
    for (let call = 0; call < 10; call += 1) await saidOf(cluster.getWorkload(hello));
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
  });
});

describe("the account's rights", () => {
  it('are those the cluster reports, one by one', async () => {
    expect(await cluster.capabilities(null)).toEqual({
      sync: true,
      watch: true,
      sleep: true,
      tether: true,
      denied: [],
    });
    double.denied.add('patch statefulsets').add('create pods/portforward');
    expect(await cluster.capabilities(null)).toEqual({
      sync: true,
      watch: true,
      sleep: false,
      tether: false,
      denied: ['patch statefulsets.apps', 'create pods/portforward'],
    });
    expect(double.requests.find(({ path }) => path.includes('selfsubject'))?.body.spec).toEqual({
      resourceAttributes: { verb: 'list', group: 'apps', resource: 'deployments', subresource: '' },
    });
  });

  it('are read with the version and the autoscalers of a workload', async () => {
    expect(await cluster.version()).toBe('v1.33.0-double');
    double.addAutoscaler('web', 'scaler', 'Deployment', 'hello');
    double.addAutoscaler('web', 'other', 'Deployment', 'other');
    double.addAutoscaler('web', 'of-keda', 'Deployment', 'hello', 7, 'queue');
    expect(await cluster.autoscalers(hello)).toEqual([
      { name: 'scaler', maxReplicas: 5, scaledObject: null },
      { name: 'of-keda', maxReplicas: 7, scaledObject: 'queue' },
    ]);
  });
});
