// Guarantee 2: messages from one sender to one receiver arrive in order, tells and asks together, within a
// node and between nodes.
import { expect, it } from 'vitest';
import { twoWorlds, world } from '../kit/actors.ts';
import { type Probe, probe } from '../kit/probe_actor.ts';

const expected = (count: number) => Array.from({ length: count }, (_, index) => `echo ${index}`);

it('messages arrive in order within a node, also while the receiver is busy', async () => {
  const { start } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const held = ref.ask('hold', { key: 'x' });
  let last: Promise<unknown> = held;
  for (let value = 0; value < 1000; value += 1) {
    if (value % 3 === 0) last = ref.ask('echo', { value });
    else ref.tell('echo', { value });
  }
  open('x');
  await last;
  expect(log.slice(3)).toEqual(expected(1000));
});

it('messages arrive in order between nodes, over many turns and with frames large enough to be posted in parts', async () => {
  const { near, far } = twoWorlds();
  const { type, log } = probe();
  await far.start('far', type, null);
  const ref = near.ref<Probe>('far');
  const large = 'x'.repeat(300_000);
  for (let value = 0; value < 20; value += 1) {
    ref.tell('echo', { value });
    if (value % 4 === 0) ref.tell('echo', { value: large });
    if (value % 7 === 0) await ref.ask('echo', { value: 'turn' });
  }
  await ref.ask('echo', { value: 'last' });
  expect(log.filter((line) => /^echo \d/.test(line))).toEqual(expected(20));
});
