// Watches are let in as fast as what they report is committed: docs/reference.md "Sync".
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { WatchGate } from '../../../src/actors/cloud/watch_gate.ts';
import type { CloudStore } from '../../../src/adapters/storage/cloud_store.ts';
import { fail } from '../../../src/protocol/errors.ts';
import { type Deferred, deferred } from '../../../src/runtime/deferred.ts';
import { settle } from '../../kit/actors.ts';
import { cloud, doubleWith, eventually } from '../../kit/cloud.ts';
import { workload } from '../../kit/kube_double.ts';

describe('a gate for watches', () => {
  /** A gate whose commits are ended by hand. */
  function gated() {
    const commits: Deferred<void>[] = [];
    const passed: string[] = [];
    const gate = new WatchGate(() => {
      const commit = deferred<void>();
      commits.push(commit);
      return commit.promise;
    });
    const pass = (name: string, count: number) => gate.pass(count, async () => void passed.push(name));
    return { commits, passed, pass };
  }

  it('lets a thousand events in that are not committed, and the others in their order', async () => {
    const { commits, passed, pass } = gated();
    const all = ['a', 'b', 'c', 'd'].map((name) => pass(name, 400));
    const few = pass('few', 1);
    await settle();
    expect(passed).toEqual(['a', 'b']);
    commits[0]?.resolve();
    await all[0];
    await settle();
    expect(passed).toEqual(['a', 'b', 'c']);
    commits[1]?.resolve();
    await settle();
    expect(passed).toEqual(['a', 'b', 'c', 'd', 'few']);
    for (const commit of commits) commit.resolve();
    await Promise.all([...all, few]);
  });

  it('lets more events than that in alone, and bookmarks at once', async () => {
    const { commits, passed, pass } = gated();
    const large = pass('large', 5_000);
    const next = pass('next', 1);
    await settle();
    await pass('bookmark', 0);
    expect(passed).toEqual(['large', 'bookmark']);
    commits[0]?.resolve();
    await large;
    await settle();
    expect(passed).toEqual(['large', 'bookmark', 'next']);
    commits[1]?.resolve();
    await next;
  });

  it('opens again after a commit that the disk has refused, and after a defect', async () => {
    const { commits, passed, pass } = gated();
    const [first, second] = [pass('first', 1_000), pass('second', 1)];
    await settle();
    commits[0]?.reject(fail('storage_full', 'no room'));
    await first;
    await settle();
    expect(passed).toEqual(['first', 'second']);
    commits[1]?.reject(new TypeError('x is not a function'));
    await expect(second).rejects.toThrow('x is not a function');
    const third = pass('third', 1_000);
    await settle();
    commits[2]?.resolve();
    await third;
  });
});

it('a flood of one cluster keeps nobody waiting for more than a few commits', async () => {
  const [flooding, quiet] = [await doubleWith('there'), await doubleWith('hello')];
  let saved = 0;
  const slowly = (store: CloudStore): CloudStore => ({
    ...store,
    save: async (batch) => {
      await pause(20);
      saved += batch.records.length;
      return store.save(batch);
    },
  });
  const here = await cloud({ store: slowly });
  await here.add(flooding.kubeconfig, 'flooding');
  await here.add(quiet.kubeconfig, 'quiet');
  await eventually(() => flooding.watches.length === 2 && quiet.watches.length === 2);
  const EVENTS = 8_000;
  for (let index = 0; index < EVENTS; index += 1)
    flooding.put('Deployment', workload('web', `new-${index}`, 1));
  await eventually(() => saved > 1_000);
  const before = saved;
  await here.workloads.ask('sleep', { id: here.find('web/hello').id, by: 'request', holdMs: null });
  expect(saved - before).toBeLessThan(4_000);
  expect(saved).toBeLessThan(EVENTS);
  await eventually(() => here.list().length === EVENTS + 2);
}, 60_000);
