// What is kept of a cluster's objects, whatever a hostile cluster sends.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WireError } from '../../../src/adapters/kube/kube_errors.ts';
import {
  isOlderVersion,
  kubeStatusOf,
  listPageOf,
  patchBaseOf,
  seenWorkloadOf,
  watchEventOf,
} from '../../../src/adapters/kube/parse_objects.ts';
import { workload } from '../../kit/kube_double.ts';

describe('an object', () => {
  it('does not keep its long texts in memory', () => {
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

  it('is left out if it is malformed', () => {
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

  it('with invalid fields is read as if they were absent', () => {
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

  it.each<[manager: string, labels: Record<string, string>, keeper: string | null]>([
    ['argocd-controller', {}, 'Argo CD'],
    ['argocd-application-controller', {}, 'Argo CD'],
    ['kustomize-controller', {}, 'Flux'],
    ['helm-controller', {}, 'Flux'],
    ['fleetagent', {}, 'Fleet'],
    // Who scaled it counts more than what marks it.
    ['kustomize-controller', { 'argocd.argoproj.io/instance': 'shop' }, 'Flux'],
    ['kube-controller-manager', { 'argocd.argoproj.io/instance': 'shop' }, 'Argo CD'],
    ['helm', { 'app.kubernetes.io/instance': 'shop' }, null],
    ['kube-controller-manager', { 'app.kubernetes.io/instance': 'shop' }, null],
  ])('that %s scaled, with labels %j, is kept by %s', (manager, labels, keeper) => {
    const object = workload('web', 'hello', 3, { labels });
    Object.assign(object.metadata, { uid: 'u-1', resourceVersion: '7' });
    const scaled = (by: string, time: string) =>
      object.metadata.managedFields.push({
        ...{ manager: by, time, fieldsV1: { 'f:spec': { 'f:replicas': {} } } },
      });
    scaled(manager, '2027-01-01T00:00:00Z');
    expect(seenWorkloadOf('Deployment', object)).toMatchObject({ scaledBy: manager, keeper });
    // A sleep by Berth changes nothing about that.
    scaled('berth', '2027-01-02T00:00:00Z');
    const kept = labels['argocd.argoproj.io/instance'] ? 'Argo CD' : keeper;
    expect(seenWorkloadOf('Deployment', object)).toMatchObject({ scaledBy: 'berth', keeper: kept });
    // Another one that scales it is not taken for the tool.
    scaled('operator', '2027-01-03T00:00:00Z');
    const marked = labels['argocd.argoproj.io/instance'] ? 'Argo CD' : null;
    expect(seenWorkloadOf('Deployment', object)).toMatchObject({ scaledBy: 'operator', keeper: marked });
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
        patchBaseOf(value);
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
      { numRuns: 500 },
    );
  });

  it('has its selector as the API defines it', () => {
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

  it('has versions that are compared as numbers', () => {
    expect([
      isOlderVersion('9', '10'),
      isOlderVersion('10', '9'),
      isOlderVersion('10', '10'),
      isOlderVersion('a', '10'),
    ]).toEqual([true, false, false, false]);
  });
});
