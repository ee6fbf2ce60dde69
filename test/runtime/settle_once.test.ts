// Guarantee 3: an ask settles exactly once: reply, failure, overloaded, deadline, crashed or gone. An expired
// message is not run.
import { expect, it, vi } from 'vitest';
import { settle, twoWorlds, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

it('an ask settles with the reply or the failure of the handler, its code and detail included', async () => {
  const { near, far } = twoWorlds();
  const { type } = probe();
  await far.start('far', type, null);
  const ref = near.ref<Probe>('far');
  expect(await ref.ask('echo', { value: [1, null, 'ü', 1.5] })).toEqual({ value: [1, null, 'ü', 1.5] });
  await expect(ref.ask('fail', { code: 'busy', detail: { path: ['a'] } })).rejects.toMatchObject({
    name: 'Failure',
    code: 'busy',
    message: 'as asked',
    detail: { path: ['a'] },
  });
  await expect(ref.ask('fail', { code: 'busy', detail: undefined })).rejects.toHaveProperty(
    'detail',
    undefined,
  );
});

it('an ask settles with `deadline` on time, and a late reply has no effect', async () => {
  const { start, clock } = world();
  const { type, open } = probe();
  const ref = await start('a', type, null);
  const settled = vi.fn();
  codeOf(ref.ask('hold', { key: 'x' }, { deadlineMs: 1000 })).then(settled);
  await clock.advance(999);
  expect(settled).not.toHaveBeenCalled();
  await clock.advance(1);
  expect(settled).toHaveBeenCalledWith('deadline');
  open('x');
  await settle();
  expect(settled).toHaveBeenCalledTimes(1);
});

it('each of many deadlines is kept, whatever the order in which they were set', async () => {
  const { start, clock } = world();
  const { type, open } = probe();
  const ref = await start('a', type, null);
  const at: number[] = [];
  const deadlines = [500, 20, 900, 20, 300, 100, 901];
  for (const deadlineMs of deadlines) {
    codeOf(ref.ask('hold', { key: 'x' }, { deadlineMs })).then(() => at.push(clock.monotonic()));
  }
  await clock.advance(1000);
  // One pass settles several: none early, none more than a few milliseconds late.
  expect(at).toHaveLength(deadlines.length);
  for (const [index, due] of deadlines.toSorted((a, b) => a - b).entries()) {
    expect(at[index]).toBeGreaterThanOrEqual(due);
    expect(at[index]).toBeLessThanOrEqual(due + 5);
  }
  open('x');
});

it('an ask without its own deadline has the default one', async () => {
  const { start, clock } = world({ defaultDeadlineMs: 70 });
  const { type, open } = probe();
  const ref = await start('a', type, null);
  const code = codeOf(ref.ask('hold', { key: 'x' }));
  await clock.advance(70);
  expect(await code).toBe('deadline');
  open('x');
});

it('an ask that expired in the queue is not run; a tell never expires', async () => {
  const { start, clock } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const held = ref.ask('hold', { key: 'x' });
  const expired = codeOf(ref.ask('echo', { value: 'expired' }, { deadlineMs: 50 }));
  const patient = ref.ask('echo', { value: 'patient' });
  ref.tell('echo', { value: 'told' });
  await clock.advance(100);
  open('x');
  await Promise.all([held, patient]);
  await settle();
  expect(await expired).toBe('deadline');
  expect(log).toEqual(['init 1', 'begin x', 'end x', 'echo "patient"', 'echo "told"']);
});

it.each([0, -5, Number.NaN])(
  'a message without time left (%s) is not run even by an idle actor',
  async (deadlineMs) => {
    const { start, clock } = world();
    const { type, log } = probe();
    const ref = await start('a', type, null);
    const code = codeOf(ref.ask('echo', { value: 1 }, { deadlineMs }));
    await clock.advance(1);
    expect(await code).toBe('deadline');
    expect(log).toEqual(['init 1']);
  },
);

it('an ask settles with `gone` if the address has no actor or no node, or the message has no handler', async () => {
  const { ref, start, crashes } = world({ nodeOf: (address) => ({ a: 'test', far: 'elsewhere' })[address] });
  const { type } = probe();
  await start('a', type, null);
  expect(await codeOf(ref<Probe>('far').ask('echo', { value: 1 }))).toBe('gone');
  expect(await codeOf(ref<Probe>('nowhere').ask('echo', { value: 1 }))).toBe('gone');
  const other = ref<{ missing(message: null): null; toString(message: null): null }>('a');
  expect(await codeOf(other.ask('missing', null))).toBe('gone');
  expect(await codeOf(other.ask('toString', null))).toBe('gone');
  expect(crashes.splice(0).map(({ error }) => String(error))).toEqual([
    'TypeError: no handler for missing',
    'TypeError: no handler for toString',
  ]);
});

it('an ask settles with `gone` when the connection is lost, and a late reply is dropped', async () => {
  const { near, far, cut } = twoWorlds();
  const { type, log, open } = probe();
  await far.start('far', type, null);
  const lost: string[] = [];
  near.node.onPeerLost((peer, reason) => lost.push(`${peer}: ${reason}`));
  const ref = near.ref<Probe>('far');
  const code = codeOf(ref.ask('hold', { key: 'x' }));
  await settle();
  cut('cable');
  expect(await code).toBe('gone');
  open('x');
  await settle();
  expect(log).toEqual(['init 1', 'begin x', 'end x']);
  expect(lost).toEqual(['far: cable']);
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('gone');
});

it('a rejected ask that nobody awaits does not end the process', async () => {
  const { ref } = world();
  const unhandled = vi.fn();
  process.on('unhandledRejection', unhandled);
  void ref<Probe>('nobody').ask('echo', { value: 1 });
  await settle();
  await settle();
  process.off('unhandledRejection', unhandled);
  expect(unhandled).not.toHaveBeenCalled();
});
