// Auto-sleep: the sweeper over the wire-accurate double.
import { describe, expect, it } from 'vitest';
import { settle, virtualClock } from '../../kit/actors.ts';
import { cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { workload } from '../../kit/kube_double.ts';
import { policyInput } from '../../kit/policies.ts';

describe('auto-sleep', () => {
  const MINUTE = 60_000;
  async function ready(minutes = 10, sweepMs = 10_000 * MINUTE) {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    const here = await cloud({ clock, sweepMs });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes });
    const slept = () => double.get('Deployment', 'web', 'hello').spec.replicas === 0;
    return { double, clock, here, id, slept };
  }

  it('has settings that can be changed independently', async () => {
    const { here, id } = await ready(3);
    expect(await here.workloads.ask('autoSleep', { id, enabled: null, minutes: 9 })).toEqual({
      auto_sleep_enabled: true,
      idle_timeout_minutes: 9,
    });
    expect(await here.workloads.ask('autoSleep', { id, enabled: false, minutes: null })).toEqual({
      auto_sleep_enabled: false,
      idle_timeout_minutes: 9,
    });
    expect(here.find('web/hello')).toMatchObject({ auto_sleep_enabled: false, idle_timeout_minutes: 9 });
    await expect(
      here.workloads.ask('autoSleep', { id: 'x', enabled: true, minutes: 1 }),
    ).rejects.toMatchObject({ code: 'unknown_workload' });
  });

  it('puts unused workloads to sleep at the sweep', async () => {
    const { clock, here, slept, double } = await ready(15, 10 * MINUTE);
    await clock.advance(10 * MINUTE);
    await settle();
    expect(slept()).toBe(false);
    await clock.advance(10 * MINUTE);
    await eventually(slept);
    expect(await here.until('web/hello', (row) => row.replicas === 0)).toMatchObject({
      desired_replicas: 3,
      sleep_reason: 'put to sleep by auto-sleep',
    });
    expect(JSON.parse(double.get('Deployment', 'web', 'hello').metadata.annotations['berth/sleep']).by).toBe(
      'idle',
    );
  });

  it('counts from the last connection', async () => {
    const { clock, here, id } = await ready(10);
    await clock.advance(9 * MINUTE);
    here.workloads.tell('activity', { id, at: clock.now() });
    await clock.advance(9 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    const { last_activity_at } = await here.until('web/hello', (row) => row.last_activity_at !== null);
    expect(last_activity_at).toBe(new Date(clock.now() - 10 * MINUTE).toISOString());
  });

  it('does not affect a workload while an open connection moves bytes', async () => {
    const { clock, here, id } = await ready(10);
    await clock.advance(30 * MINUTE - 1);
    const traffic = (ago: number): void =>
      here.workloads.tell('traffic', { id, lastByteAt: clock.now() - ago });
    traffic(11 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    traffic(5 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    traffic(0);
    expect((await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).slept).toBe(false);
    await clock.advance(10 * MINUTE);
    expect((await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).slept).toBe(true);
  });

  it('counts from the last byte, also after its connection has closed and across a restart', async () => {
    const { clock, here, id } = await ready(10);
    here.workloads.tell('activity', { id, at: clock.now() });
    const connectedAt = new Date(clock.now()).toISOString();
    await clock.advance(120 * MINUTE);
    here.workloads.tell('traffic', { id, lastByteAt: clock.now() });
    await clock.advance(5 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await here.stop();
    const later = await cloud({ folder: here.folder, vault: here.vault, clock, sweepMs: 10_000 * MINUTE });
    await clock.advance(5 * MINUTE - 1);
    expect(await later.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(1);
    expect(await later.workloads.ask('idle', {})).toEqual({ ids: [id] });
    // The time of the last connection: docs/reference.md "Workloads".
    expect(later.find('web/hello').last_activity_at).toBe(connectedAt);
  });

  it('does not affect a workload that was recreated a moment ago, unlike one that only changed', async () => {
    for (const isNew of [true, false]) {
      const { clock, here, id, double, slept } = await ready(10);
      await clock.advance(10 * MINUTE);
      double.fault(
        ({ method, path }) => {
          if (method !== 'GET' || !path.endsWith('/hello')) return false;
          // The watch reports it only after it was read.
          for (const watch of double.watches) watch.stall();
          double.put('Deployment', workload('web', 'hello', 3), isNew);
          return false;
        },
        { kind: 'stall' },
      );
      expect((await here.workloads.ask('sleep', { id, by: 'idle', holdMs: null })).slept).toBe(!isNew);
      expect(slept()).toBe(!isNew);
      const told = here.tethers.of('workloadSleeping').map(({ isSleeping }) => isSleeping);
      expect(told).toEqual(isNew ? [true, false] : [true]);
    }
  });

  it('counts from the last wake', async () => {
    const { clock, here, id, double } = await ready(10);
    await here.workloads.ask('sleep', { id, by: 'request', holdMs: null });
    await clock.advance(60 * MINUTE);
    await here.workloads.ask('wake', { id, by: 'request', waitMs: null });
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(10 * MINUTE);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
    expect(double.get('Deployment', 'web', 'hello').spec.replicas).toBe(3);
  });

  it('waits after a restart until the tethers have reported', async () => {
    const { clock, here, id } = await ready(1);
    await clock.advance(30_000);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [] });
    await clock.advance(31_000);
    expect(await here.workloads.ask('idle', {})).toEqual({ ids: [id] });
  });

  it('leaves out workloads whose sleep is refused or always undone, and reports why', async () => {
    const { clock, here, id, double } = await ready(10);
    double.put('Deployment', workload('kube-system', 'dns', 1));
    const dns = await here.until('kube-system/dns', () => true);
    await here.workloads.ask('autoSleep', { id: dns.id, enabled: true, minutes: 1 });
    for (let round = 1; round <= 2; round += 1) {
      await clock.advance(10 * MINUTE);
      expect((await here.sweeper.ask('sweep', {})).slept).toEqual([id]);
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = 3;
      });
      await here.until('web/hello', (row) => row.replicas === 3);
    }
    await clock.advance(10 * MINUTE);
    expect((await here.workloads.ask('idle', {})).ids).toEqual([dns.id]);
    expect(await here.sweeper.ask('sweep', {})).toEqual({
      slept: [],
      left: [{ id: dns.id, reason: expect.stringMatching(/kube-system/) }],
    });
    expect(here.find('kube-system/dns').sleep_reason).toMatch(/^auto-sleep: .*kube-system/);
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 1 });
    await clock.advance(2 * MINUTE);
    expect((await here.workloads.ask('idle', {})).ids).toContain(id);
  });
});

describe('the auto-sleep of a workload continues', () => {
  const MINUTE = 60_000;

  async function awake() {
    const double = await doubleWith('hello');
    const clock = virtualClock();
    const here = await cloud({ clock, sweepMs: 10_000 * MINUTE });
    await here.add(double.kubeconfig);
    const { id } = here.find('web/hello');
    await here.workloads.ask('autoSleep', { id, enabled: true, minutes: 10 });
    /** Puts it to sleep; after `ms` something else gives it replicas. */
    const undone = async (by: 'request' | 'idle', ms: number): Promise<void> => {
      await clock.advance(10 * MINUTE);
      expect(await here.workloads.ask('sleep', { id, by, holdMs: null })).toMatchObject({ slept: true });
      await clock.advance(ms);
      double.change('Deployment', 'web', 'hello', (object) => {
        object.spec.replicas = 3;
      });
      const row = await here.until('web/hello', ({ replicas }) => replicas === 3);
      expect(row.sleep_reason).toMatch(/^the sleep was undone by something else, which set 3 replicas/);
    };
    const isSwept = async (): Promise<boolean> => {
      await clock.advance(10 * MINUTE);
      return (await here.workloads.ask('idle', {})).ids.length === 1;
    };
    return { here, undone, isSwept };
  }

  it('when a workload is scaled up long after its sleeps', async () => {
    const { undone, isSwept } = await awake();
    for (let round = 1; round <= 3; round += 1) await undone('idle', 15 * MINUTE + 1);
    expect(await isSwept()).toBe(true);
  });

  it('when requested sleeps are undone', async () => {
    const { undone, isSwept } = await awake();
    for (let round = 1; round <= 3; round += 1) await undone('request', 0);
    expect(await isSwept()).toBe(true);
  });

  it('until its sleeps are undone at once, twice in a row', async () => {
    const { undone, isSwept } = await awake();
    await undone('idle', 15 * MINUTE);
    await undone('idle', 60 * MINUTE);
    await undone('idle', 15 * MINUTE);
    expect(await isSwept()).toBe(true);
    await undone('idle', 0);
    expect(await isSwept()).toBe(false);
  });

  it('when a policy for it is changed, and not when the policies are read again', async () => {
    const { here, undone, isSwept } = await awake();
    const input = policyInput({ selector: { namespaces: ['web'] }, idle_timeout_minutes: 5 });
    const { policy } = await here.policies.ask('put', { name: 'idle', input });
    const other = policyInput({ selector: { namespaces: ['other'] }, idle_timeout_minutes: 5 });
    for (let round = 1; round <= 2; round += 1) await undone('idle', 0);
    expect(await isSwept()).toBe(false);
    await here.policies.ask('put', { name: 'other', input: other });
    await here.workloads.ask('setPolicies', { policies: [policy], areNew: false });
    expect(await isSwept()).toBe(false);
    await here.policies.ask('put', { name: 'idle', input });
    expect(await isSwept()).toBe(true);
  });
});
