// Connections between nodes: who is notified when one is lost or replaced.
import { expect, it } from 'vitest';
import { actor } from '../../src/runtime/actor.ts';
import { decodeAllMsgpack, encodeMsgpack } from '../../src/runtime/msgpack.ts';
import { pipePair, settle, twoWorlds, world } from '../kit/actors.ts';
import { codeOf, type Probe, probe } from '../kit/probe_actor.ts';

it('a second pipe to the same peer replaces the first, whose open asks settle with `gone`', async () => {
  const { near, far } = twoWorlds();
  const { type, open } = probe();
  await far.start('far', type, null);
  const lost: string[] = [];
  near.node.onPeerLost((peer, reason) => lost.push(`${peer}: ${reason}`));
  const ref = near.ref<Probe>('far');
  const before = codeOf(ref.ask('hold', { key: 'x' }));
  await settle();
  const { ends } = pipePair();
  near.node.connect('far', ends[0]);
  far.node.connect('near', ends[1]);
  expect(await before).toBe('gone');
  const after = ref.ask('echo', { value: 1 });
  open('x');
  expect(await after).toEqual({ value: 1 });
  expect(lost).toEqual(['far: replaced by another connection']);
});

it('`disconnect` loses the peer on both sides', async () => {
  const { near, far } = twoWorlds();
  const { type } = probe();
  await far.start('far', type, null);
  const lost: string[] = [];
  far.node.onPeerLost((peer) => lost.push(peer));
  near.node.disconnect('far');
  near.node.disconnect('nobody');
  await settle();
  expect(lost).toEqual(['near']);
  expect(await codeOf(near.ref<Probe>('far').ask('echo', { value: 1 }))).toBe('gone');
});

it('messages sent in the same turn before a disconnect still arrive', async () => {
  const { near, far } = twoWorlds();
  const { type, log } = probe();
  await far.start('far', type, null);
  near.ref<Probe>('far').tell('echo', { value: 'last words' });
  near.node.disconnect('far');
  await settle();
  expect(log).toContain('echo "last words"');
});

it('a ref made before the connection works after it', async () => {
  const place = (address: string) => (address === 'far' ? 'far' : 'near');
  const near = world({ name: 'near', nodeOf: place });
  const far = world({ name: 'far', nodeOf: place });
  const ref = near.ref<Probe>('far');
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('gone');
  await far.start('far', probe().type, null);
  const { ends } = pipePair();
  near.node.connect('far', ends[0]);
  far.node.connect('near', ends[1]);
  expect(await codeOf(ref.ask('echo', { value: 1 }))).toBe('none');
});

it('a watcher is notified once of a remote end, a lost connection, or an unknown address', async () => {
  const { near, far, cut } = twoWorlds();
  const { type } = probe();
  for (const address of ['far1', 'far2']) await far.start(address, type, null);
  const watcher = probe();
  const ref = await near.start('watcher', watcher.type, null);
  await ref.ask('watch', { address: 'watcher' });
  for (const address of ['far1', 'far2', 'far3', 'near1']) await ref.ask('watch', { address });
  await settle();
  expect(watcher.log.splice(0)).toEqual(['init 1', 'ended far3', 'ended near1']);
  await far.node.end('far1');
  await settle();
  expect(watcher.log.splice(0)).toEqual(['ended far1']);
  cut('cable');
  await settle();
  expect(watcher.log.splice(0)).toEqual(['ended far2']);
  await ref.ask('watch', { address: 'far2' });
  await settle();
  expect(watcher.log.splice(0)).toEqual(['ended far2']);
});

it('an ended incarnation is notified of nothing', async () => {
  const { near, far } = twoWorlds();
  await far.start('far', probe().type, null);
  const watcher = probe();
  const ref = await near.start('watcher', watcher.type, null);
  await ref.ask('watch', { address: 'far' });
  await codeOf(ref.ask('boom', { text: 'x' }));
  await near.clock.advance(10);
  await far.node.end('far');
  await settle();
  expect(watcher.log).toEqual(['init 1', 'close 1', 'init 2']);
  near.crashes.splice(0);
});

it('a notification for a crashed incarnation does not reach the next one', async () => {
  const { near, far, cut } = twoWorlds();
  for (const address of ['far1', 'far2']) await far.start(address, probe().type, null);
  const notices: string[] = [];
  const fragile = actor<{ nothing(message: null): null }, null>('fragile', (context) => {
    if (notices.length > 0) return { nothing: () => null };
    for (const address of ['far1', 'far2']) {
      context.watch(address, (ended) => {
        notices.push(ended);
        throw new Error('told');
      });
    }
    return { nothing: () => null };
  });
  await near.start('fragile', fragile, null);
  await settle();
  cut('cable');
  await near.clock.advance(10);
  expect(notices).toEqual(['far1']);
  expect(near.crashes.splice(0)).toHaveLength(1);
});

it('a node that stops itself does not report its peers as lost', async () => {
  const { near, far } = twoWorlds();
  const lost: string[] = [];
  near.node.onPeerLost((peer) => lost.push(`near lost ${peer}`));
  far.node.onPeerLost((peer) => lost.push(`far lost ${peer}`));
  await near.node.stop();
  await settle();
  expect(lost).toEqual(['far lost near']);
});

it('each request gets one reply over the link, and each watcher one notification', async () => {
  const { node, start, crashes, clock } = world({
    name: 'node',
    nodeOf: (to) => (to === 'far' ? 'far' : 'node'),
  });
  const { ends } = pipePair();
  node.connect('far', ends[0]);
  const frames: unknown[] = [];
  ends[1].receive(
    (bytes) => frames.push(...decodeAllMsgpack(bytes)),
    () => {},
  );
  const { type, open } = probe();
  await start('a', type, null);
  const send = (...frame: unknown[]) => ends[1].send(Uint8Array.from(encodeMsgpack(frame)));
  send(4, 'a');
  send(0, 1, 'a', 'later', { key: 'x' }, 1000);
  send(0, 2, 'a', 'crash', { text: 'x' }, 1000);
  send(0, 3, 'a', 'hold', { key: 'y' }, 1000);
  await clock.advance(1);
  open('x');
  open('y');
  await clock.advance(100);
  for (let time = 0; time < 2; time += 1) {
    await node.end('a');
    await start('a', type, null);
  }
  await settle();
  expect(frames.map((frame) => (frame as unknown[]).slice(0, 3))).toEqual([
    [2, 2, null],
    [3, 3, 'crashed'],
    [3, 1, 'crashed'],
    [5, 'a'],
  ]);
  crashes.splice(0);
});

it('a turn that sends more than a megabyte posts it in parts', async () => {
  const posts: number[] = [];
  const { near, far } = twoWorlds((deliver, from) => {
    posts.push(from);
    deliver();
  });
  await far.start('far', probe().type, null);
  const value = 'x'.repeat(600_000);
  const ref = near.ref<Probe>('far');
  for (let count = 0; count < 4; count += 1) ref.tell('echo', { value });
  await ref.ask('echo', { value: 'last' });
  expect(posts).toEqual([0, 0, 0, 1]);
});

it('the frames of one turn are one post', async () => {
  let posts = 0;
  const { near, far } = twoWorlds((deliver) => {
    posts += 1;
    deliver();
  });
  await far.start('far', probe().type, null);
  const ref = near.ref<Probe>('far');
  await Promise.all(Array.from({ length: 100 }, (_, value) => ref.ask('echo', { value })));
  expect(posts).toBe(2);
});
