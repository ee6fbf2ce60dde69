// Tethers on the real cluster to pods that are not as they should be, and to one pod of several.
import { expect, it } from 'vitest';
import { virtualClock } from '../../kit/actors.ts';
import { eventually } from '../../kit/eventually.ts';
import type { Json } from '../../kit/kube_double.ts';
import { api, describeReal, sandbox } from '../../kit/kube_real.ts';
import { answer, client, field, LISTEN, lastError, podsOf, server } from './tether_kit.ts';

const setOf = (object: Json): Json => ({
  ...object,
  spec: { ...object.spec, serviceName: object.metadata.name, podManagementPolicy: 'Parallel' },
});

describeReal('a tether and pods that are not as they should be', () => {
  const box = sandbox();

  it('holds a client until the program of a pod without a probe listens', async () => {
    await box.create('Deployment', server('slow', 0, { probe: null, command: `sleep 3; ${LISTEN}` }));
    const onWake = () => box.scale('Deployment', 'slow', 1);
    const tether = await field({ sandbox: box, name: 'slow', state: 'asleep', onWake });
    expect(await answer(tether.port, 'name\n')).toContain('slow-');
  }, 60_000);

  it('connects to a running pod that is not Ready if that is allowed', async () => {
    await box.create('Deployment', server('unready', 1, { probe: { tcpSocket: { port: 1 } } }));
    const settings = { allowNotReady: true };
    const tether = await field({ sandbox: box, name: 'unready', settings });
    expect(await answer(tether.port, 'name\n')).toContain('unready-');
  }, 60_000);

  it('connects only to the pod that it names', async () => {
    await box.create('StatefulSet', setOf(server('db', 2)));
    await podsOf(box, 'db').ready(2);
    const tether = await field({ sandbox: box, name: 'db', settings: { pod: 'db-1' } });
    Object.assign(tether.route.workload, { kind: 'StatefulSet' });
    const names = await Promise.all(Array.from({ length: 8 }, () => answer(tether.port, 'name\n')));
    expect(new Set(names)).toEqual(new Set(['db-1\n']));
  }, 60_000);

  it('reports the reason that the cluster gives for pods that it does not create', async () => {
    const object = setOf(server('lost', 1, { spec: { serviceAccountName: 'nobody-here' } }));
    await box.create('StatefulSet', object);
    const events = `/api/v1/namespaces/${box.namespace}/events?fieldSelector=involvedObject.name%3Dlost`;
    await eventually(async () => (await api('GET', events)).body.items.length > 0);
    const clock = virtualClock();
    const tether = await field({ sandbox: box, name: 'lost', clock });
    Object.assign(tether.route.workload, { kind: 'StatefulSet' });
    const { ended } = client(tether.port, 'name\n');
    let how = '';
    void ended.then((end) => {
      how = end;
    });
    await eventually(async () => {
      if (how === '') await clock.advance(500);
      return how !== '';
    });
    expect(how).toBe('ECONNRESET');
    await clock.advance(1_000);
    expect(await lastError(tether)).toMatch(/StatefulSet lost: FailedCreate: .*nobody-here/);
  }, 60_000);
});
