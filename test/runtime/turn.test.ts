// `context.turn`: a deferred reply, in the order of its key.
import { expect, it } from 'vitest';
import { settle, world } from '../kit/actors.ts';
import { codeOf, probe } from '../kit/probe_actor.ts';

async function started() {
  const made = world();
  const steps = probe();
  const ref = await made.start('a', steps.type, null);
  const turn = (key: string, hold: string) => ref.ask('turn', { key, hold });
  return { ...made, ...steps, steps, ref, turn };
}

it('turns of one key run in order, those of another key at once, and the mailbox continues', async () => {
  const { log, open, ref, turn } = await started();
  const asks = [turn('k', 'x'), turn('k', 'y'), turn('l', 'z')];
  await ref.ask('echo', { value: 1 });
  await settle();
  expect(log.toSorted()).toEqual(['begin x', 'begin z', 'echo 1', 'init 1']);
  open('x');
  expect(await asks[0]).toEqual({ key: 'x' });
  await settle();
  expect(log).toContain('begin y');
  open('y');
  open('z');
  await Promise.all(asks);
});

it('a turn that fails lets the next one run', async () => {
  const { crashes, open, turn } = await started();
  const first = codeOf(turn('k', 'x'));
  const second = turn('k', 'y');
  open('y');
  open('x', Object.assign(new Error('as asked'), { name: 'Failure', code: 'busy' }));
  expect(await first).toBe('busy');
  expect(await second).toEqual({ key: 'y' });
  expect(crashes).toEqual([]);
});

it('turns queued at a crash do not run, and the next incarnation starts without them', async () => {
  const { crashes, clock, log, open, turn } = await started();
  const codes = [codeOf(turn('k', 'x')), codeOf(turn('k', 'y'))];
  await settle();
  open('x', new Error('defect'));
  expect(await Promise.all(codes)).toEqual(['crashed', 'crashed']);
  await clock.advance(100);
  expect(crashes.splice(0).map(({ address }) => address)).toEqual(['a']);
  const next = turn('k', 'z');
  open('z');
  expect(await next).toEqual({ key: 'z' });
  expect(log).not.toContain('begin y');
});
