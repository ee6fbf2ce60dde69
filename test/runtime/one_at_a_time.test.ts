// Guarantee 1: one message at a time per actor, awaits included; only `later` keeps two requests open.
import { expect, it } from 'vitest';
import { settle, world } from '../kit/actors.ts';
import { codeOf, probe } from '../kit/probe_actor.ts';

it('a handler that waits holds back the next message until it is done', async () => {
  const { start } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const first = ref.ask('hold', { key: 'x' });
  const second = ref.ask('echo', { value: 1 });
  ref.tell('echo', { value: 2 });
  await settle();
  expect(log).toEqual(['init 1', 'begin x']);
  open('x');
  await Promise.all([first, second]);
  await settle();
  expect(log).toEqual(['init 1', 'begin x', 'end x', 'echo 1', 'echo 2']);
});

it('a deferred reply lets the next message in, and is sent when its promise settles, in any order', async () => {
  const { start } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const answers: string[] = [];
  const ask = (key: string) => ref.ask('later', { key }).then((reply) => answers.push(reply.key));
  const asks = [ask('x'), ask('y')];
  await ref.ask('echo', { value: 1 });
  expect(log).toEqual(['init 1', 'begin x', 'begin y', 'echo 1']);
  open('y');
  await settle();
  open('x');
  await Promise.all(asks);
  expect(answers).toEqual(['y', 'x']);
});

it('a deferred reply that fails is a failure or a crash, as if the handler had thrown', async () => {
  const { start, crashes } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const broken = codeOf(ref.ask('later', { key: 'x' }));
  await settle();
  open('x', new Error('later is broken'));
  expect(await broken).toBe('crashed');
  await settle();
  expect(crashes.splice(0)).toMatchObject([{ address: 'a', error: { message: 'later is broken' } }]);
  expect(log).toEqual(['init 1', 'begin x', 'close 1']);
});

it('no message is handled before `init` is done', async () => {
  const { node, ref } = world();
  const { type, log, open } = probe();
  const steps = { type, log };
  node.family('f:', steps.type, () => null);
  const first = ref('f:x');
  const asked = codeOf(
    (first as ReturnType<typeof ref<import('../kit/probe_actor.ts').Probe>>).ask('echo', { value: 1 }),
  );
  open('unused');
  expect(await asked).toBe('none');
  expect(log).toEqual(['init 1', 'echo 1']);
});
