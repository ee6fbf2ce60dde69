// Sleeps and wakes that meet other writers, admission webhooks or a receipt that cannot be true.
import { describe, expect, it } from 'vitest';
import { ALL_WORKLOADS } from '../../../src/protocol/workload_selection.ts';
import { CLOUD } from '../../../src/settings/cloud_limits.ts';
import { afterThisTest } from '../../kit/actors.ts';
import { type Cloud, cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { type Double, type Json, kubeDouble, workload } from '../../kit/kube_double.ts';

async function awake(): Promise<{ double: Double; here: Cloud; id: string }> {
  const double = await doubleWith('hello');
  const here = await cloud();
  await here.add(double.kubeconfig);
  return { double, here, id: here.find('web/hello').id };
}

const isPatch = ({ method }: { method: string }): boolean => method === 'PATCH';
const sleep = ({ here, id }: { here: Cloud; id: string }) =>
  here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
const wake = ({ here, id }: { here: Cloud; id: string }) =>
  here.workloads.ask('wake', { id, by: 'request', waitMs: null });
const patches = ({ requests }: Double): number => requests.filter(isPatch).length;
const hello = (double: Double): Json => double.get('Deployment', 'web', 'hello');

describe('a change', () => {
  it('does not conflict with writers of other fields, however many they are', async () => {
    const all = await awake();
    const { double } = all;
    let writes = 0;
    double.fault(
      (request) => {
        if (!isPatch(request)) return false;
        writes += 1;
        double.change('Deployment', 'web', 'hello', (object) => {
          object.metadata.annotations.foreign = String(writes);
        });
        return false;
      },
      { kind: 'stall' },
    );
    expect(await sleep(all)).toEqual({ replicas: 0, slept: true });
    expect(await wake(all)).toEqual({ replicas: 3 });
    expect(patches(double)).toBe(2);
    expect(hello(double).metadata.annotations.foreign).toBe('2');
  });

  it('keeps annotations that were added between the read and the patch', async () => {
    const all = await awake();
    const { double } = all;
    double.change('Deployment', 'web', 'hello', (object) => {
      delete object.metadata.annotations;
    });
    let isOther = false;
    double.fault(
      (request) => {
        if (!isPatch(request) || isOther) return false;
        isOther = true;
        double.change('Deployment', 'web', 'hello', (object) => {
          object.metadata.annotations = { first: 'yes' };
        });
        return false;
      },
      { kind: 'stall' },
    );
    expect(await sleep(all)).toEqual({ replicas: 0, slept: true });
    expect(hello(double).metadata.annotations).toMatchObject({ first: 'yes' });
    expect(patches(double)).toBe(2);
  });

  it.each([
    [
      'the replicas',
      /has 1 replica instead of 0$/,
      ({ spec }: Json) => {
        spec.replicas = Math.max(1, spec.replicas);
      },
    ],
    [
      'the receipt',
      /annotation berth\/sleep, which keeps the count, is missing$/,
      ({ metadata }: Json) => {
        delete metadata.annotations['berth/sleep'];
      },
    ],
    [
      'both',
      /has 3 replicas instead of 0$/,
      ({ metadata, spec }: Json) => {
        spec.replicas = 3;
        delete metadata.annotations['berth/sleep'];
      },
    ],
  ])('is a conflict and is put back if a webhook changes %s', async (_, message, change) => {
    const all = await awake();
    const { double, here, id } = all;
    double.onAdmission = change;
    const conflict = { code: 'workload_conflict', message };
    await expect(sleep(all)).rejects.toMatchObject(conflict);
    expect(hello(double).spec.replicas).toBe(3);
    expect(hello(double).metadata.annotations).not.toHaveProperty('berth/sleep');
    const many = { ...ALL_WORKLOADS, to: 'asleep', holdMs: null, isDryRun: false } as const;
    const failed = await eventually(async () => {
      const results = await here.workloads.ask('changeMany', many);
      // Until the watch has seen it put back, the workload may count as asleep.
      return results[0]?.outcome !== 'unchanged' && results;
    });
    expect(failed).toMatchObject([{ ...conflict, outcome: 'failed' }]);
    double.onAdmission = null;
    expect(await sleep(all)).toEqual({ replicas: 0, slept: true });
    expect((await here.until('web/hello', (row) => row.replicas === 0)).id).toBe(id);
    expect(await wake(all)).toEqual({ replicas: 3 });
  });

  /** A webhook that lets nothing have fewer replicas than 1. */
  const atLeastOne = ({ spec }: Json): void => {
    spec.replicas = Math.max(1, spec.replicas);
  };
  const operation = '01J00000000000000000000000';
  const conflict = { code: 'workload_conflict' };

  it.each([
    ['the answer is lost', { kind: 'lost' } as const, 1],
    ['the request that puts it back fails', { kind: 'status', status: 503 } as const, 2],
    ['the answer to what puts it back is lost', { kind: 'lost' } as const, 2],
  ])('that a webhook changes is put back, also when %s', async (_, fault, number) => {
    const { double, here, id } = await awake();
    double.onAdmission = atLeastOne;
    double.fault((request) => isPatch(request) && patches(double) === number, fault);
    const asked = here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
    await expect(asked).rejects.toMatchObject(conflict);
    expect(hello(double).spec.replicas).toBe(3);
    expect(hello(double).metadata.annotations).not.toHaveProperty('berth/sleep');
  });

  it('of which a webhook removes the receipt is put back, also when the answer is lost', async () => {
    const { double, here, id } = await awake();
    double.onAdmission = ({ metadata }) => {
      delete metadata.annotations['berth/sleep'];
    };
    double.fault((request) => isPatch(request) && patches(double) === 1, { kind: 'lost' });
    const asked = here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
    await expect(asked).rejects.toMatchObject(conflict);
    expect(hello(double).spec.replicas).toBe(3);
  });

  it.each([
    ['a later wake', async () => undefined],
    ['a later sleep and wake', async (all: { here: Cloud; id: string }) => void (await sleep(all))],
    [
      'the next daemon, which ends the operation as not done',
      async ({ here, id }: { here: Cloud; id: string }) =>
        expect(await here.workloads.ask('outcome', { id, operation })).toEqual({ replicas: null }),
    ],
  ])('that a webhook changes and nothing puts back keeps its count for %s', async (_, next) => {
    const all = await awake();
    const { double, here, id } = all;
    double.onAdmission = atLeastOne;
    const isLater = (request: { method: string }): boolean => isPatch(request) && patches(double) > 1;
    const attempts = CLOUD.maxConflictRetries + 1;
    double.fault(isLater, { kind: 'status', status: 503 }, attempts);
    const asked = here.workloads.ask('sleep', { id, by: 'request', holdMs: null, operation });
    await expect(asked).rejects.toThrow('and it could not be put back');
    expect(hello(double).spec.replicas).toBe(1);
    double.onAdmission = null;
    await next(all);
    await wake(all);
    expect(hello(double).spec.replicas).toBe(3);
  });

  it.each([
    ['is answered', null],
    ['is made, but its answer is lost', { kind: 'lost' } as const],
  ])(
    'that %s is a wake and a conflict if a webhook leaves 0 replicas: the receipt stays',
    async (_, fault) => {
      const all = await awake();
      const { double } = all;
      await sleep(all);
      const before = hello(double).metadata.annotations;
      const made = patches(double);
      if (fault) double.fault((request) => isPatch(request) && patches(double) === made + 1, fault);
      double.onAdmission = ({ spec }) => {
        spec.replicas = 0;
      };
      await expect(wake(all)).rejects.toMatchObject({
        ...conflict,
        message: expect.stringMatching(/was not woken: .* it has 0 replicas instead of 3$/),
      });
      expect(hello(double).metadata.annotations).toEqual(before);
      double.onAdmission = null;
      expect(await wake(all)).toEqual({ replicas: 3 });
    },
  );

  it('is a wake of which a webhook leaves a part: the next sleep keeps the whole count', async () => {
    const all = await awake();
    const { double } = all;
    await sleep(all);
    double.onAdmission = ({ spec }) => {
      spec.replicas = Math.min(1, spec.replicas);
    };
    expect(await wake(all)).toEqual({ replicas: 1 });
    double.onAdmission = null;
    await sleep(all);
    expect(await wake(all)).toEqual({ replicas: 3 });
  });

  it('does not take a count that somebody set since for one that a webhook left', async () => {
    const all = await awake();
    const { double } = all;
    await sleep(all);
    // As kubectl scale does, which leaves the receipt.
    double.change('Deployment', 'web', 'hello', ({ spec }) => {
      spec.replicas = 2;
    });
    await all.here.until('web/hello', (row) => row.replicas === 2);
    await sleep(all);
    expect(await wake(all)).toEqual({ replicas: 2 });
  });

  it.each([
    ['up', 5],
    ['down', 2],
  ])('leaves alone what is scaled %s after a webhook had restored the count of a sleep', async (_, count) => {
    const all = await awake();
    const { double, here } = all;
    // The spec, and so the generation, stays as it was.
    double.onAdmission = ({ spec }) => {
      spec.replicas = Math.max(3, spec.replicas);
    };
    const isLater = (request: { method: string }): boolean => isPatch(request) && patches(double) > 1;
    double.fault(isLater, { kind: 'status', status: 503 }, CLOUD.maxConflictRetries + 1);
    await expect(sleep(all)).rejects.toThrow('and it could not be put back');
    double.onAdmission = null;
    double.change('Deployment', 'web', 'hello', ({ metadata, spec }) => {
      spec.replicas = count;
      metadata.managedFields = [
        ...metadata.managedFields,
        { ...metadata.managedFields.at(-1), manager: 'kubectl' },
      ];
    });
    await here.until('web/hello', (row) => row.replicas === count);
    expect(await wake(all)).toEqual({ replicas: count });
    await sleep(all);
    expect(await wake(all)).toEqual({ replicas: count });
  });

  it('does not take the receipt of an earlier workload for one of its successor', async () => {
    const all = await awake();
    const { double, here } = all;
    await sleep(all);
    // As a restore from a backup does, after kubectl scale had woken it.
    const { annotations } = hello(double).metadata;
    double.remove('Deployment', 'web', 'hello');
    const again = workload('web', 'hello', 2);
    double.put('Deployment', { ...again, metadata: { ...again.metadata, uid: 'another', annotations } });
    await here.until('web/hello', (row) => row.replicas === 2);
    expect(await wake(all)).toEqual({ replicas: 2 });
    await sleep(all);
    expect(await wake(all)).toEqual({ replicas: 2 });
  });

  it('does not lose the volumes of a StatefulSet to a policy that was set in between', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    const spec = { volumeClaimTemplates: [{}] };
    double.put('StatefulSet', workload('data', 'db', 2, { spec }));
    const here = await cloud();
    await here.add(double.kubeconfig);
    double.fault(
      (request) => {
        if (isPatch(request) && patches(double) === 1)
          double.change('StatefulSet', 'data', 'db', (object) => {
            object.spec.persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete' };
          });
        return false;
      },
      { kind: 'stall' },
    );
    await expect(sleep({ here, id: here.find('data/db').id })).rejects.toMatchObject({
      code: 'sleep_refused',
    });
    expect(double.get('StatefulSet', 'data', 'db').spec.replicas).toBe(2);
  });

  it.each([404, 409, 422])('is read again and repeated when a patch is answered %i', async (status) => {
    const all = await awake();
    all.double.fault(isPatch, { kind: 'status', status, message: 'not as it was' });
    expect(await sleep(all)).toEqual({ replicas: 0, slept: true });
    expect(patches(all.double)).toBe(2);
  });

  it.each([500, 503])('is read again and repeated when a patch is answered %i', async (status) => {
    const all = await awake();
    all.double.fault(isPatch, { kind: 'status', status, message: 'the leader has changed' });
    expect(await sleep(all)).toEqual({ replicas: 0, slept: true });
    expect(patches(all.double)).toBe(2);
  });

  it.each([
    [403, 'admission webhook "guard.example.com" denied the request: not on Fridays', /guard\.example\.com/],
    [400, 'admission webhook "guard.example.com" denied the request without explanation', /has refused/],
    [
      500,
      'Internal error occurred: failed calling webhook "guard.example.com": Post "https://10.0.0.1/": EOF',
      /The webhook "guard\.example\.com" of the cluster has not answered/,
    ],
    [422, "ValidatingAdmissionPolicy 'hours' with binding 'all' denied request: closed", /Policy 'hours'/],
  ])(
    'that admission refuses (%i) names the webhook or policy, and is not repeated',
    async (status, text, message) => {
      const all = await awake();
      all.double.fault(isPatch, { kind: 'status', status, message: text }, 9);
      await expect(sleep(all)).rejects.toMatchObject({ code: 'admission_denied', message });
      expect(patches(all.double)).toBe(1);
    },
  );
});

describe('a receipt', () => {
  async function withReceipt(replicas: number) {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    const object = workload('web', 'hello', 0);
    object.metadata.annotations['berth/sleep'] = JSON.stringify({ replicas, at: 1, by: 'request' });
    double.put('Deployment', object);
    const here = await cloud();
    await here.add(double.kubeconfig);
    return { double, here, id: here.find('web/hello').id };
  }

  it('with an implausible count is refused, with the reason', async () => {
    const all = await withReceipt(9_999_999);
    expect(all.here.find('web/hello').desired_replicas).toBeNull();
    await expect(wake(all)).rejects.toMatchObject({
      code: 'wake_refused',
      message: /asks for 9999999 replicas\. Berth has seen at most 0 of it, no Horizontal.*more than 100/,
    });
    expect(hello(all.double).spec.replicas).toBe(0);
    all.double.change('Deployment', 'web', 'hello', (object) => {
      delete object.metadata.annotations['berth/sleep'];
    });
    expect(await wake(all)).toEqual({ replicas: 1 });
  });

  it('is obeyed up to the count that needs no evidence', async () => {
    expect(await wake(await withReceipt(CLOUD.trustedReplicas))).toEqual({ replicas: CLOUD.trustedReplicas });
    await expect(wake(await withReceipt(CLOUD.trustedReplicas + 1))).rejects.toMatchObject({
      code: 'wake_refused',
    });
  });

  it('is obeyed if an autoscaler of the workload allows as many', async () => {
    const all = await withReceipt(500);
    all.double.addAutoscaler('web', 'other', 'Deployment', 'other', 1_000);
    await expect(wake(all)).rejects.toMatchObject({ code: 'wake_refused' });
    all.double.addAutoscaler('web', 'scaler', 'Deployment', 'hello', 500);
    expect(await wake(all)).toEqual({ replicas: 500 });
  });

  it('is obeyed if the workload was seen with as many, also by an earlier daemon', async () => {
    const double = await kubeDouble();
    afterThisTest(() => double.stop());
    double.put('Deployment', workload('web', 'hello', 700));
    const first = await cloud();
    await first.add(double.kubeconfig);
    const { id } = first.find('web/hello');
    await sleep({ here: first, id });
    await first.stop();
    const here = await cloud({ folder: first.folder, vault: first.vault });
    expect(await wake({ here, id })).toEqual({ replicas: 700 });
  });
});
