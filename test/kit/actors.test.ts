// The kit itself: other tests rely on its stand-ins and its virtual time.
import { expect, it } from 'vitest';
import { actor } from '../../src/runtime/actor.ts';
import { settle, virtualClock, world } from './actors.ts';
import { untypedRef } from './untyped_node.ts';

interface Lower {
  lookup(message: { key: string }): { value: number };
  changed(message: { key: string }): null;
}
interface Upper {
  get(message: { key: string }): { value: number };
}
const upper = actor<Upper, null>('upper', (context) => {
  const lower = untypedRef<Lower>(context, 'lower');
  return {
    get: async ({ key }) => {
      lower.tell('changed', { key });
      return await lower.ask('lookup', { key });
    },
  };
});

it('a stand-in keeps what it received, replies as scripted and can be awaited', async () => {
  const { start, stand } = world();
  const lower = await stand<Lower>('lower', { lookup: () => ({ value: 7 }) });
  const ref = await start('upper', upper, null);
  expect(await ref.ask('get', { key: 'a' })).toEqual({ value: 7 });
  expect(lower.received).toEqual([
    { kind: 'changed', message: { key: 'a' } },
    { kind: 'lookup', message: { key: 'a' } },
  ]);
  lower.answer({ lookup: () => ({ value: 8 }) });
  const later = lower.next('lookup').then(() => lower.next('lookup'));
  expect(await ref.ask('get', { key: 'b' })).toEqual({ value: 8 });
  expect(await later).toEqual({ key: 'b' });
  expect(lower.of('changed')).toEqual([{ key: 'a' }, { key: 'b' }]);
});

it('virtual time runs timers in due order, including timers set meanwhile', async () => {
  const clock = virtualClock();
  const seen: string[] = [];
  const stop = clock.every(10, () => seen.push(`every ${clock.monotonic()}`));
  clock.after(25, () => {
    seen.push('after 25');
    clock.after(1, () => seen.push(`nested ${clock.monotonic()}`));
  });
  clock.after(30, () => seen.push('never'))();
  await clock.advance(26);
  expect(seen).toEqual(['every 10', 'every 20', 'after 25', 'nested 26']);
  stop();
  await clock.advance(1000);
  expect(clock.monotonic()).toBe(1026);
  expect(seen).toHaveLength(4);
  await settle();
});
