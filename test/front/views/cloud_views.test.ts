import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CloudViews } from '../../../src/front/views/cloud_views.ts';

const view = (id: string, clusterId: string, json = `{"id":"${id}"}`) => ({
  id,
  clusterId,
  key: `${id.slice(-1)}/${id}`,
  json,
});
const ids = (bytes: Uint8Array): string[] =>
  JSON.parse(Buffer.from(bytes).toString()).map((row: { id: string }) => row.id);

describe("the front's copies of workloads", () => {
  it('are listed by cluster and key after any changes, and each is found', () => {
    const id = fc.constantFrom(...'abcdefgh'.split('').flatMap((one) => [`1${one}`, `2${one}`]));
    const change = fc.oneof(
      fc.record({ put: fc.array(id) }),
      fc.record({ gone: fc.array(id) }),
      fc.record({ kept: fc.array(id) }),
      fc.record({ cluster: fc.constantFrom('1', '2') }),
      fc.record({ look: fc.constant(true) }),
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const views = new CloudViews();
        const model = new Set<string>();
        for (const step of changes) {
          if ('put' in step) {
            views.setWorkloads(step.put.map((one) => view(one, one[0] ?? '')));
            for (const one of step.put) model.add(one);
          } else if ('gone' in step) {
            views.removeWorkloads(step.gone);
            for (const one of step.gone) model.delete(one);
          } else if ('kept' in step) {
            views.retainWorkloads(step.kept);
            for (const one of [...model]) if (!step.kept.includes(one)) model.delete(one);
          } else if ('cluster' in step) {
            views.removeCluster(step.cluster);
            for (const one of [...model]) if (one.startsWith(step.cluster)) model.delete(one);
          } else views.workloads(null);
          const expected = [...model].sort();
          expect(ids(views.workloads(null))).toEqual(expected);
          expect(ids(views.workloads('2'))).toEqual(expected.filter((one) => one.startsWith('2')));
          for (const one of ['1a', '2h']) expect(views.workload(one) !== null).toBe(model.has(one));
        }
      }),
    );
  });

  it('show the newest text of each', () => {
    const views = new CloudViews();
    views.setWorkloads([view('a', 'c'), view('b', 'c')]);
    views.workloads(null);
    views.setWorkloads([view('a', 'c', '{"id":"a","replicas":5}')]);
    expect(JSON.parse(views.workloads(null).toString())).toEqual([{ id: 'a', replicas: 5 }, { id: 'b' }]);
    expect(views.workload('a')).toBe('{"id":"a","replicas":5}');
  });
});

describe("the front's copies of clusters and tethers", () => {
  it('are forgotten when they are not among all there are', () => {
    const views = new CloudViews();
    const cluster = (id: string) => ({ id, json: `{"id":"${id}"}`, detail: `{"id":"${id}","version":null}` });
    views.setClusters([cluster('b'), cluster('a')], true);
    views.setWorkloads([view('1', 'a'), view('2', 'b')]);
    expect(ids(views.clusters())).toEqual(['a', 'b']);
    views.setClusters([cluster('a')], true);
    expect(ids(views.clusters())).toEqual(['a']);
    expect(ids(views.workloads(null))).toEqual(['1']);
    expect([views.cluster('a'), views.cluster('b')]).toEqual(['{"id":"a","version":null}', null]);
    const tether = (id: string) => ({ id, json: `{"id":"${id}"}` });
    views.setTethers([tether('y'), tether('x')], true);
    views.setTethers([tether('z')], false);
    views.removeTethers(['y']);
    expect(ids(views.tethers())).toEqual(['x', 'z']);
    views.setTethers([], true);
    expect(ids(views.tethers())).toEqual([]);
  });

  it('refuse everything while the cloud part is closed, and nothing once it tells again', () => {
    const views = new CloudViews();
    views.markUnavailable('another key', 'put it back');
    expect(() => views.assertAvailable()).toThrow(/another key/);
    views.setClusters([], true);
    views.assertAvailable();
  });
});
