// Guarantee 7: asks go down, tells go up, so that two actors never wait for each other.
import { expect, it } from 'vitest';
import { settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

const RANKS = new Map([
  ['upper', 1],
  ['lower', 2],
]);
const mayAsk = (from: string, to: string) => (RANKS.get(from) ?? 0) < (RANKS.get(to) ?? 0);

it('an ask to a higher rank is a defect: it throws in the actor, which crashes', async () => {
  const { start, crashes, clock } = world({ mayAsk });
  const [upper, lower] = [probe(), probe()];
  const top = await start('upper', upper.type, null);
  const bottom = await start('lower', lower.type, null);
  expect(await codeOf(top.ask('ask', { address: 'lower', kind: 'echo' }))).toBe('none');
  for (const address of ['upper', 'lower']) {
    expect(await codeOf(bottom.ask('ask', { address, kind: 'echo' }))).toBe('crashed');
    await clock.advance(1000);
  }
  expect(crashes.splice(0).map(({ error }) => String(error))).toEqual([
    'TypeError: lower may not ask upper (echo): asks go down, tells go up',
    'TypeError: lower may not ask lower (echo): asks go down, tells go up',
  ]);
  expect(upper.log).toEqual(['init 1']);
});

it('tells, and asks by the node itself, go to any rank', async () => {
  const { start, ref } = world({ mayAsk });
  const upper = probe();
  await start('upper', upper.type, null);
  ref<Probe>('upper').tell('echo', { value: 1 });
  await ref<Probe>('upper').ask('echo', { value: 2 });
  await settle();
  expect(upper.log).toEqual(['init 1', 'echo 1', 'echo 2']);
});
