// Families: a member starts at its first message, and at the next one after it has ended itself.
import { expect, it } from 'vitest';
import { actor } from '../../src/runtime/actor.ts';
import { settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

interface Named {
  name(message: null): { name: string };
}

it('each member is a separate actor with its own configuration, started by its first message', async () => {
  const { node, ref } = world();
  const started: string[] = [];
  const named = actor<Named, string>('named', (_, name) => {
    started.push(name);
    return { name: () => ({ name }) };
  });
  node.family('f:', named, (address) => address.slice(2));
  expect(await ref<Named>('f:one').ask('name', null)).toEqual({ name: 'one' });
  expect(await ref<Named>('f:two:x').ask('name', null)).toEqual({ name: 'two:x' });
  expect(await ref<Named>('f:one').ask('name', null)).toEqual({ name: 'one' });
  expect(started).toEqual(['one', 'two:x']);
});

it('an `end` loses no message: those received meanwhile restart the actor, in order', async () => {
  const { node, ref } = world();
  const { type, log } = probe();
  node.family('f:', type, () => null);
  const one = ref<Probe>('f:one');
  const asks = [one.ask('end', {}), one.ask('echo', { value: 1 })];
  await settle();
  asks.push(one.ask('echo', { value: 2 }));
  await Promise.all(asks);
  expect(log).toEqual(['init 1', 'close 1', 'init 2', 'echo 1', 'echo 2']);
});

it('an `end` waits for open deferred replies, but not forever', async () => {
  const { node, ref, clock } = world();
  const { type, log, open } = probe({ drainMs: 100 });
  node.family('f:', type, () => null);
  const one = ref<Probe>('f:one');
  const [answered, given] = [codeOf(one.ask('later', { key: 'x' })), codeOf(one.ask('later', { key: 'y' }))];
  const next = codeOf(one.ask('end', {}).then(() => one.ask('echo', { value: 1 })));
  await clock.advance(50);
  open('x');
  expect(await answered).toBe('none');
  expect(log).not.toContain('close 1');
  await clock.advance(50);
  expect(await given).toBe('gone');
  expect(await next).toBe('none');
  open('y');
});

it('an `end` of an actor outside a family settles its queue with `gone`', async () => {
  const { start } = world();
  const { type } = probe();
  const ref = await start('a', type, null);
  const codes = [codeOf(ref.ask('end', {})), codeOf(ref.ask('echo', { value: 1 }))];
  expect(await Promise.all(codes)).toEqual(['none', 'gone']);
});

it('a configuration that cannot be created crashes only that actor', async () => {
  const { node, ref, clock, crashes } = world();
  const { type } = probe({ restarts: { max: 0, withinMs: 1000 } });
  node.family('f:', type, (address) => {
    if (address === 'f:bad') throw new Error('no configuration');
    return null;
  });
  const codes = ['f:bad', 'f:good'].map((address) => codeOf(ref<Probe>(address).ask('echo', { value: 1 })));
  await clock.advance(10);
  expect(await Promise.all(codes)).toEqual(['gone', 'none']);
  expect(crashes.splice(0)).toMatchObject([
    { address: 'f:bad', error: { message: 'no configuration' }, ended: true },
  ]);
});

it('a message to the wrong node starts nothing', async () => {
  const { node, ref } = world({ nodeOf: (address) => (address === 'f:elsewhere' ? 'other' : 'test') });
  const { type, log } = probe();
  node.family('f:', type, () => null);
  expect(await codeOf(ref<Probe>('f:elsewhere').ask('echo', { value: 1 }))).toBe('gone');
  expect(log).toEqual([]);
  expect(() => node.family('f:x:', type, () => null)).toThrow(/only colon/);
  expect(() => node.family('plain', type, () => null)).toThrow(/only colon/);
});

it('two starts at one address are a defect', async () => {
  const { start } = world();
  const { type } = probe();
  await start('a', type, null);
  await expect(start('a', type, null)).rejects.toThrow('started already');
});
