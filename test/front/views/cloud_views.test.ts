import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';
import type { WorkloadRow } from '../../../src/protocol/cloud.ts';
import type { ClusterRow } from '../../../src/protocol/clusters.ts';
import { type TetherRow, tetherSettings } from '../../../src/protocol/tethers.ts';

const workload = (id: string, clusterId: string, replicas = 1): WorkloadRow => ({
  id,
  clusterId,
  kind: 'Deployment',
  namespace: id.slice(-1),
  name: id,
  labels: '',
  replicas,
  ready: 0,
  desiredReplicas: null,
  autoSleep: true,
  idleMinutes: 7,
  lastActivityAt: 1_700_000_000_000,
  state: 'waking',
  sleepReason: null,
  wakeReason: null,
  staleSince: null,
  policy: null,
  after: null,
  managers: [],
});
const cluster = (id: string): ClusterRow => ({
  id,
  name: `cluster ${id}`,
  provider: 'other',
  inCluster: false,
  createdAt: 0,
  lastSyncAt: null,
  version: null,
  capabilities: null,
  reachable: null,
  authenticated: null,
  reason: null,
  authenticatedSince: null,
  renewalError: null,
});
const tether = (id: string): TetherRow => ({
  id,
  workloadId: 'w',
  containerPort: 80,
  label: null,
  localPort: null,
  connections: 0,
  bytesIn: 0,
  bytesOut: 0,
  lastError: null,
  workload: null,
  previousPort: null,
  wake: true,
  isOpen: false,
  ...tetherSettings({}),
});
const items = (bytes: Uint8Array): Record<string, unknown>[] => JSON.parse(Buffer.from(bytes).toString());
const ids = (bytes: Uint8Array): unknown[] => items(bytes).map(({ id, tether_id }) => id ?? tether_id);

describe("the front's copies of workloads", () => {
  it('are listed by cluster and key after any changes, and each is found', () => {
    const id = fc.constantFrom(...'abcdefgh'.split('').flatMap((one) => [`1${one}`, `2${one}`]));
    const change = fc.oneof(
      fc.record({ put: fc.array(id) }),
      fc.record({ gone: fc.array(id) }),
      fc.record({ of: fc.constantFrom('1', '2'), kept: fc.array(id) }),
      fc.record({ cluster: fc.constantFrom('1', '2') }),
      fc.record({ look: fc.constant(true) }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const views = new CloudViews();
        const model = new Set<string>();
        for (const step of changes) {
          if ('put' in step) {
            views.setWorkloads(step.put.map((one) => workload(one, one[0] ?? '')));
            for (const one of step.put) model.add(one);
          } else if ('gone' in step) {
            views.removeWorkloads(step.gone);
            for (const one of step.gone) model.delete(one);
          } else if ('kept' in step) {
            views.retainWorkloads(step.of, step.kept);
            for (const one of [...model])
              if (one.startsWith(step.of) && !step.kept.includes(one)) model.delete(one);
          } else if ('cluster' in step) {
            views.removeCluster(step.cluster);
            for (const one of [...model]) if (one.startsWith(step.cluster)) model.delete(one);
          } else views.workloads(null);
          const expected = [...model].sort();
          expect(ids(views.workloads(null))).toEqual(expected);
          expect(ids(views.workloads('2'))).toEqual(expected.filter((one) => one.startsWith('2')));
          for (const one of ['1a', '2h']) expect(views.autoSleep(one) !== null).toBe(model.has(one));
        }
      }),
    );
  });

  it('show the newest row of each', () => {
    const views = new CloudViews();
    views.setWorkloads([workload('a', 'c'), workload('b', 'c')]);
    views.workloads(null);
    views.setWorkloads([{ ...workload('a', 'c', 5), autoSleep: false }]);
    expect(items(views.workloads(null))).toMatchObject([
      { id: 'a', replicas: 5, auto_sleep_enabled: false },
      { id: 'b', replicas: 1, auto_sleep_enabled: true },
    ]);
    expect(views.autoSleep('a')).toEqual({ auto_sleep_enabled: false, idle_timeout_minutes: 7 });
  });

  it('are updated when only the time since which they are stale changes', () => {
    const views = new CloudViews();
    const hostile = workload('b', 'c');
    hostile.sleepReason = '"stale_since":null,' as never;
    views.setWorkloads([workload('a', 'c'), hostile]);
    const before = items(views.workloads(null));
    views.setStaleSince(['b', 'unknown'], 1_000);
    const stale_since = '1970-01-01T00:00:01.000Z';
    expect(items(views.workloads(null))).toEqual([before[0], { ...before[1], stale_since }]);
    expect(items(views.workloads('c'))).toEqual(items(views.workloads(null)));
    expect(JSON.parse(views.workload('b', null) ?? '')).toMatchObject({ stale_since });
    views.setStaleSince(['a', 'b'], null);
    expect(items(views.workloads(null))).toEqual(before);
  });

  it('have the fields of the API in its order', () => {
    const views = new CloudViews();
    views.setWorkloads([workload('a', 'c')]);
    expect(views.workloads('c').toString()).toBe(
      '[{"id":"a","name":"a","namespace":"a","kind":"Deployment","replicas":1,"desired_replicas":null,' +
        '"auto_sleep_enabled":true,"idle_timeout_minutes":7,"last_activity_at":"2023-11-14T22:13:20.000Z",' +
        '"cluster_id":"c","ready_replicas":0,"state":"waking","sleep_reason":null,"wake_reason":null,' +
        '"stale_since":null,"policy":null,"after":null,"managed_by":[]}]',
    );
    views.setClusters([cluster('c')], true);
    const item =
      '"id":"c","name":"cluster c","provider":"other","in_cluster":false,"created_at":"1970-01-01T00:00:00.000Z"';
    expect(views.clusters().toString()).toBe(`[{${item}}]`);
    const more =
      '"version":null,"reachable":null,"reason":null,"last_sync_at":null,"capabilities":null,"authenticated":null,' +
      '"authenticated_since":null,"credentials_expire_at":null,"server":null,"namespaces":[],"scope":null,' +
      '"token_renewal":null';
    expect(views.cluster('c')).toBe(`{${item},${more}}`);
    views.setTethers([tether('t')], true);
    expect(views.tethers().toString()).toBe(
      '[{"tether_id":"t","workload_id":"w","workload":null,"container_port":80,"label":null,"local_port":null,"state":"idle",' +
        '"connections":0,"bytes_in":0,"bytes_out":0,"last_error":null,"previous_port":null,' +
        '"wake":true,"pod":null,"allow_not_ready":false,"half_closed_timeout":60000}]',
    );
  });
});

describe("the front's copies of clusters and tethers", () => {
  it('are dropped when they are not in the complete list', () => {
    const views = new CloudViews();
    views.setClusters([cluster('b'), cluster('a')], true);
    views.setWorkloads([workload('1', 'a'), workload('2', 'b')]);
    expect(ids(views.clusters())).toEqual(['a', 'b']);
    views.setClusters([cluster('a')], true);
    expect(ids(views.clusters())).toEqual(['a']);
    expect(ids(views.workloads(null))).toEqual(['1']);
    expect([views.cluster('a') !== null, views.cluster('b')]).toEqual([true, null]);
    views.setTethers([tether('y'), tether('x')], true);
    views.setTethers([tether('z')], false);
    views.removeTethers(['y']);
    expect(ids(views.tethers())).toEqual(['x', 'z']);
    views.setTethers([], true);
    expect(ids(views.tethers())).toEqual([]);
  });

  it('are unavailable while the cloud part is closed, and available once it reports again', () => {
    const views = new CloudViews();
    views.markUnavailable('key_unusable', 'the cloud part is closed: another key', 'put it back', null);
    expect(() => views.assertAvailable()).toThrow(/another key/);
    views.setClusters([], true);
    expect(() => views.assertAvailable()).toThrow(/another key/);
    views.markAvailable();
    views.assertAvailable();
  });
});
