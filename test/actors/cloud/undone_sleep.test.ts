// A sleep that something else undoes, over the wire-accurate double.
import { describe, expect, it } from 'vitest';
import { afterThisTest, virtualClock } from '../../kit/actors.ts';
import { auditOf, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';
import { policyInput } from '../../kit/policies.ts';

/** `manager` gives the workload replicas. */
function scaleBy(double: Double, manager: string, replicas: number): void {
  const fieldsV1 = { 'f:spec': { 'f:replicas': {} } };
  double.change('Deployment', 'web', 'hello', (object) => {
    object.spec.replicas = replicas;
    object.metadata.managedFields.push({ manager, time: '2027-01-01T00:00:00Z', fieldsV1 });
  });
}

describe('a sleep that something else undoes', () => {
  it('names the manager that undid it', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
    scaleBy(double, 'operator', 4);
    const { sleep_reason } = await here.until('web/hello', (row) => row.replicas === 4);
    expect(sleep_reason).toBe('the sleep was undone by operator, which set 4 replicas');
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

  it('leaves a receipt whose hold, count and operation no longer count', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    const operation = '01J00000000000000000000000';
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: 600_000, operation });
    const wake = () => here.workloads.ask('wake', { id, by: 'connection', waitMs: null });
    await expect(wake()).rejects.toMatchObject({ code: 'wake_refused', message: /with a hold/ });
    scaleBy(double, 'kubectl', 5);
    await here.until('web/hello', (row) => row.replicas === 5);
    scaleBy(double, 'kubectl', 0);
    double.change('Deployment', 'web', 'hello', (object) => {
      object.status = statusOf(0);
    });
    const asleep = await here.until('web/hello', ({ state }) => state === 'asleep');
    expect(asleep).toMatchObject({ desired_replicas: 5, sleep_reason: 'scaled to 0 outside of Berth' });
    const event = await eventually(async () =>
      (await auditOf(here)).findLast(({ type }) => type === 'workload.asleep'),
    );
    expect(event).toMatchObject({ operation_id: null });
    expect(await wake()).toEqual({ replicas: 5 });
    expect(double.get('Deployment', 'web', 'hello').metadata.annotations['berth/sleep']).toBeUndefined();
  });

  it('leaves a receipt that does not count either before it was seen that the workload sleeps again', async () => {
    const double = await doubleWith('hello');
    const here = await cloud();
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    scaleBy(double, 'kubectl', 5);
    await here.until('web/hello', (row) => row.replicas === 5);
    for (const watch of double.watches) watch.stall();
    scaleBy(double, 'kubectl', 0);
    expect(await here.workloads.ask('wake', { id, by: 'request', waitMs: null })).toEqual({ replicas: 5 });
  });

  it('names the tool that manages the workload, and the autoscaler that scales it', async () => {
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
    expect(row.managed_by).toEqual([
      { tool: 'Flux', settings: expect.stringContaining('leave spec.replicas out of the manifest') },
      { tool: 'HorizontalPodAutoscaler hello-hpa', settings: expect.stringContaining('spec.minReplicas') },
    ]);
    await here.workloads.ask('sleep', { id: row.id, by: 'request', holdMs: null });
    expect(here.find('web/hello')).toMatchObject({
      desired_replicas: 2,
      sleep_reason: 'put to sleep by request',
    });
  });

  const ARGO = { labels: { 'argocd.argoproj.io/instance': 'shop' } };
  /** Argo CD 2 and Helm set this one. */
  const INSTANCE = { labels: { 'app.kubernetes.io/instance': 'shop' } };
  const MINUTE = 60_000;

  /** A workload that auto-sleep puts to sleep. */
  async function autoSlept(metadata: object, scaledObject: string | null) {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', 3, metadata));
    if (scaledObject !== null)
      double.addAutoscaler('web', 'own-name', 'Deployment', 'hello', 5, scaledObject);
    const clock = virtualClock();
    const here = await cloud({ clock, sweepMs: 10_000 * MINUTE });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 10 });
    const undoneBy = async (manager: string, replicas: number): Promise<void> => {
      await clock.advance(10 * MINUTE);
      expect(await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).toMatchObject({
        slept: true,
      });
      scaleBy(double, manager, replicas);
      await here.until('web/hello', (row) => row.replicas === replicas);
    };
    const left = async () => (await auditOf(here)).find(({ type }) => type === 'workload.left');
    return { double, here, id, clock, left, undoneBy };
  }

  it.each([
    [
      'Argo CD',
      ARGO,
      'argocd-controller',
      null,
      'RespectIgnoreDifferences=true',
      '{group: apps, kind: Deployment',
    ],
    [
      'Argo CD with its earlier label',
      INSTANCE,
      'argocd-application-controller',
      null,
      'RespectIgnoreDifferences=true',
      '{group: apps, kind: Deployment',
    ],
    ['KEDA', {}, 'keda', 'queue', 'KEDA ScaledObject queue:', 'autoscaling.keda.sh/paused-replicas: "0"'],
  ])('by %s is not repeated, and the event contains the settings that allow a sleep', async (...row) => {
    const [, metadata, manager, scaledObject, ...settings] = row;
    const { here, left, undoneBy } = await autoSlept(metadata, scaledObject);
    await undoneBy(manager, 3);
    const { reason } = await eventually(left);
    for (const part of settings) expect(reason).toContain(part);
    expect(here.find('web/hello')).toMatchObject({
      managed_by: [expect.anything()],
      policy: { idle: 'auto-sleep', faults: [reason] },
    });
  });

  it('leaves a workload for which a policy lists no switches any more', async () => {
    const { here, left, undoneBy, id } = await autoSlept(ARGO, null);
    const input = policyInput({ selector: { namespaces: ['web'] }, windows: ['Mon-Sun 23:00-23:30'] });
    await here.policies.ask('put', { name: 'nights', input });
    const preview = () => here.policies.ask('preview', { name: 'nights' });
    expect((await preview()).rows).toMatchObject([{ id, switches: { length: 10 } }]);
    await undoneBy('argocd-controller', 3);
    const { reason } = await eventually(left);
    expect((await preview()).rows).toMatchObject([{ id, switches: [], policy: { faults: [reason] } }]);
    expect(here.find('web/hello').policy).toMatchObject({ schedule: 'policy:nights', next_switch: null });
  });

  it.each([
    ['a person, also if a tool manages the workload,', ARGO, 'kubectl'],
    ['something that is not known to do it again', INSTANCE, 'operator'],
  ])('by %s counts once', async (_, metadata, manager) => {
    const { left, undoneBy } = await autoSlept(metadata, null);
    await undoneBy(manager, 2);
    expect(await left()).toBeUndefined();
    await undoneBy(manager, 4);
    await eventually(left);
  });

  it.each([
    [
      'the replicas',
      'it has 1 replica instead of 0',
      ({ spec }: Json) => {
        spec.replicas = Math.max(1, spec.replicas);
      },
    ],
    [
      'the receipt',
      'its annotation berth/sleep, which keeps the count, is missing',
      ({ metadata }: Json) => {
        delete metadata.annotations['berth/sleep'];
      },
    ],
  ])('by a webhook that changes %s is tried twice', async (_, change, onAdmission) => {
    const { double, here, id, clock, left } = await autoSlept({}, null);
    double.onAdmission = onAdmission;
    const attempt = async () => {
      await clock.advance(10 * MINUTE);
      const altered = here.until('web/hello', (row) => row.replicas < 3).then(() => undefined);
      const putsBack = ({ method }: { method: string }): boolean =>
        method === 'PATCH' && double.get('Deployment', 'web', 'hello').spec.replicas < 3;
      // The watch shows what the webhook has made of the request, and only then is it put back.
      double.fault(putsBack, { kind: 'held', until: altered });
      return here.workloads.ask('sleep', { id, by: 'idle', holdMs: null });
    };
    await expect(attempt()).rejects.toMatchObject({ code: 'workload_conflict' });
    expect(await left()).toBeUndefined();
    await expect(attempt()).rejects.toMatchObject({ code: 'workload_conflict' });
    const { reason } = await eventually(left);
    expect(reason).toContain('auto-sleep leaves it alone after 2 attempts in a row');
    expect(reason).toContain(change);
    await clock.advance(10 * MINUTE);
    const third = here.workloads.ask('sleep', { id, by: 'idle', holdMs: null });
    expect(await third).toEqual({ replicas: 3, slept: false });
    expect(here.find('web/hello').sleep_reason).toContain(change);
    double.onAdmission = null;
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 10 });
    expect(await attempt()).toMatchObject({ slept: true });
  });
});
