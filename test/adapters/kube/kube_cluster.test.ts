import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClusterDialer } from '../../../src/adapters/cluster_dialer.ts';
import {
  type KubeCluster,
  openKubeCluster,
  workloadsResource,
} from '../../../src/adapters/kube/kube_cluster.ts';
import { kubeFailure, WireError } from '../../../src/adapters/kube/kube_errors.ts';
import { createKubeHttp } from '../../../src/adapters/kube/kube_http.ts';
import { LineTooLong, lineSplitter } from '../../../src/adapters/kube/line_splitter.ts';
import {
  isOlderVersion,
  kubeStatusOf,
  listPageOf,
  losesVolumes,
  seenWorkloadOf,
  watchEventOf,
} from '../../../src/adapters/kube/parse_objects.ts';
import { CLOUD } from '../../../src/settings/limits.ts';
import { afterThisTest, realTime, virtualClock } from '../../kit/actors.ts';
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
/** Turns the clock a little at a time, so that sockets keep pace, until `work` is over. */
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
  it('takes every page, in two requests of 500 and one of the rest', async () => {
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

  it('begins anew when its pages have expired meanwhile', async () => {
    for (let index = 0; index < 600; index += 1) double.put('Deployment', workload('web', `w${index}`, 1));
    double.fault(({ query }) => query.has('continue'), { kind: 'status', status: 410, reason: 'Expired' }, 2);
    expect((await cluster.list(deployments)).rows).toHaveLength(600);
    double.fault(({ query }) => query.has('continue'), { kind: 'status', status: 410, reason: 'Expired' }, 9);
    expect(await saidOf(cluster.list(deployments))).toMatchObject({
      code: 'cluster_unreachable',
      message: /410/,
    });
  });

  it('is not read for ever from a server that repeats its token', async () => {
    const page = { metadata: { resourceVersion: '1', continue: 'again' }, items: [] };
    double.fault(any, { kind: 'raw', status: 200, headers: {}, body: JSON.stringify(page) }, 99);
    expect((await cluster.list(deployments)).rows).toEqual([]);
    expect(double.requests).toHaveLength(2);
  });

  it('is not read for ever from a server that gives empty pages with ever new tokens', async () => {
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

describe('an object', () => {
  it('becomes a slim row', async () => {
    double.put(
      'Deployment',
      workload('web', 'hello', 2, { labels: { 'argocd.argoproj.io/instance': 'shop' } }),
    );
    expect((await cluster.getWorkload(hello))?.seen).toEqual({
      ...hello,
      uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      version: '101',
      replicas: 2,
      pods: 2,
      ready: 2,
      observed: true,
      selector: 'app=hello',
      receipt: null,
      scaledBy: 'kubectl-client-side-apply',
      keeper: 'Argo CD',
    });
    expect(await cluster.getWorkload({ ...hello, name: 'absent' })).toBeNull();
  });

  it('leaves nothing of its long texts in memory', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    const used = (): number => {
      collect();
      return process.memoryUsage().heapUsed;
    };
    const MIB = 1024 * 1024;
    const fieldsV1 = { 'f:spec': { 'f:replicas': {} } };
    const before = used();
    const rows = Array.from({ length: 50 }, (_, index) =>
      seenWorkloadOf('Deployment', {
        metadata: {
          ...{ name: 'a', namespace: 'b', uid: 'u', resourceVersion: '1' },
          managedFields: [{ manager: `${index} ${'x'.repeat(MIB)}`, fieldsV1 }],
        },
      }),
    );
    expect(used() - before).toBeLessThan(10 * MIB);
    expect(rows.map((row) => row?.scaledBy?.length)).toEqual(rows.map(() => 128));
  });

  it('that is no proper one is left out', () => {
    const good = { ...workload('web', 'hello', 1) };
    good.metadata = { ...good.metadata, uid: 'u-1', resourceVersion: '7' };
    expect(seenWorkloadOf('Deployment', good)).toMatchObject({ name: 'hello', replicas: 1 });
    const metadata = (more: object) => ({ ...good, metadata: { ...good.metadata, ...more } });
    for (const bad of [
      null,
      7,
      'x',
      [],
      {},
      { metadata: 7 },
      metadata({ name: '../../secrets' }),
      metadata({ name: 'a/b' }),
      metadata({ namespace: 'A' }),
      metadata({ name: 'x'.repeat(300) }),
      metadata({ uid: '' }),
      metadata({ uid: 'a b' }),
      metadata({ resourceVersion: 7 }),
    ])
      expect(seenWorkloadOf('Deployment', bad)).toBeUndefined();
  });

  it('gives what makes no sense as if it were not there', () => {
    const row = seenWorkloadOf('StatefulSet', {
      metadata: {
        name: 'a',
        namespace: 'b',
        uid: 'u',
        resourceVersion: '1',
        labels: 7,
        annotations: { 'berth/sleep': '{"replicas":-1}' },
        managedFields: 'x',
      },
      spec: { replicas: 'many', selector: { matchLabels: { 'a b': 'c' } } },
      status: { replicas: -1, readyReplicas: 1.5 },
    });
    expect(row).toMatchObject({
      replicas: 1,
      pods: 0,
      ready: 0,
      selector: '',
      receipt: null,
      scaledBy: null,
      keeper: null,
    });
  });

  it('may be anything: it becomes a row, nothing, or a WireError', () => {
    const hostile = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 6 }, fc.jsonValue({ maxDepth: 2 }), tie('object')),
      object: fc.dictionary(
        fc.constantFrom(
          ...[
            'metadata',
            'spec',
            'status',
            'name',
            'namespace',
            'uid',
            'resourceVersion',
            'labels',
            'annotations',
            'selector',
          ],
          ...[
            'matchLabels',
            'matchExpressions',
            'managedFields',
            'fieldsV1',
            'replicas',
            'berth/sleep',
            'type',
            'object',
            '__proto__',
          ],
        ),
        tie('value'),
      ),
    }));
    fc.assert(
      fc.property(hostile.value, (value) => {
        seenWorkloadOf('Deployment', value);
        losesVolumes(value);
        kubeStatusOf(value, null);
        for (const read of [
          () => listPageOf(value),
          () =>
            watchEventOf(Buffer.from(JSON.stringify(value)), (object) =>
              seenWorkloadOf('StatefulSet', object),
            ),
        ]) {
          try {
            read();
          } catch (error) {
            expect(error).toBeInstanceOf(WireError);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('has its selector as the API takes it', () => {
    const withSelector = (selector: object) =>
      seenWorkloadOf('Deployment', {
        metadata: { name: 'a', namespace: 'b', uid: 'u', resourceVersion: '1' },
        spec: { selector },
      })?.selector;
    expect(
      withSelector({
        matchLabels: { app: 'web', 'example.com/tier': '' },
        matchExpressions: [
          { key: 'env', operator: 'In', values: ['a', 'b'] },
          { key: 'old', operator: 'DoesNotExist' },
          { key: 'new', operator: 'Exists' },
          { key: 'zone', operator: 'NotIn', values: ['c'] },
        ],
      }),
    ).toBe('app=web,example.com/tier=,env in (a,b),!old,new,zone notin (c)');
    expect(withSelector({ matchExpressions: [{ key: 'x', operator: 'Gt', values: ['1'] }] })).toBe('');
    expect(withSelector({ matchLabels: { app: 'a,b in (c)' } })).toBe('');
    const labels = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v'.repeat(63)]));
    expect(withSelector({ matchLabels: labels(50) })).toMatch(/^k0=v+,.*,k49=v+$/);
    expect(withSelector({ matchLabels: labels(100) })).toBe('');
  });

  it('has versions that are compared as the numbers they are', () => {
    expect([
      isOlderVersion('9', '10'),
      isOlderVersion('10', '9'),
      isOlderVersion('10', '10'),
      isOlderVersion('a', '10'),
    ]).toEqual([true, false, false, false]);
  });
});

describe('a patch', () => {
  it('is a merge patch with our field manager', async () => {
    double.put('Deployment', workload('web', 'hello', 2));
    const seen = await cluster.patchWorkload(hello, { spec: { replicas: 0 } });
    expect(seen).toMatchObject({ replicas: 0, scaledBy: 'berth' });
    expect(double.requests.at(-1)).toMatchObject({
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
    });
    expect(double.requests.at(-1)?.query.get('fieldManager')).toBe('berth');
  });
});

describe('what goes wrong', () => {
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
    ['a broken connection', { kind: 'reset' }, 'cluster_unreachable', /does not answer/],
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

  it('429 is tried again after the time the server asks for', async () => {
    double.fault(any, { kind: 'status', status: 429, headers: { 'retry-after': '0' } }, 3);
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
    expect(double.requests).toHaveLength(4);
  });

  it('429 with a call for the next attempt at once makes no storm', async () => {
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

  it('a cluster that is down is left alone for a while, then tried again', async () => {
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
    const refusal = { code: 'cluster_unreachable', message: /tried again shortly/ };
    expect(await saidOf(patient.getWorkload(hello))).toMatchObject(refusal);
    await double.start();
    expect(double.port).toBe(port);
    await clock.advance(CLOUD.circuitBreaker.initialOpenMs - 1);
    expect(await saidOf(patient.getWorkload(hello))).toMatchObject(refusal);
    await clock.advance(1);
    expect((await patient.getWorkload(hello))?.seen.replicas).toBe(2);
  });

  it('an answer with an error does not count as being down', async () => {
    double.fault(any, { kind: 'status', status: 500 }, 10);
    for (let call = 0; call < 10; call += 1) await saidOf(cluster.getWorkload(hello));
    expect((await cluster.getWorkload(hello))?.seen.replicas).toBe(2);
  });
});

describe('what the account may do', () => {
  it('is what the cluster says, right by right', async () => {
    expect(await cluster.capabilities()).toEqual({
      sync: true,
      watch: true,
      sleep: true,
      tether: true,
      denied: [],
    });
    double.denied.add('patch statefulsets').add('create pods/portforward');
    expect(await cluster.capabilities()).toEqual({
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

  it('comes with the version and the autoscalers of a workload', async () => {
    expect(await cluster.version()).toBe('v1.33.0-double');
    double.addAutoscaler('web', 'scaler', 'Deployment', 'hello');
    double.addAutoscaler('web', 'other', 'Deployment', 'other');
    expect(await cluster.autoscalers(hello)).toEqual(['scaler']);
  });
});

describe('lines', () => {
  it('are the same however the bytes were cut', () => {
    const whole = fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ' ')));
    fc.assert(
      fc.property(whole, fc.array(fc.integer({ min: 1, max: 9 })), (lines, cuts) => {
        const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''));
        const split = lineSplitter(1_000);
        const found: string[] = [];
        for (let at = 0, cut = 0; at < bytes.length; cut += 1) {
          const size = cuts[cut % Math.max(1, cuts.length)] ?? 3;
          for (const line of split(bytes.subarray(at, at + size))) found.push(Buffer.from(line).toString());
          at += size;
        }
        expect(found).toEqual(lines.filter((line) => line !== ''));
      }),
    );
  });

  it('end when one is too long', () => {
    const split = lineSplitter(4);
    expect(split(Buffer.from('1234\n12'))).toHaveLength(1);
    expect(() => split(Buffer.from('345'))).toThrow(LineTooLong);
  });
});
