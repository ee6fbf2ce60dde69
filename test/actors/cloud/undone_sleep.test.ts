// A sleep that something else undoes, over the wire-accurate double.
import { describe, expect, it } from 'vitest';
import { afterThisTest } from '../../kit/actors.ts';
import { cloud, doubleWith } from '../../kit/cloud.ts';
import { kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';

describe('a sleep that something else undoes', () => {
  it('names the manager that undid it', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
    const manager = {
      manager: 'argocd-controller',
      time: '2027-01-01T00:00:00Z',
      fieldsV1: { 'f:spec': { 'f:replicas': {} } },
    };
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 4;
      object.metadata.managedFields.push(manager);
    });
    const { sleep_reason } = await here.until('web/hello', (row) => row.replicas === 4);
    expect(sleep_reason).toBe('the sleep was undone by argocd-controller, which set 4 replicas');
  });

  it('leaves a receipt that does not affect later changes', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const scale = async (replicas: number): Promise<string | null> => {
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = replicas;
      });
      return (await here.until('web/hello', (row) => row.replicas === replicas)).sleep_reason;
    };
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    expect(await scale(4)).toMatch(/undone/);
    expect(await scale(0)).toBe('scaled to 0 outside of Berth');
    double.change('Deployment', 'web', 'hello', (object) => {
      object.status = statusOf(0);
    });
    expect(await here.until('web/hello', ({ state }) => state === 'asleep')).toMatchObject({
      sleep_reason: 'scaled to 0 outside of Berth',
    });
    expect(await scale(5)).toBeNull();
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    expect(here.find('web/hello')).toMatchObject({
      sleep_reason: 'put to sleep by request',
      desired_replicas: 5,
    });
    expect(await scale(2)).toMatch(/undone/);
  });

  it('names the tool that manages the workload and the autoscaler that scales it', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put(
      'Deployment',
      workload('web', 'hello', 3, { labels: { 'kustomize.toolkit.fluxcd.io/name': 'apps' } }),
    );
    double.addAutoscaler('web', 'hello-hpa', 'Deployment', 'hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
    double.change('Deployment', 'web', 'hello', (object) => {
      object.spec.replicas = 2;
    });
    const row = await here.until('web/hello', ({ sleep_reason }) =>
      sleep_reason?.includes('HorizontalPodAutoscaler'),
    );
    expect(row.sleep_reason).toMatch(
      /undone by .*Flux keeps it as its source says.*set 2 replicas; HorizontalPodAutoscaler hello-hpa scales it/,
    );
    await here.workloads.ask('sleep', { id: row.id, by: 'request', holdMs: null });
    expect(here.find('web/hello')).toMatchObject({
      desired_replicas: 2,
      sleep_reason: 'put to sleep by request',
    });
  });
});
