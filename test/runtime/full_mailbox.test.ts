// Guarantee 4: a full mailbox refuses at once.
import { expect, it } from 'vitest';
import { settle, world } from '../kit/actors.ts';
import { codeOf, probe } from '../kit/probe_actor.ts';

it('a full mailbox refuses an ask with `overloaded`, and accepts messages again when there is room', async () => {
  const { start } = world();
  const { type, log, open } = probe({ mailbox: 2 });
  const ref = await start('a', type, null);
  const held = ref.ask('hold', { key: 'x' });
  const waiting = [ref.ask('echo', { value: 1 }), ref.ask('echo', { value: 2 })];
  expect(await codeOf(ref.ask('echo', { value: 3 }))).toBe('overloaded');
  open('x');
  await Promise.all([held, ...waiting]);
  await ref.ask('echo', { value: 4 });
  expect(log.slice(3)).toEqual(['echo 1', 'echo 2', 'echo 4']);
});

it('open deferred replies count as requests too', async () => {
  const { start } = world();
  const { type, open } = probe({ mailbox: 2 });
  const ref = await start('a', type, null);
  const open1 = ref.ask('later', { key: 'x' });
  const open2 = ref.ask('later', { key: 'y' });
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('overloaded');
  open('x');
  await open1;
  expect(await codeOf(ref.ask('echo', { value: 2 }))).toBe('none');
  open('y');
  await open2;
});

it('the first dropped tell is reported, and not each of a thousand', async () => {
  const { start, crashes } = world();
  const { type, log, open } = probe({ mailbox: 1 });
  const ref = await start('a', type, null);
  for (const key of ['x', 'y']) {
    ref.tell('hold', { key });
    for (let value = 0; value < 1000; value += 1) ref.tell('echo', { value });
    await settle();
    open(key);
    await settle();
  }
  expect(log.filter((line) => line.startsWith('echo'))).toEqual(['echo 0', 'echo 0']);
  expect(crashes.splice(0)).toMatchObject([
    { address: 'a', error: { code: 'overloaded' }, ended: false },
    { address: 'a', error: { code: 'overloaded' }, ended: false },
  ]);
});
