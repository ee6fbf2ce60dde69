// When a wake with `wait` answers: pods decide, not the counts of a status. docs/reference.md "Wake".
import { describe, expect, it } from 'vitest';
import type { WorkloadKind } from '../../../src/protocol/workload_kinds.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { type Cloud, cloud, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, statusOf, workload } from '../../kit/kube_double.ts';
import { podOf, replicaSetOf } from '../../kit/kube_double_pods.ts';

/** A sleeping workload whose controller answers a wake with that status at once. */
async function asleep(
  kind: WorkloadKind,
  status: Json,
): Promise<{ double: Double; here: Cloud; id: string }> {
  const double = await kubeDouble();
  afterThisTest(() => double.stop());
  double.put(kind, workload('web', 'hello', 3));
  const here = await cloud();
  await here.add(double.kubeconfig);
  const { id } = here.find('web/hello');
  await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
  const report = (seen: Json): void =>
    double.change(kind, 'web', 'hello', (row) => Object.assign(row, { status: seen }));
  report(statusOf(0));
  await here.until('web/hello', (row) => row.state === 'asleep');
  double.onPatched = () => report(status);
  return { double, here, id };
}

const wake = ({ here, id }: { here: Cloud; id: string }, waitMs: number) =>
  here.workloads.ask('wake', { id, by: 'request', waitMs }, { deadlineMs: 60_000 });
const ending = (pod: Json): void => {
  pod.metadata.deletionTimestamp = '2030-01-01T00:00:00Z';
};
/** The looks at the pods so far. */
const looks = ({ requests }: Double): number =>
  requests.filter(({ path }) => path.endsWith('/namespaces/web/pods')).length;

describe('a wake that waits', () => {
  it.each(['StatefulSet', 'Deployment'] as const)(
    'returns when a pod is Ready that remains, not while all pods of a %s are terminating',
    async (kind) => {
      const all = await asleep(kind, statusOf(3));
      const { double } = all;
      double.podsOf = (_, object) => [0, 1, 2].map((index) => podOf(kind, object, index, true, ending));
      await expect(wake(all, 50)).rejects.toMatchObject({ code: 'ready_timeout' });
      // The controller counts them as Ready all the time.
      expect(all.here.find('web/hello')).toMatchObject({ replicas: 3, ready_replicas: 3 });
      let isAnswered = false;
      const waiting = wake(all, 30_000).finally(() => {
        isAnswered = true;
      });
      const before = looks(double);
      await eventually(() => looks(double) > before);
      expect(isAnswered).toBe(false);
      double.podsOf = (_, object) => [podOf(kind, object, 0, true)];
      double.change(kind, 'web', 'hello', (row) => {
        row.status = statusOf(3, 1);
      });
      expect(await waiting).toEqual({ replicas: 3 });
    },
  );

  it('does not count pods that the ReplicaSet of a Deployment is about to end', async () => {
    const all = await asleep('Deployment', statusOf(3));
    const { double } = all;
    double.replicaSetsOf = (deployment) => {
      const set = replicaSetOf(deployment);
      set.metadata.generation = 2;
      return [set];
    };
    await expect(wake(all, 50)).rejects.toMatchObject({ code: 'ready_timeout' });
    double.replicaSetsOf = (deployment) => [replicaSetOf(deployment)];
    expect(await wake(all, 30_000)).toEqual({ replicas: 3 });
  });

  it.each(['list pods', 'list replicasets'])('uses the status if the account may not %s', async (right) => {
    const all = await asleep('Deployment', statusOf(3, 1));
    all.double.denied.add(right);
    expect(await wake(all, 30_000)).toEqual({ replicas: 3 });
  });

  it('finds the pods of a ReplicaSet that was adopted under another name', async () => {
    const conditions = [
      { type: 'Available', status: 'True', message: 'ReplicaSet "not-this" is no condition of progress' },
      { type: 'Progressing', status: 'True', message: 'ReplicaSet "adopted" has successfully progressed.' },
    ];
    const all = await asleep('Deployment', { ...statusOf(1), conditions });
    all.double.podsOf = (kind, object) => [
      podOf(kind, object, 0, true, (pod) => {
        pod.metadata.ownerReferences[0].name = 'adopted';
      }),
    ];
    expect(await wake(all, 30_000)).toEqual({ replicas: 3 });
    expect((await all.here.workloads.ask('tetherTarget', { id: all.id })).workload.replicaSet).toBe(
      'adopted',
    );
  });
});

describe('a wake whose pods do not appear', () => {
  const event = (kind: string, name: string, reason: string, message: string, minute: number): Json => ({
    metadata: { name: `e${minute}`, namespace: 'web' },
    involvedObject: { kind, name },
    type: 'Warning',
    reason,
    message,
    lastTimestamp: `2030-01-01T00:${minute}:00Z`,
  });

  it('reports which quota, account or other cause prevents them', async () => {
    const all = await asleep('StatefulSet', statusOf(0));
    all.double.events.push(
      event('StatefulSet', 'hello', 'FailedCreate', 'an older reason', 10),
      event('StatefulSet', 'hello', 'FailedCreate', 'pods "hello-0" is forbidden: exceeded quota', 20),
      event('StatefulSet', 'other', 'FailedCreate', 'not its own', 30),
      event('StatefulSet', 'hello', 'Unhealthy', 'not what it waits for', 40),
    );
    await expect(wake(all, 20)).rejects.toMatchObject({
      code: 'ready_timeout',
      message: /20 ms: StatefulSet hello: FailedCreate: pods "hello-0" is forbidden: exceeded quota$/,
    });
  });

  it('reports which volume a pod waits for', async () => {
    const all = await asleep('Deployment', statusOf(1, 0));
    all.double.podsOf = (kind, object) => [podOf(kind, object, 0, false)];
    all.double.events.push(event('Pod', 'hello-6b474f99dc-0', 'FailedMount', 'secret "keys" not found', 10));
    await expect(wake(all, 20)).rejects.toMatchObject({
      message: /Pod hello-6b474f99dc-0: FailedMount: secret "keys" not found$/,
    });
  });

  it('reports what it knows if events may not be read', async () => {
    const all = await asleep('StatefulSet', statusOf(0));
    all.double.denied.add('list events');
    await expect(wake(all, 20)).rejects.toMatchObject({
      code: 'ready_timeout',
      message: 'StatefulSet web/hello has no Ready pod after 20 ms',
    });
  });
});
