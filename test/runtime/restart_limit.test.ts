// Guarantee 6: after more than `max` crashes within `withinMs` an actor ends, its queue is answered, and
// watchers are notified once.
import { expect, it, vi } from 'vitest';
import { actor } from '../../src/runtime/actor.ts';
import { settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

const limits = { restarts: { max: 2, withinMs: 1000 } };

it('too many crashes end the actor, settle the queue with `gone` and notify each watcher once', async () => {
  const { start, clock, crashes } = world();
  const { type } = probe(limits);
  const watcher = probe();
  const ref = await start('a', type, null);
  const watching = await start('w', watcher.type, null);
  await watching.ask('watch', { address: 'a' });
  const codes = [1, 2, 3].map((text) => codeOf(ref.ask('boom', { text: String(text) })));
  codes.push(codeOf(ref.ask('echo', { value: 1 })));
  await clock.advance(500);
  expect(await Promise.all(codes)).toEqual(['crashed', 'crashed', 'crashed', 'gone']);
  expect(watcher.log).toEqual(['init 1', 'ended a']);
  expect(crashes.splice(0).map(({ ended }) => ended)).toEqual([false, false, true]);
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('gone');
});

it('crashes older than the window do not count', async () => {
  const { start, clock, crashes } = world();
  const { type } = probe(limits);
  const ref = await start('a', type, null);
  for (let crash = 0; crash < 6; crash += 1) {
    expect(await codeOf(ref.ask('boom', { text: 'x' }))).toBe('crashed');
    await clock.advance(501);
  }
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('none');
  expect(crashes.splice(0)).toHaveLength(6);
});

it('an `init` that throws is a crash, and `start` resolves after the first that does not', async () => {
  const { node, clock, crashes } = world();
  const steps = probe(limits);
  steps.onInit = (incarnation) => {
    if (incarnation < 3) throw new Error('not yet');
  };
  const started = node.start('a', steps.type, null);
  await clock.advance(100);
  await started;
  expect(steps.log).toEqual(['init 1', 'close 1', 'init 2', 'close 2', 'init 3']);
  expect(crashes.splice(0)).toHaveLength(2);
});

it('an `init` that reports its own crash and returns has not started the actor', async () => {
  const { node, clock, crashes } = world();
  let inits = 0;
  const type = actor<{ nothing(message: null): null }, null>('shaky', (context) => {
    inits += 1;
    if (inits === 1) context.crash(new Error('in init'));
    return { nothing: () => null };
  });
  const started = vi.fn();
  const start = node.start('a', type, null).then(started);
  await settle();
  expect(started).not.toHaveBeenCalled();
  await clock.advance(10);
  await start;
  expect(inits).toBe(2);
  expect(crashes.splice(0)).toHaveLength(1);
});

it('`start` rejects if the actor ended before it ever ran', async () => {
  const { node, clock, crashes } = world();
  const steps = probe(limits);
  steps.onInit = () => {
    throw new Error('never');
  };
  const code = codeOf(node.start('a', steps.type, null));
  await clock.advance(100);
  expect(await code).toBe('crashed');
  expect(crashes.splice(0).map(({ ended }) => ended)).toEqual([false, false, true]);
});

it('a member of a family that ended after crashes starts again with the next message', async () => {
  const { node, ref, clock, crashes } = world();
  const { type, log } = probe({ restarts: { max: 0, withinMs: 1000 } });
  node.family('f:', type, () => null);
  const one = ref<Probe>('f:one');
  const codes = [codeOf(one.ask('boom', { text: 'x' })), codeOf(one.ask('echo', { value: 1 }))];
  await clock.advance(0);
  expect(await Promise.all(codes)).toEqual(['crashed', 'gone']);
  await settle();
  expect(await codeOf(one.ask('echo', { value: 2 }))).toBe('none');
  expect(log).toEqual(['init 1', 'close 1', 'init 2', 'echo 2']);
  expect(crashes.splice(0)).toHaveLength(1);
});
