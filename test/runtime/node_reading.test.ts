import { expect, it } from 'vitest';
import { settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

it('a node reports the depth of mailboxes, open asks and replies, missed deadlines and crashes', async () => {
  const { node, start, clock, crashes } = world();
  const { type, open } = probe();
  const ref = await start('a', type, null);
  const idle = { address: 'a', actors: 1, waiting: 0, longest: 0, open: 0 };
  expect(node.read()).toEqual({
    actors: [idle],
    ...{ openAsks: 0, messages: 0, missedDeadlines: 0, crashes: 0 },
  });

  const held = ref.ask('hold', { key: 'x' });
  const late = codeOf(ref.ask('echo', { value: 1 }, { deadlineMs: 50 }));
  const more = ref.ask('echo', { value: 2 });
  await settle();
  // `hold` is being handled; the others wait for it.
  expect(node.read()).toEqual({
    actors: [{ ...idle, waiting: 2, longest: 2 }],
    ...{ openAsks: 3, messages: 3, missedDeadlines: 0, crashes: 0 },
  });

  await clock.advance(100);
  expect(await late).toBe('deadline');
  expect(node.read()).toMatchObject({ openAsks: 2, missedDeadlines: 1 });
  open('x');
  await Promise.all([held, more]);
  expect(await codeOf(ref.ask('boom', { text: 'defect' }))).toBe('crashed');
  expect(crashes.splice(0)).toHaveLength(1);
  expect(node.read()).toMatchObject({ actors: [idle], openAsks: 0, messages: 4, crashes: 1 });
  await clock.advance(100);
});

it('a node reports the sum of the actors of a family', async () => {
  const { node } = world();
  const { type, open } = probe();
  node.family('service:', type, () => null);
  const asks = ['service:a', 'service:b', 'service:b'].map((address, index) =>
    node.ref<Probe>(address).ask('hold', { key: `k${index}` }),
  );
  await settle();
  expect(node.read().actors).toEqual([{ address: 'service:', actors: 2, waiting: 1, longest: 1, open: 0 }]);
  for (const index of asks.keys()) {
    open(`k${index}`);
    await settle();
  }
  await Promise.all(asks);
});
