// The double answers as a real server does: both get the same requests, and their answers are compared as far
// as two clusters allow.
import { request } from 'node:https';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseKubeconfig } from '../../src/adapters/kube/kubeconfig.ts';
import { eventually } from './eventually.ts';
import { type Double, type Json, kubeDouble, workload } from './kube_double.ts';
import { describeReal, kubeconfig, sandbox, sleeper } from './kube_real.ts';

interface Answer {
  status: number;
  contentType: string | undefined;
  body: Json;
}

/** Sends a request to the server of a kubeconfig; for a watch, reads lines until `until` holds. */
function send(config: string, method: string, path: string, body?: Json, until = 1): Promise<Answer> {
  const access = parseKubeconfig(config, Date.now());
  const { credential } = access;
  const login =
    credential.kind === 'certificate' ? { cert: credential.certificate, key: credential.key } : {};
  const bearer = credential.kind === 'token' ? { authorization: `Bearer ${credential.token}` } : {};
  return new Promise((resolve, reject) => {
    const sent = request(
      new URL(access.server + path),
      {
        method,
        ca: access.ca ?? '',
        ...login,
        headers: { ...bearer, ...(body ? { 'content-type': 'application/json-patch+json' } : {}) },
      },
      (answer) => {
        let text = '';
        const done = (): void => {
          const lines = text
            .split('\n')
            .filter(Boolean)
            .map((line) => JSON.parse(line));
          resolve({
            status: answer.statusCode ?? 0,
            contentType: answer.headers['content-type'],
            body: path.includes('watch=') ? lines : lines[0],
          });
          sent.destroy();
        };
        answer.on('data', (chunk) => {
          text += chunk;
          if (path.includes('watch=') && text.split('\n').length > until) done();
        });
        answer.on('end', done);
      },
    );
    sent.on('error', reject);
    sent.end(body ? JSON.stringify(body) : '');
  });
}

/** The shape of a value: names and types, without the values that differ between clusters. */
function shape(value: Json, depth = 3): Json {
  if (Array.isArray(value)) return value.length === 0 || depth === 0 ? [] : [shape(value[0], depth - 1)];
  if (typeof value !== 'object' || value === null) return typeof value;
  const keys = Object.keys(value).sort();
  return depth === 0 ? 'object' : Object.fromEntries(keys.map((key) => [key, shape(value[key], depth - 1)]));
}

const RECEIPT = '/metadata/annotations/berth~1sleep';
const scaleStep = (value: number): Json => ({ op: 'replace', path: '/spec/replicas', value });

describeReal('the double and a real API server', () => {
  const mine = sandbox();
  let double: Double;
  const both = async (
    method: string,
    path: string,
    body?: Json,
    until?: number,
  ): Promise<[Answer, Answer]> => [
    await send(kubeconfig(), method, path, body, until),
    await send(double.kubeconfig, method, path, body, until),
  ];
  const one = (name: string): string => mine.path('Deployment', name);

  beforeAll(async () => {
    double = await kubeDouble();
    for (const name of ['a', 'b', 'c']) {
      await mine.create('Deployment', sleeper(name, 0));
      double.put('Deployment', workload(mine.namespace, name, 0));
    }
    await mine.create('StatefulSet', sleeper('set', 0, { spec: { serviceName: 'set' } }));
    const set = workload(mine.namespace, 'set', 0);
    delete set.metadata.annotations;
    double.put('StatefulSet', set);
  });
  afterAll(() => double.stop());

  it('return pages of a list in the same shape, all with the same version', async () => {
    for (const config of [kubeconfig(), double.kubeconfig]) {
      const all = await send(config, 'GET', `${mine.path('Deployment')}?limit=500`);
      const first = await send(config, 'GET', `${mine.path('Deployment')}?limit=2`);
      expect(first.status).toBe(200);
      expect(first.contentType).toBe('application/json');
      expect(Object.keys(first.body)).toEqual(['kind', 'apiVersion', 'metadata', 'items']);
      expect(first.body.kind).toBe('DeploymentList');
      expect(first.body.items[0].kind).toBeUndefined();
      expect(first.body.items).toHaveLength(2);
      expect(first.body.metadata.remainingItemCount).toBe(all.body.items.length - 2);
      const rest = await send(
        config,
        'GET',
        `${mine.path('Deployment')}?limit=500&continue=${encodeURIComponent(first.body.metadata.continue)}`,
      );
      expect(rest.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
      expect(rest.body.metadata.continue).toBeUndefined();
      expect(rest.body.items).toHaveLength(all.body.items.length - 2);
    }
  });

  it('omit zeros in a status', async () => {
    const [real, ours] = await both('GET', one('a'));
    expect(real.body.status?.readyReplicas).toBeUndefined();
    expect(ours.body.status?.readyReplicas).toBeUndefined();
    expect([real.body.spec.replicas, ours.body.spec.replicas]).toEqual([0, 0]);
    expect([real.body.kind, real.body.apiVersion]).toEqual([ours.body.kind, ours.body.apiVersion]);
  });

  it.each([
    ['what is not there', 'GET', 'nope', undefined, 404, 'NotFound'],
    ['a patch of what is not there', 'PATCH', 'nope', [scaleStep(1)], 404, 'NotFound'],
  ])('return the same error for %s', async (_, method, name, body, status, reason) => {
    const [real, ours] = await both(method, one(name), body);
    for (const answer of [real, ours])
      expect(answer).toMatchObject({ status, body: { kind: 'Status', reason, code: status } });
    expect(shape(ours.body, 1)).toEqual(shape(real.body, 1));
    expect(ours.body.details.name).toBe(real.body.details.name);
  });

  it.each<[string, Json[]]>([
    ['another count', [{ op: 'test', path: '/spec/replicas', value: 7 }, scaleStep(1)]],
    ['another uid', [{ op: 'test', path: '/metadata/uid', value: 'other' }, scaleStep(1)]],
    ['another annotation', [{ op: 'test', path: RECEIPT, value: '{}' }, scaleStep(1)]],
    ['an annotation that is not there to be removed', [scaleStep(1), { op: 'remove', path: RECEIPT }]],
    [
      'annotations that are there',
      [{ op: 'test', path: '/metadata/annotations', value: null }, scaleStep(1)],
    ],
  ])('refuse a patch with %s as a whole', async (_, steps) => {
    // The controller of a real Deployment writes the first annotation.
    const annotated = async (config: string): Promise<boolean> =>
      Boolean((await send(config, 'GET', one('a'))).body.metadata.annotations);
    await eventually(() => annotated(kubeconfig()));
    const [real, ours] = await both('PATCH', one('a'), steps);
    for (const { status, body } of [real, ours])
      expect([status, body.kind, body.code]).toEqual([422, 'Status', 422]);
    expect(ours.body.message).toBe(real.body.message);
    for (const config of [kubeconfig(), double.kubeconfig])
      expect((await send(config, 'GET', one('a'))).body.spec.replicas).toBe(0);
  });

  it('accept null as the value of a missing field in a test operation', async () => {
    const path = '/spec/persistentVolumeClaimRetentionPolicy';
    for (const config of [kubeconfig(), double.kubeconfig]) {
      const set = mine.path('StatefulSet', 'set');
      const steps = [
        { op: 'test', path, value: null },
        { op: 'test', path: '/metadata/annotations', value: null },
        { op: 'add', path: '/metadata/annotations', value: { 'berth/sleep': '{}' } },
      ];
      const { status, body } = await send(config, 'PATCH', set, steps);
      expect([status, body.metadata.annotations]).toEqual([200, { 'berth/sleep': '{}' }]);
    }
  });

  it('apply a patch with tests of uid and count, and record who scaled', async () => {
    for (const config of [kubeconfig(), double.kubeconfig]) {
      const { body: before } = await send(config, 'GET', one('b'));
      const { uid, resourceVersion } = before.metadata;
      const patch = [
        { op: 'test', path: '/metadata/uid', value: uid },
        { op: 'test', path: '/spec/replicas', value: 0 },
        scaleStep(1),
        { op: 'add', path: RECEIPT, value: '{}' },
      ];
      const after = await send(config, 'PATCH', `${one('b')}?fieldManager=berth-test`, patch);
      expect(after.status).toBe(200);
      expect(after.body.spec.replicas).toBe(1);
      expect(after.body.metadata.annotations['berth/sleep']).toBe('{}');
      expect(after.body.metadata.resourceVersion).not.toBe(resourceVersion);
      const managers = after.body.metadata.managedFields.filter(
        (row: Json) => row.fieldsV1['f:spec']?.['f:replicas'],
      );
      expect(managers.map((row: Json) => row.manager)).toContain('berth-test');
      const back = await send(config, 'PATCH', one('b'), [
        { op: 'test', path: RECEIPT, value: '{}' },
        { op: 'remove', path: RECEIPT },
        scaleStep(0),
      ]);
      expect(back.body.metadata.annotations?.['berth/sleep']).toBeUndefined();
    }
  });

  it('send the changes after a version to a watch', async () => {
    for (const config of [kubeconfig(), double.kubeconfig]) {
      const { body: list } = await send(config, 'GET', `${mine.path('Deployment')}?limit=1`);
      await send(config, 'PATCH', one('c'), [
        { op: 'add', path: '/metadata/labels', value: { seen: String(Date.now()) } },
      ]);
      const events = await send(
        config,
        'GET',
        `${mine.path('Deployment')}?watch=1&resourceVersion=${list.metadata.resourceVersion}`,
      );
      expect(events.status).toBe(200);
      expect(events.contentType).toBe('application/json');
      expect(events.body[0]).toMatchObject({
        type: 'MODIFIED',
        object: { kind: 'Deployment', apiVersion: 'apps/v1' },
      });
    }
  });

  it('return the same error for invalid credentials', async () => {
    const wrongToken = double.kubeconfig.replace(/"token":"[^"]*"/, '"token":"wrong"');
    const real = JSON.parse(wrongToken);
    const access = parseKubeconfig(kubeconfig(), Date.now());
    real.clusters[0].cluster = {
      server: access.server,
      'certificate-authority-data': Buffer.from(access.ca ?? '').toString('base64'),
    };
    const [one, two] = [
      await send(JSON.stringify(real), 'GET', '/version'),
      await send(wrongToken, 'GET', '/version'),
    ];
    for (const answer of [one, two])
      expect(answer).toMatchObject({
        status: 401,
        body: { reason: 'Unauthorized', message: 'Unauthorized', code: 401 },
      });
    expect(shape(two.body)).toEqual(shape(one.body));
  });
});
