// Guarantee 8: a stop refuses new messages, answers queued ones, closes scopes, and reports what was late.
import { expect, it } from 'vitest';
import type { ActorType } from '../../src/runtime/actor.ts';
import { settle, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

it('a stop answers queued and open requests, refuses new ones, and closes', async () => {
  const { node, start } = world();
  const { type, log, open } = probe();
  const ref = await start('a', type, null);
  const later = codeOf(ref.ask('later', { key: 'l' }));
  const queued = [codeOf(ref.ask('hold', { key: 'x' })), codeOf(ref.ask('echo', { value: 1 }))];
  await settle();
  const stopped = node.stop();
  expect(await codeOf(ref.ask('echo', { value: 2 }))).toBe('gone');
  open('x');
  expect(await Promise.all(queued)).toEqual(['none', 'none']);
  await settle();
  expect(log.at(-1)).toBe('echo 1');
  open('l');
  expect(await later).toBe('none');
  expect(await stopped).toEqual([]);
  expect(log).toEqual(['init 1', 'begin l', 'begin x', 'end x', 'echo 1', 'end l', 'close 1']);
  expect(await codeOf(ref.ask('echo', { value: 3 }))).toBe('gone');
});

it('a stop ends the last started actor first, so that actors can still ask those below', async () => {
  const { node, start } = world();
  const closed: string[] = [];
  const named = (name: string) => {
    const steps = probe();
    steps.log.push = (line: string) => (line.startsWith('close') ? closed.push(name) : 0);
    return steps;
  };
  const [bottom, family, top] = [named('bottom'), named('family'), named('top')];
  await start('bottom', bottom.type, null);
  node.family('f:', family.type, () => null);
  const ref = await start('top', top.type, null);
  const first = codeOf(ref.ask('hold', { key: 'x' }));
  const asks = [
    codeOf(ref.ask('ask', { address: 'f:new', kind: 'echo' })),
    codeOf(ref.ask('ask', { address: 'bottom', kind: 'echo' })),
  ];
  await settle();
  const stopped = node.stop();
  top.open('x');
  expect(await Promise.all([first, ...asks])).toEqual(['none', 'none', 'none']);
  await stopped;
  expect(closed).toEqual(['top', 'family', 'bottom']);
});

it('a stop reports an actor that missed its drain time, and its open requests get `gone`', async () => {
  const { node, start, clock, late } = world();
  late.push('slow');
  const [slow, quick] = [probe({ drainMs: 200 }), probe()];
  const other = await start('quick', quick.type, null);
  const ref = await start('slow', slow.type, null);
  const codes = [
    codeOf(ref.ask('later', { key: 'never' })),
    codeOf(ref.ask('hold', { key: 'x' })),
    codeOf(ref.ask('echo', { value: 1 })),
  ];
  await other.ask('echo', { value: 1 });
  const stopped = node.stop();
  await clock.advance(200);
  expect(await Promise.all(codes.slice(0, 2))).toEqual(['gone', 'gone']);
  slow.open('x');
  expect(await codes[2]).toBe('gone');
  expect(await stopped).toEqual(['slow']);
  expect(slow.log.at(-1)).toBe('end x');
  expect(slow.log).toContain('close 1');
  expect(quick.log.at(-1)).toBe('close 1');
});

it('an `init` or a scope that never settles does not delay the stop', async () => {
  const { node, clock, start, crashes, late } = world();
  late.push('hanging', 'unclosing');
  const [hanging, unclosing] = [probe({ drainMs: 200 }), probe({ drainMs: 200 })];
  hanging.onInit = () => new Promise(() => {});
  const begun = codeOf(start('hanging', hanging.type, null));
  await start(
    'unclosing',
    withCloser(unclosing.type, () => new Promise(() => {})),
    null,
  );
  const stopped = node.stop();
  await clock.advance(1000);
  expect(await stopped).toEqual(['unclosing', 'hanging']);
  expect(await begun).toBe('crashed');
  expect(crashes.splice(0).map(({ address, error }) => `${address}: ${error}`)).toEqual([
    'unclosing: Error: its scope did not close in time',
    'hanging: Error: its scope did not close in time',
  ]);
});

it('`end` stops one actor and notifies its watchers, and its address can be started again', async () => {
  const { node, start } = world();
  const [first, watcher] = [probe(), probe()];
  const ref = await start('a', first.type, null);
  const watching = await start('w', watcher.type, null);
  await watching.ask('watch', { address: 'a' });
  expect(await node.end('a')).toBe(true);
  await settle();
  expect(watcher.log.at(-1)).toBe('ended a');
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('gone');
  await start('a', first.type, null);
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('none');
  expect(await node.end('nobody')).toBe(true);
});

it('a stop in the pause after a crash does not wait for another `init`', async () => {
  const { node, start, crashes } = world();
  const { type, log } = probe();
  const ref = await start('a', type, null);
  const codes = [codeOf(ref.ask('boom', { text: 'x' })), codeOf(ref.ask('echo', { value: 1 }))];
  await settle();
  expect(await node.stop()).toEqual([]);
  expect(await Promise.all(codes)).toEqual(['crashed', 'gone']);
  expect(log).toEqual(['init 1', 'close 1']);
  expect(crashes.splice(0)).toHaveLength(1);
});

it('a stop while a crashed incarnation still closes does not wait for the pause after it', async () => {
  const { node, start, crashes } = world();
  const { type } = probe();
  let close = () => {};
  const ref = await start(
    'a',
    withCloser(
      type,
      () =>
        new Promise((resolve) => {
          close = resolve;
        }),
    ),
    null,
  );
  expect(await codeOf(ref.ask('boom', { text: 'x' }))).toBe('crashed');
  await settle();
  const stopped = node.stop();
  close();
  expect(await stopped).toEqual([]);
  crashes.splice(0);
});

it('asks of the stopped node are refused, and nothing can be started on it', async () => {
  const { node, ref } = world();
  await node.stop();
  expect(await codeOf(ref<Probe>('a').ask('echo', { value: 1 }))).toBe('gone');
  expect(await codeOf(node.start('a', probe().type, null))).toBe('gone');
});

function withCloser(type: ActorType<Probe, null>, close: () => Promise<void>): ActorType<Probe, null> {
  return {
    ...type,
    init: (context, config) => {
      context.scope.defer(close);
      return type.init(context, config);
    },
  };
}
