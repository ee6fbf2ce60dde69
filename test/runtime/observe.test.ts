import { expect, it } from 'vitest';
import type { RuntimeEvent } from '../../src/runtime/actor.ts';
import { settle, world } from '../kit/actors.ts';
import { codeOf, probe } from '../kit/probe_actor.ts';

it('reports mailbox depth, open asks, missed deadlines and crashes', async () => {
  const events: RuntimeEvent[] = [];
  const { start, clock, crashes } = world({ observe: (event) => events.push(event) });
  const { type, open } = probe();
  const ref = await start('a', type, null);
  const held = ref.ask('hold', { key: 'x' });
  const late = codeOf(ref.ask('echo', { value: 1 }, { deadlineMs: 50 }));
  await settle();
  expect(events.splice(0)).toEqual([
    { is: 'asked', peer: 'test', to: 'a', open: 1 },
    { is: 'asked', peer: 'test', to: 'a', open: 2 },
    { is: 'queued', address: 'a', waiting: 1, open: 0 },
    { is: 'queued', address: 'a', waiting: 1, open: 0 },
  ]);
  await clock.advance(100);
  expect(await late).toBe('deadline');
  expect(events.splice(0)).toEqual([{ is: 'missed', peer: 'test', to: 'a' }]);
  open('x');
  await held;
  expect(await codeOf(ref.ask('boom', { text: 'defect' }))).toBe('crashed');
  const [crash] = crashes.splice(0);
  expect(events.at(-1)).toEqual({ is: 'crashed', address: 'a', error: crash?.error, ended: false });
  await clock.advance(100);
});
