// A sleep that a GitOps tool undoes on a real Kubernetes, which records who wrote what.
import { expect, it } from 'vitest';
import { virtualClock } from '../../kit/actors.ts';
import { auditOf, cloud, eventually } from '../../kit/cloud.ts';
import { api, describeReal, kubeconfig, sandbox, sleeper } from '../../kit/kube_real.ts';

const MINUTE = 60_000;

describeReal('a sleep on a real cluster', () => {
  const mine = sandbox();

  it.each([
    ['argocd-controller', 'application/apply-patch+yaml'],
    ['argocd-application-controller', 'application/strategic-merge-patch+json'],
  ])(
    'that %s undoes is not repeated, though only its writes tell that it is Argo CD',
    async (manager, type) => {
      const object = {
        ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
        ...sleeper(manager, 2, { metadata: { labels: { 'app.kubernetes.io/instance': 'shop' } } }),
      };
      const isApply = type.includes('apply');
      const query = `?fieldManager=${manager}${isApply ? '&force=true' : ''}`;
      const patch = () => api('PATCH', mine.path('Deployment', manager) + query, object, type);
      if (isApply) await patch();
      else await api('POST', mine.path('Deployment') + query, object);
      const clock = virtualClock(Date.now());
      const here = await cloud({ clock, sweepMs: 10_000 * MINUTE });
      await here.add(kubeconfig());
      const seen = () => here.find(`${mine.namespace}/${manager}`);
      const { id } = seen();
      await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 10 });
      // Its own rollout counts as use at first.
      await eventually(async () => {
        clock.standStill(10 * MINUTE);
        return (await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).slept;
      });
      expect(seen().managed_by).toMatchObject([{ tool: 'Argo CD' }]);
      expect(await patch()).toMatchObject({ status: 200, body: { spec: { replicas: 2 } } });
      const left = await eventually(async () =>
        (await auditOf(here)).find((event) => event.type === 'workload.left'),
      );
      expect(left.reason).toContain('For peace with Argo CD: add RespectIgnoreDifferences=true');
      expect(seen().sleep_reason).toBe(
        `the sleep was undone by ${manager} (Argo CD keeps it as its source says), which set 2 replicas`,
      );
      clock.standStill(60 * MINUTE);
      expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    },
  );
});
